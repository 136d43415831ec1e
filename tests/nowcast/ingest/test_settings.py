"""Settings of an ingest as text and as values."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import SettingsError
from nowcast.ingest.settings import IngestSettings
from nowcast.radar.site import Site


def test_text_is_understood():
    settings = IngestSettings.of(
        size="200x300", site="50.9,6.4,116", centre="51,5", zr="250,1.2", step="5min"
    )
    assert settings.size == (200, 300)
    assert settings.site == Site(50.9, 6.4, 116.0)
    assert settings.centre == (51.0, 5.0)
    assert settings.step == np.timedelta64(5, "m")
    assert (settings.relation.a, settings.relation.hail_cap) == (250.0, 53.0)
    assert IngestSettings.of(size=128).size == (128, 128)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", "big"),
        ("size", 0),
        ("spacing", -1.0),
        ("site", "50.9"),
        ("site", "95,5"),
        ("centre", "here"),
        ("zr", "mp"),
        ("step", "5h"),
        ("rhohv", 2.0),
        ("combine", "mean"),
        ("sweeps", 0),
        ("colour", "red"),
    ],
)
def test_other_values_are_refused_by_name(name, value):
    with pytest.raises(SettingsError, match=f"ingest, {name}: .*found") as told:
        IngestSettings.of(**{name: value})
    assert str(told.value).count("found") == 1


def test_equal_settings_describe_themselves_equally():
    first, second = IngestSettings(), IngestSettings.of(zr="marshall-palmer", rhohv=0.8)
    assert first.describe(polar=True) == second.describe(polar=True)
    assert first.describe(polar=True) != IngestSettings.of(rhohv=None).describe(polar=True)
    assert set(first.describe(polar=False)) == {"zr_relation"}
