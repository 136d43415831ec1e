"""Texture of rain: noise, ranks and quantiles, and the spectrum of a realistic field."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.stats import norm, rankdata

from nowcast.lagrangian.pyramid import BandModel
from nowcast.lagrangian.ranks import match, quantile, ranks
from nowcast.lagrangian.texture import Noise, _power, _rings, evened, sharpened, textured


def noise(memory: list[float], leads: int, seed: int = 0) -> np.ndarray:
    """Return the field of each lead, (lead, 128, 160)."""
    shapes = [(128, 160), (64, 80), (32, 40), (16, 20)]
    models = [BandModel(0.0, m) for m in memory]
    rng = np.random.default_rng(seed)
    made = Noise(shapes[: len(memory)], [1.0] * len(memory), models, rng)
    fields = []
    for lead in range(leads):
        made.go_on(lead + 1.0)
        fields.append(made.field())
    return np.stack(fields)


@pytest.mark.slow
def test_every_pixel_is_standard_normal():
    made = np.stack([noise([0.5, 0.8], 3, seed) for seed in range(300)])
    assert np.abs(made.mean(axis=0)).max() < 0.35
    deviation = made.std(axis=(0, 1))[10:-10, 10:-10]
    assert abs(deviation.mean() - 1) < 0.02
    # No comb: even and odd rows and columns are equally uncertain.
    for rows in (0, 1):
        for columns in (0, 1):
            assert abs(deviation[rows::2, columns::2].mean() - 1) < 0.03


def test_small_scales_come_first():
    fields = noise([0.1, 0.6, 0.9, 0.98], 12)
    step = [float((np.diff(field) ** 2).mean() / field.var()) for field in (fields[0], fields[-1])]
    assert step[0] > 1.2 * step[1]


def test_a_seed_determines_the_field():
    first, same, other = (noise([0.5, 0.8], 2, seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert abs(np.corrcoef(first.ravel(), other.ravel())[0, 1]) < 0.2


def test_evened_fields_have_a_mean_square_of_one_at_each_pixel():
    fields = np.random.default_rng(0).standard_normal((10, 6, 7), np.float32)
    fields[:, 2, 3] = np.nan
    original = fields.copy()
    evened(fields)
    known = np.isfinite(fields)
    np.testing.assert_array_equal(known, np.isfinite(original))
    squares = (fields**2).mean(axis=0)
    np.testing.assert_allclose(squares[known[0]], 1, rtol=1e-5)
    np.testing.assert_array_equal(np.sign(fields[known]), np.sign(original[known]))
    few = original[:4].copy()
    evened(few)
    np.testing.assert_array_equal(few, original[:4])


def test_ranks_follow_a_sort():
    field = np.random.default_rng(0).normal(size=(70, 90)).astype(np.float32)
    field[:5] = np.nan
    expected = (rankdata(field[5:]).reshape(65, 90) - 0.5) / field[5:].size
    np.testing.assert_allclose(ranks(field)[5:], expected, atol=1e-3)
    assert np.isnan(ranks(field)[:5]).all()


def test_matching_gives_the_other_distribution_in_the_same_order():
    rng = np.random.default_rng(1)
    field = rng.normal(size=(80, 80)).astype(np.float32)
    reference = np.maximum(rng.normal(size=(80, 80)), 0).astype(np.float32)
    made = match(ranks(field), reference)
    for q in (0.3, 0.6, 0.9, 0.99):
        assert abs(np.quantile(made, q) - np.quantile(reference, q)) < 0.02
    assert (np.diff(made.ravel()[np.argsort(field, axis=None)]) >= 0).all()


def test_unknown_fields_stay_unknown():
    nothing = np.full((4, 5), np.nan, np.float32)
    assert np.isnan(ranks(nothing)).all()
    assert np.isnan(match(ranks(np.ones((4, 5), np.float32)), nothing)).all()


RATES = (0.1, 1.0, 10.0)


def drawn(chances: tuple[float, ...], normal: np.ndarray) -> np.ndarray:
    p = np.broadcast_to(np.array(chances, np.float32)[:, None, None], (3, *normal.shape))
    out = np.empty(normal.shape, np.float32)
    quantile(normal.astype(np.float32), np.ascontiguousarray(p), RATES, out)
    return out


def test_members_have_the_probabilities_as_their_distribution():
    normal = np.random.default_rng(0).normal(size=(400, 500))
    for chances in ((0.6, 0.3, 0.05), (0.02, 0.01, 1e-4), (0.999, 0.9, 0.5)):
        made = drawn(chances, normal)
        for rate, chance in zip(RATES, chances, strict=True):
            share = (made >= rate).mean()
            assert abs(share - chance) < 4 * (chance * (1 - chance) / normal.size) ** 0.5 + 1e-4


def test_more_noise_is_more_rain_and_bounded():
    z = np.linspace(-4, 9, 600)[None]
    made = drawn((0.6, 0.3, 0.05), z)[0]
    assert (np.diff(made) >= 0).all()
    assert made[0] == 0
    assert made[-1] <= 200 * 1.0001
    at = np.interp(norm.isf(0.3), z[0], made)
    assert abs(at - 1) < 0.05


def test_missing_stays_missing():
    normal = np.zeros((2, 2))
    normal[0, 0] = np.nan
    assert np.isnan(drawn((0.6, 0.3, 0.05), normal)[0, 0])
    assert np.isnan(drawn((np.nan, np.nan, np.nan), normal)).all()


def rain(seed: int, sigma: float) -> np.ndarray:
    """Rain in a part of a grid, with structures of ``sigma`` cells."""
    noise = gaussian_filter(np.random.default_rng(seed).normal(size=(96, 128)), sigma)
    return np.maximum(10 ** (0.5 * noise / noise.std()) - 2, 0).astype(np.float32)


def small_scales(field: np.ndarray) -> float:
    """Power at wavelengths below 16 cells."""
    level = np.log(np.maximum(np.nan_to_num(field), np.float32(0.1)))
    ring = _rings(field.shape)
    power = _power(np.fft.rfft2(level), ring)
    return float(power[ring[0, 8] :].sum())


def test_a_smooth_field_gets_the_spectrum_and_rates_of_the_frame():
    moved = rain(0, 2.0)
    smooth = gaussian_filter(np.roll(moved, 12, axis=1), 6).astype(np.float32)
    made = textured(smooth, moved)
    assert small_scales(smooth) < 0.2 * small_scales(moved)
    assert 0.9 < small_scales(made) / small_scales(moved) < 1.1
    np.testing.assert_allclose(np.sort(made, None), np.sort(moved, None), rtol=0.1, atol=0.1)
    # The result is nearer to the expected field than the frame is.
    nearer, moved_only = (np.corrcoef(f.ravel(), smooth.ravel())[0, 1] for f in (made, moved))
    assert nearer > moved_only + 0.05


def test_missing_and_dry_pixels_stay():
    moved = rain(1, 2.0)
    moved[:20], smooth = np.nan, gaussian_filter(rain(1, 2.0), 6).astype(np.float32)
    smooth[:, :30] = np.nan
    made = textured(smooth, moved)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(moved) | np.isnan(smooth))
    assert np.nanmax(made) <= np.nanmax(moved[:, 30:])
    assert not textured(np.zeros_like(moved), np.zeros_like(moved)).any()
    assert np.isnan(textured(smooth, np.full_like(moved, np.nan))).all()


def test_noise_is_tilted_until_members_are_as_sharp_as_rain():
    frame = rain(2, 4.0)
    frame[:30, :40] = np.nan
    tilts: list[float] = []

    def member(tilt):
        tilts.append(tilt)
        return rain(2, 3 * tilt**0.5)

    tilt = sharpened(member, 1.0, frame, 1.0)
    assert 1.2 < tilt < 2.2
    known = np.isfinite(frame)
    sharpness = small_scales(np.where(known, member(tilt), 0)) / small_scales(frame)
    assert 0.9 < sharpness < 1.1
    assert len(tilts) <= 5
    assert sharpened(lambda tilt: frame, 1.2, frame, 1.0) == pytest.approx(1.2)
    assert sharpened(member, 1.2, frame, 30.0) == 1.2  # no detail of 4 to 16 km on such a grid
    assert sharpened(lambda tilt: 0 * frame, 1.2, frame, 1.0) == 1.2
