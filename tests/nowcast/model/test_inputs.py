"""Rain as a network reads it: scaled, mirrored and turned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nowcast.model.inputs import RainScale, Symmetries


def ways(window: np.ndarray) -> list[bytes]:
    """All that a window (T, H, W) may become."""
    result = []
    for t in (1, -1):
        for y in (1, -1):
            for x in (1, -1):
                turned = window[::t, ::y, ::x]
                result.append(turned.tobytes())
                if turned.shape[1] == turned.shape[2]:
                    result.append(turned.swapaxes(1, 2).tobytes())
    return result


@pytest.mark.parametrize(("size", "count"), [((3, 3), 16), ((3, 4), 8)])
def test_every_window_becomes_one_of_its_symmetries_and_all_occur(size, count):
    window = np.arange(5 * size[0] * size[1], dtype=np.float32).reshape(5, *size)
    frames = np.broadcast_to(window[None, ..., None], (400, *window.shape, 1))
    made = Symmetries()({"x": frames[:, :2], "y": frames[:, 2:]}, np.random.default_rng(0))
    assert made["x"].shape == (400, 2, *size, 1)
    assert made["y"].shape == (400, 3, *size, 1)
    found = {np.concatenate([x, y]).tobytes() for x, y in zip(made["x"], made["y"], strict=True)}
    assert found == set(ways(window))
    assert len(found) == count


def test_the_generator_alone_decides_and_nothing_is_changed_in_place():
    rng = np.random.default_rng(1)
    batch = {"x": rng.random((8, 2, 4, 4, 1)), "y": rng.random((8, 1, 4, 4, 1))}
    kept = {name: array.copy() for name, array in batch.items()}
    first, second = (Symmetries()(batch, np.random.default_rng(5)) for _ in range(2))
    for name in batch:
        np.testing.assert_array_equal(first[name], second[name])
        np.testing.assert_array_equal(batch[name], kept[name])
    other = Symmetries()(batch, np.random.default_rng(6))
    assert (other["x"] != first["x"]).any()


rates = st.floats(0, 150, width=32)


@given(rates)
def test_there_and_back(rate):
    scale = RainScale()
    again = scale.to_rain(scale.to_network(np.array([rate], np.float32)))
    np.testing.assert_allclose(again, [rate], rtol=2e-5, atol=1e-6)


@given(rates, rates)
def test_more_rain_is_more(a, b):
    values = RainScale().to_network(np.array(sorted((a, b)), np.float32))
    assert values[0] <= values[1]


def test_dry_is_zero_full_is_one_missing_stays():
    values = RainScale(0.1, 50).to_network(np.array([0, 50, np.nan, -3], np.float32))
    np.testing.assert_allclose(values, [0, 1, np.nan, 0], rtol=1e-6)


def test_what_a_network_makes_is_never_below_zero_or_without_bound():
    rain = RainScale(0.1, 50).to_rain(np.array([-3, 40], np.float32))
    assert rain[0] == 0
    np.testing.assert_allclose(rain[1], 200, rtol=1e-4)
    assert rain.dtype == np.float32
