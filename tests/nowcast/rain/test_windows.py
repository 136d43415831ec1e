"""Windows: consecutive frames only, dry ones thinned as stated, the same for any partitions."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import DataError, SettingsError
from nowcast.rain.windows import event_labels, gapless_runs, tile_corners, windows
from tests.daskdl.data.epochs import epoch, everything
from tests.nowcast.rain.series import instants, series

FIVE = np.timedelta64(5, "m")


def pairs(data, n_in=2, n_out=1, **options):
    """Return (x, y) of every window of all recipes."""
    return [
        (partition.take(np.array([k]))["x"][0], partition.take(np.array([k]))["y"][0])
        for partition in (
            r.load() for r in windows(data, n_in=n_in, n_out=n_out, **options).recipes
        )
        for k in range(len(partition))
    ]


def first_frames(data, **options):
    """Return the numbers of the windows' first frames, which ``series`` writes into the cells."""
    return [int(x[0, 0, 0, 0]) // 100 for x, _ in pairs(data, **options)]


# --- which frames


@given(
    st.lists(st.sampled_from([5, 5, 5, 5, 10, 2.5]), min_size=1, max_size=30),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_gaps_are_never_bridged(steps, n_in, n_out, partitions):
    minutes = np.cumsum([0, *steps])
    length = n_in + n_out
    expected = [
        k for k in range(len(minutes) - length + 1) if (np.diff(minutes[k : k + length]) == 5).all()
    ]
    options = {"n_in": n_in, "n_out": n_out, "step": FIVE, "partitions": partitions}
    if expected:
        assert first_frames(series(minutes, 1, 1), **options) == expected
    else:
        with pytest.raises(DataError, match=f"at least {length} consecutive frames 5 min apart"):
            windows(series(minutes, 1, 1), **options)


def test_the_step_is_the_most_frequent_or_the_one_given():
    data = series([0, 10, 20, 25, 30, 35, 40, 50])
    assert first_frames(data) == [2, 3, 4]
    assert first_frames(data, step=timedelta(minutes=10)) == [0]
    # As frequent as the other: the shorter one.
    assert first_frames(series([0, 10, 20, 25, 30])) == [2]


def test_stride_counts_from_the_start_of_each_run():
    data = series([0, 5, 10, 15, 20, 25, 60, 65, 70, 75])
    assert first_frames(data, stride=2) == [0, 2, 6]
    assert first_frames(data, stride=9) == [0, 6]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (("2010-08-26T00:05", "2010-08-26T00:20"), [1, 2]),  # both ends included
        (("2010-08-26T00:05:01", "2010-08-26T00:20"), [2]),
        (("2010-08-26T00:05", "2010-08-26T00:19:59"), [1]),
        ((None, "2010-08-26T00:10"), [0]),
        ((instants([10])[0], None), [2, 3]),
        (slice("2010-08-26T00:15", None), [3]),
    ],
)
def test_all_frames_lie_in_the_times(times, expected):
    assert first_frames(series([0, 5, 10, 15, 20, 25]), times=times) == expected


def test_a_range_without_frames_is_refused():
    message = (
        r"^data: expected at least 3 consecutive frames from 2010-08-27 to 2010-08-26, found 0 "
        "frames of which there are none; give another step or time range"
    )
    with pytest.raises(DataError, match=message):
        windows(series([0, 5, 10]), n_in=2, n_out=1, times=("2010-08-27", "2010-08-26"))


def test_too_few_frames_are_refused():
    text = "at least 4 consecutive frames 5 min apart, found 5 frames of which the longest .* has 3"
    with pytest.raises(DataError, match=text):
        gapless_runs(instants([0, 5, 10, 60, 65]), None, None, 4, "data")


# --- which places


def test_tiles_that_reach_over_the_edge_are_left_out():
    assert tile_corners((5, 7), (2, 3), None, "").tolist() == [[0, 0], [0, 3], [2, 0], [2, 3]]
    overlapping = tile_corners((5, 7), (2, 3), (3, 2), "").tolist()
    assert overlapping == [[0, 0], [0, 2], [0, 4], [3, 0], [3, 2], [3, 4]]
    assert tile_corners((2, 3), (2, 3), 1, "").tolist() == [[0, 0]]


def test_a_grid_smaller_than_the_tile_is_refused():
    with pytest.raises(DataError, match="at least one tile of 5 x 2 cells, found 4 x 5"):
        windows(series([0, 5, 10], 4, 5), n_in=2, n_out=1, tile=(5, 2))


# --- windows that are kept


def rainy(minutes, wet, ny=10, nx=10, rate=1.0):
    """Return frames in which the first ``wet[t]`` of 100 cells have rain; NaN if negative."""
    values = np.zeros((len(minutes), ny * nx), np.float32)
    for frame, cells in zip(values, wet, strict=True):
        frame[: abs(cells)] = rate if cells > 0 else np.nan
    return series(minutes, ny, nx, values.reshape(-1, ny, nx))


