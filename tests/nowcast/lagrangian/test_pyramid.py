"""Tests of the bands of scales."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.lagrangian.pyramid import compose, decompose, levels_of
from tests.nowcast.fields import storms


@pytest.mark.parametrize("shape", [(64, 64), (97, 45), (7, 130)])
def test_bands_add_up_to_the_field(shape: tuple[int, int]) -> None:
    field = storms(shape, 3)
    field[: shape[0] // 3, : shape[1] // 4] = np.nan
    parts = decompose(field)
    assert len(parts.bands) == levels_of(shape)
    again = compose(parts.bands, parts.weights)
    known = np.isfinite(field)
    np.testing.assert_allclose(again[known], field[known], atol=1e-4)


def test_missing_pixels_say_nothing() -> None:
    field = np.full((64, 80), 3.0, np.float32)
    field[20:40, 30:60] = np.nan
    parts = decompose(field)
    for band in parts.bands[:-1]:
        np.testing.assert_allclose(band, 0, atol=1e-5)
    np.testing.assert_allclose(parts.bands[-1], 3, atol=1e-5)


@pytest.mark.slow
def test_a_wave_is_in_the_band_of_its_length() -> None:
    x = np.arange(256)
    energy = []
    for length in (4, 16, 64):
        wave = np.broadcast_to(np.cos(2 * np.pi * x / length), (256, 256)).astype(np.float32)
        energy.append([float(np.abs(b).mean()) for b in decompose(wave).bands])
    assert [int(np.argmax(e)) for e in energy] == [0, 1, 3]
