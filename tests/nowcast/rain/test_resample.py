"""Another time step, another spacing, and the mesh of a grid."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError
from nowcast.rain.grid import mean_spacing
from nowcast.rain.resample import resampled

FIVE, TEN = np.timedelta64(300, "s"), np.timedelta64(600, "s")


def rain(n: int = 7, size: int = 40, spacing: float = 500.0, start: str = "00:00") -> xr.DataArray:
    """Rain that is linear in y and x, and grows by the frame."""
    time = np.datetime64(f"2020-01-01T{start}", "ns") + np.arange(n) * FIVE
    y = x = np.arange(size) * spacing
    values = np.arange(n)[:, None, None] + y[:, None] / 1000 + 2 * x / 1000
    coords = {"time": time, "y": y, "x": x}
    return xr.DataArray(values.astype("f4"), coords, ("time", "y", "x")).chunk(time=1)


def expected(made: xr.DataArray) -> np.ndarray:
    """Return the function at the new times and places."""
    frame = (made["time"].values - np.datetime64("2020-01-01")) / FIVE
    y, x = made["y"].values, made["x"].values
    return frame[:, None, None] + y[:, None] / 1000 + 2 * x / 1000


def test_data_that_fit_are_not_resampled():
    whole = rain()
    assert resampled(whole, FIVE, 500.0, "r") is whole
    assert resampled(whole, FIVE, 501.0, "r") is whole


@pytest.mark.slow
@pytest.mark.parametrize("spacing", [1000.0, 1500.0, 750.0, 250.0, 1250.0])
def test_other_spacings(spacing):
    made = resampled(rain(), FIVE, spacing, "r")
    assert made.chunks is not None
    np.testing.assert_allclose(np.diff(made["x"]), spacing)
    assert made.dtype == np.float32
    values = made.compute()
    inner = values[:, 1:-1, 1:-1]
    np.testing.assert_allclose(inner, expected(inner), rtol=1e-4)


def test_a_block_with_a_missing_cell_is_missing():
    holes = rain().compute()
    holes[:, 3, 3] = np.nan
    made = resampled(holes, FIVE, 1000.0, "r")
    assert np.isnan(made[:, 1, 1]).all()
    assert int(np.isnan(made).sum()) == len(made)


def test_a_longer_step_takes_every_second_frame():
    made = resampled(rain(), TEN, 500.0, "r")
    assert made.sizes["time"] == 4
    np.testing.assert_allclose(made.compute(), expected(made), rtol=1e-5)
    late = rain(start="00:03")
    assert (np.diff(resampled(late, TEN, 500.0, "r")["time"]) == TEN).all()


def test_impossible_steps_and_spacings_are_named():
    with pytest.raises(DataError, match=r"r: expected frames in a step that divides 7 min"):
        resampled(rain(), np.timedelta64(420, "s"), 500.0, "r")
    with pytest.raises(DataError, match="at least 60 cells along y and x for a spacing of 15000 m"):
        resampled(rain(), FIVE, 15000.0, "r")


def mesh(y: np.ndarray, x: np.ndarray) -> xr.Dataset:
    return xr.Dataset(coords={"y": y, "x": x})


def test_oblong_cells_count_as_squares_of_their_area():
    assert mean_spacing(mesh(np.arange(5) * 1000.0, np.arange(4) * 1000.0), "s") == 1000
    oblong = mesh(np.arange(5) * -1112.0, np.arange(4) * 882.0)
    assert mean_spacing(oblong, "s") == pytest.approx(990.35, abs=0.01)


@pytest.mark.parametrize(
    ("y", "x", "words"),
    [
        (np.zeros(1), np.arange(4.0), "s: expected at least 2 cells along y, found 1"),
        (np.arange(4) * 4.0, np.arange(4.0), "at most 3 times as long as wide, found 4 m by 1 m"),
        (np.zeros(3), np.zeros(3), "found 0 m by 0 m"),
    ],
)
def test_cells_without_a_length_are_refused(y, x, words):
    with pytest.raises(DataError, match=words):
        mean_spacing(mesh(y, x), "s")