def count_windows(data, **options):
    """Return the number of windows that are kept."""
    return len(windows(data, n_in=1, n_out=1, **options))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"wet_fraction": 0.07}, 1),  # just the fraction is wet; 0.07 * 100 > 7 in floats
        ({"wet_fraction": 0.0701}, 0),
        ({"wet_threshold": 1.0, "wet_fraction": 0.07}, 1),  # just the threshold is wet
        ({"wet_threshold": 1.001, "wet_fraction": 0.01}, 0),
        ({"wet_threshold": 1.001, "wet_fraction": 0.0}, 1),  # nothing is dry
    ],
)
def test_a_window_is_dry_below_the_fraction_of_wet_cells(options, expected):
    data = rainy([0, 5], [7, 90])  # frames after the input do not count
    if expected:
        assert count_windows(data, keep_dry=0.0, **options) == 1
    else:
        with pytest.raises(DataError, match=r"found 1: 0 have .* and 1 are dry"):
            count_windows(data, keep_dry=0.0, **options)


def test_missing_cells_are_neither_wet_nor_dry():
    data = rainy([0, 5], [-90, 0])
    data["rain_rate"][0, 9, :5] = 1.0  # 5 of the 10 known cells, 5 of all 100
    assert count_windows(data, keep_dry=0.0, wet_fraction=0.5, max_missing=0.9) == 1


@pytest.mark.parametrize(("missing", "limit"), [(70, 0.7), (29, 0.29), (100, 1.0), (0, 0.0)])
def test_windows_with_more_missing_cells_are_left_out(missing, limit):
    """A share equal to the limit is not more, despite rounding."""
    data = rainy([0, 5], [-missing] * 2)
    assert count_windows(data, max_missing=limit) == 1
    if missing:
        with pytest.raises(DataError, match=r": 1 have more than \d+% missing"):
            count_windows(data, max_missing=limit - 0.001)


def test_wet_and_missing_cells_of_every_window_are_counted():
    rng = np.random.default_rng(0)
    values = rng.choice([0, 0, 0.2, np.nan], (30, 9, 11)).astype(np.float32)
    data = series(5 * np.arange(30), 9, 11, values)
    options = {"tile": (3, 4), "tile_stride": (2, 3), "wet_fraction": 0.35, "max_missing": 0.25}
    expected = []
    for t in range(28):
        for i in range(0, 7, 2):
            for j in range(0, 8, 3):
                cells = values[t : t + 3, i : i + 3, j : j + 4]
                known = cells[:2][np.isfinite(cells[:2])]  # of the input
                if np.isnan(cells).mean() <= 0.25 and (known >= 0.1).mean() >= 0.35:
                    expected.append([t, i, j])
    recipes = windows(data, n_in=2, n_out=1, keep_dry=0.0, **options).recipes
    assert 20 < len(expected) < 250
    np.testing.assert_array_equal(np.concatenate([r.windows for r in recipes]), expected)


class TestThinning:
    """Of 402 windows every third pair is wet; a quarter of the dry ones stay."""

    minutes = 5 * np.arange(403)
    wet = np.where(np.arange(403) % 6 < 2, 50, 0)

    def starts(self, first=0, **options):
        """Return the numbers of the first frames of the windows, among all frames."""
        data = rainy(self.minutes, self.wet).isel(time=slice(first, None))
        options = {"keep_dry": 0.25, "wet_fraction": 0.2, "n_in": 1, "n_out": 1} | options
        recipes = windows(data, **options).recipes
        times = np.concatenate([r.source.time[r.windows[:, 0]] for r in recipes])
        return (times - instants([0])) // FIVE

    def test_wet_ones_stay_and_the_share_of_dry_ones(self):
        starts = self.starts()
        is_wet = self.wet[:-1] / 100 >= 0.2
        assert set(np.flatnonzero(is_wet)) <= set(starts)
        dry = len(set(starts) - set(np.flatnonzero(is_wet)))
        total = int((~is_wet).sum())
        # Within four standard deviations of the binomial distribution.
        assert abs(dry - 0.25 * total) < 4 * np.sqrt(0.25 * 0.75 * total)

    def test_a_seed_repeats_its_windows_and_another_seed_has_others(self):
        assert self.starts().tolist() == self.starts().tolist()
        assert set(self.starts(seed=1)) != set(self.starts())

    def test_partitions_do_not_matter(self):
        assert self.starts(partitions=7).tolist() == self.starts().tolist()

    def test_other_frames_do_not_matter(self):
        """A store that grew at either end keeps its old windows."""
        everything = self.starts()
        assert self.starts(first=101).tolist() == everything[everything >= 101].tolist()

    def test_a_larger_share_keeps_more_windows(self):
        assert set(self.starts(keep_dry=0.2)) < set(self.starts(keep_dry=0.6))
        assert len(self.starts(keep_dry=1.0)) == 402


