"""Tests of noise with the scales of rain."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.lagrangian.autoregression import BandModel
from nowcast.lagrangian.noise import Noise, evened


def noise(memory: list[float]) -> Noise:
    shapes = [(128, 160), (64, 80), (32, 40), (16, 20)]
    models = [BandModel(0.0, m) for m in memory]
    return Noise(shapes[: len(memory)], [1.0] * len(memory), models)


@pytest.mark.slow
def test_every_pixel_is_standard_normal() -> None:
    made = np.stack(
        [np.stack(list(noise([0.5, 0.8]).fields(3, np.random.default_rng(k)))) for k in range(300)]
    )
    assert np.abs(made.mean(axis=0)).max() < 0.35
    deviation = made.std(axis=(0, 1))[10:-10, 10:-10]
    assert abs(deviation.mean() - 1) < 0.02
    # No comb: rows and columns of one parity are as uncertain as those of the other.
    for rows in (0, 1):
        for columns in (0, 1):
            assert abs(deviation[rows::2, columns::2].mean() - 1) < 0.03


def test_small_scales_come_first() -> None:
    fields = list(noise([0.1, 0.6, 0.9, 0.98]).fields(12, np.random.default_rng(0)))
    step = [float((np.diff(field) ** 2).mean() / field.var()) for field in (fields[0], fields[-1])]
    assert step[0] > 1.2 * step[1]


def test_a_seed_is_a_field() -> None:
    first, same, other = (
        list(noise([0.5, 0.8]).fields(2, np.random.default_rng(seed)))[1] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    assert abs(np.corrcoef(first.ravel(), other.ravel())[0, 1]) < 0.2


def test_evened_fields_have_a_mean_square_of_one_at_each_pixel() -> None:
    fields = np.random.default_rng(0).standard_normal((10, 6, 7), np.float32)
    fields[:, 2, 3] = np.nan
    plain = fields.copy()
    evened(fields)
    known = np.isfinite(fields)
    np.testing.assert_array_equal(known, np.isfinite(plain))
    squares = (fields**2).mean(axis=0)
    np.testing.assert_allclose(squares[known[0]], 1, rtol=1e-5)
    np.testing.assert_array_equal(np.sign(fields[known]), np.sign(plain[known]))
    few = plain[:4].copy()
    evened(few)
    np.testing.assert_array_equal(few, plain[:4])
