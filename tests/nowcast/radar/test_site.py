"""Sites as text and as files have them."""

from __future__ import annotations

import pytest

from daskdl.errors import SettingsError
from nowcast.radar.site import Site


def test_text_with_and_without_altitude():
    assert Site.parse("30.3367, -89.8256") == Site(30.3367, -89.8256, 0.0)
    assert Site.parse("30,-89,7") == Site(30, -89, 7)


@pytest.mark.parametrize("text", ["", "30", "30,x", "1,2,3,4", "91,0"])
def test_other_text_is_refused(text):
    with pytest.raises(SettingsError, match="site: expected"):
        Site.parse(text)


def test_null_island_and_nan_are_unknown():
    assert Site.known(0, 0, 5) is None
    assert Site.known(float("nan"), 1, 5) is None
    assert Site.known(0, 10, float("nan")) == Site(0, 10, 0)