# --- partitions and mistakes


@pytest.mark.parametrize(("partitions", "lengths"), [(1, [7]), (3, [2, 2, 3]), (99, [1] * 7)])
def test_partitions_are_stretches_of_time_of_equal_length(partitions, lengths):
    data = series(5 * np.arange(9))
    recipes = windows(data, n_in=2, n_out=1, partitions=partitions).recipes
    assert list(map(len, recipes)) == lengths
    assert first_frames(data, partitions=partitions) == list(range(7))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_in": 0}, "n_in: expected a whole number from 1, found 0"),
        ({"n_out": 1.5}, "n_out: expected a whole number from 1, found 1.5"),
        ({"stride": 0}, "stride: "),
        ({"partitions": 0}, "partitions: "),
        ({"keep_dry": 25}, "keep_dry: expected a fraction from 0 to 1, found 25"),
        ({"max_missing": -0.1}, "max_missing: "),
        ({"wet_fraction": float("nan")}, "wet_fraction: "),
        ({"seed": -1, "keep_dry": 0.5}, "seed: expected at least 0, found -1"),
        ({"step": 5}, "step: expected a positive timedelta such as .*, found 5$"),
        ({"step": "often"}, "step: .*found 'often'"),
        ({"step": timedelta(0)}, "step: .*found datetime.timedelta"),
        ({"times": ("yesterday", None)}, "times: expected a time .*found 'yesterday'"),
        ({"times": "2010"}, r"times: expected \(first, last\) or a slice, found '2010'"),
        ({"times": slice("2010", "2011", 2)}, "times: expected a slice without a step"),
        ({"tile": (0, 2)}, "tile: expected two numbers of cells from 1"),
        ({"tile": 4}, "tile: expected two numbers of cells from 1, found 4"),
        ({"tile": (2, 2), "tile_stride": 0}, r"tile_stride: expected two .*, found \(0, 0\)"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        windows(rainy([0, 5, 10], [0, 0, 0]), **{"n_in": 1, "n_out": 1} | options)


# --- as samples


def test_windows_of_a_store_once_per_epoch(tmp_path):
    data = series([*range(0, 60, 5), *range(90, 120, 5), 400], 4, 4)
    data.to_zarr(tmp_path / "rain.zarr", zarr_format=3, consolidated=False)
    samples = windows(tmp_path / "rain.zarr", n_in=3, n_out=2, tile=(2, 2), partitions=3)
    # 12 frames in a row give 8 windows, 6 give 2; each of 4 tiles.
    assert len(samples) == 40
    seen = []
    for batch in epoch(samples, 7, seed=3):
        assert batch["x"].shape[1:] == (3, 2, 2, 1)
        np.testing.assert_array_equal(batch["y"][:, 0], batch["x"][:, 0] + 300)
        seen.extend(batch["x"][:, 0, 0, 0, 0].astype(int).tolist())
    starts = [*range(8), 12, 13]
    assert sorted(seen) == sorted(100 * t + place for t in starts for place in (0, 2, 20, 22))


def test_windows_are_filtered_split_and_shuffled_over_their_frames():
    data = series(range(0, 150, 5), 4, 4)
    samples = windows(data, n_in=2, n_out=1, partitions=3)
    even = samples.filter(lambda batch: batch["x"][:, 0, 0, 0, 0] % 200 == 0)
    shuffled = everything(even.shuffle(1))
    assert sorted(shuffled["x"][:, 0, 0, 0, 0].astype(int).tolist()) == [*range(0, 2800, 200)]
    np.testing.assert_array_equal(shuffled["y"][:, 0], shuffled["x"][:, 0] + 200)
    # Windows that overlap still have their frames in memory once.
    loaded = even.recipes[0].load()
    assert loaded.nbytes == samples.recipes[0].load().nbytes


@pytest.mark.parametrize(
    ("hours", "wet", "archive", "events"),
    [
        ([0, 1, 4, 6], [0.1, 0.1, 0.0, 0.1], [0] * 4, [0, 0, 0, 0]),  # a short pause
        ([0, 1, 4, 7, 8], [0.1, 0.1, 0.0, 0.1, 0.1], [0] * 5, [0, 0, 0, 1, 1]),  # a long one
        ([0, 7, 9], [0.1, 0.0, 0.001], [0] * 3, [0, 0, 0]),  # dry cases are of the event before
        ([0, 1, 0, 1], [0.1] * 4, [0, 0, 1, 1], [0, 0, 1, 1]),
        (np.arange(0, 60, 0.5), [0.3] * 120, [0] * 120, [0] * 48 + [1] * 48 + [2] * 24),  # days
    ],
)
def test_events_end_with_a_pause_a_day_or_their_archive(hours, wet, archive, events):
    time = np.datetime64("2020-05-01T00:00") + (60 * np.array(hours)).astype("timedelta64[m]")
    assert event_labels(np.array(archive), time, np.array(wet)).tolist() == events
