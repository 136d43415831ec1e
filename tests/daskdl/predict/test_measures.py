"""Statistics of metrics travel as plain data, to the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.predict.measures import plain, statistics_of


def test_statistics_are_the_same_after_the_way():
    measured = (
        {"hits": np.arange(6).reshape(2, 3), "n": np.int64(7), "loss": np.float64(0.1)},
        {},
        {"names": np.array(["a", "bc"]), "none": np.zeros((0, 4), np.float32)},
    )
    found = statistics_of(plain(measured))
    assert [list(one) for one in found] == [["hits", "n", "loss"], [], ["names", "none"]]
    for before, after in zip(measured, found, strict=True):
        for name in before:
            assert after[name].dtype == np.asarray(before[name]).dtype
            np.testing.assert_array_equal(after[name], before[name])


def test_objects_are_refused():
    with pytest.raises(SettingsError, match="found ids of object; encode it in numbers"):
        plain(({"ids": np.array([object()])},))
