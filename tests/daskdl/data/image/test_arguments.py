"""Arguments of transforms: pairs, ranges and fractions."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data.image.arguments import below, one_of, pair, share, span
from daskdl.errors import SettingsError


def test_pairs():
    assert pair("here", 3) == (3, 3)
    assert pair("here", (np.int64(3), 4)) == (3, 4)
    for wrong in (0, 2.5, (1,), (1, 0), "ab"):
        with pytest.raises(SettingsError, match="here: expected a whole number from 1"):
            pair("here", wrong)


def test_ranges():
    assert span("here", 0.25, 1, 0) == (0.75, 1.25)
    assert span("here", 2, 1, 0) == (0, 3)
    assert span("here", (0.5, 2), 1) == (0.5, 2)
    assert span("here", 5) == (5, 5)
    for wrong in ((2, 1), (-1, 2), "a", (0, np.inf), (np.nan, 1)):
        with pytest.raises(SettingsError, match=r"here: expected a number or .* at least 0, found"):
            span("here", wrong, least=0)


def test_fractions_and_choices():
    assert share("here", 1) == 1
    for wrong in (-0.1, 1.1, "a", None):
        with pytest.raises(SettingsError, match="here: expected a number from 0 to 1"):
            share("here", wrong)
    one_of("here", "a", ("a", "b"))
    with pytest.raises(SettingsError, match="here: expected one of 'a', 'b', found 'c'"):
        one_of("here", "c", ("a", "b"))


def test_whole_numbers_up_to_limits():
    drawn = below(np.random.default_rng(0), np.tile([0, 2], (60, 1)))
    assert set(drawn[:, 0]) == {0}
    assert set(drawn[:, 1]) == {0, 1, 2}
