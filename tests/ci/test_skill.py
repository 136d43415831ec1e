"""The skill benchmark: scores are right, and no fit saw the radar that judges it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from ci.bench.skill import __main__ as program
from ci.bench.skill.cases import EDGES, JUDGED, THRESHOLDS, Case, cases, method, run, score
from ci.bench.skill.events import Event
from ci.bench.skill.fitted import Logistic, cut, cut_counts, fill_in
from ci.bench.skill.results import POOL, Results
from nowcast.forecasters.forecast import Forecast
from nowcast.verification.probability import brier_parts
from tests.nowcast.stores import storms, translation

ONE = int(np.argmin(np.abs(EDGES)))  # the edge of 1 mm/h


def field(seed: int) -> np.ndarray:
    return storms((96, 96), seed)


def event(name: str, radar: str, seed: int = 0, frames: int = 30) -> Event:
    time = np.datetime64("2020-01-01T00:00", "ns") + np.arange(frames) * np.timedelta64(5, "m")
    return Event(name, radar, time, translation(frames, 0, 1, 96, 40, seed), 5, 1.0)


def scored(observed: np.ndarray, *of: str, **made: Forecast | np.ndarray) -> Case:
    """Return the case of some methods' fields or forecasts at one lead; ``of`` event and radar."""
    forecasts = {
        name: (one if isinstance(one, Forecast) else Forecast(one[np.newaxis]), 1.0)
        for name, one in made.items()
    }
    return score(event(*of or ("e", "a")), observed[np.newaxis], forecasts, np.array([True]))


def test_counts_of_a_cut_field_follow_the_definition() -> None:
    forecast, observed = 9 * field(1), 9 * field(2)
    case, wet = scored(observed, m=forecast), observed >= 1
    for threshold in (1.0, 5.0):
        said = forecast >= np.float32(threshold)
        edge = int(np.argmin(np.abs(EDGES - 10 * np.log10(threshold))))
        counts = (said & wet).sum(), (said & ~wet).sum(), (wet & ~said).sum()
        assert cut_counts(case.table[0, 0], edge) == counts


def test_a_perfect_forecast_is_perfect_and_blur_is_seen_in_the_detail() -> None:
    observed = field(3)
    blurred = ndimage.gaussian_filter(observed, 3)
    case = scored(observed, perfect=observed, blurred=blurred)
    scores = Results([case], ["perfect", "blurred"], [30]).scores(POOL, 30)
    perfect = scores.sel(forecaster="perfect, field").isel(threshold=JUDGED)
    assert perfect["csi"] == perfect["fss"] == 1
    assert scores["detail"][0] == 1
    assert scores["detail"][1] < 0.5


def test_cut_is_found_where_the_field_is_half_as_strong() -> None:
    observed = field(4)
    table = scored(observed, m=observed / 2).table[0, 0]
    assert EDGES[cut([table])] == pytest.approx(10 * np.log10(0.5), abs=0.11)
    assert cut([]) == ONE
    for edge, low, high in ((cut([table]), 0.98, 1), (ONE, 0, 0.97)):
        hits, *others = cut_counts(table, edge)
        assert low < hits / (hits + sum(others)) <= high


def test_logistic_is_calibrated_on_the_data_of_its_fit() -> None:
    observed = field(5)
    noisy = observed * np.exp(np.random.default_rng(0).normal(size=observed.shape)).astype("f4")
    table = scored(observed, m=noisy).table[0, 0]
    sums = Logistic.fit([table]).brier_sums(table)
    assert sums[:, 1].sum() == pytest.approx(sums[:, 3].sum(), rel=1e-2)
    _, false_alarms, misses = cut_counts(table, ONE)
    assert brier_parts(sums).score < 0.9 * (false_alarms + misses) / sums[:, 0].sum()


def test_members_give_a_probability_that_no_fit_replaces() -> None:
    observed = field(6)
    members = np.stack([observed, np.zeros_like(observed)])[:, np.newaxis]
    case = scored(observed, m=Forecast(members.mean(0), members=members))
    fill_in([case])
    wet = (observed >= 1).mean()
    assert brier_parts(case.probability[0, 0]).score == pytest.approx(wet * 0.25, rel=1e-6)


def test_fits_leave_out_the_radar_that_judges_them() -> None:
    made = [
        scored(field(7), "a1", "a", m=field(7) / 2),
        scored(field(7), "a2", "a", m=field(7) / 2),
        scored(field(8), "b", "b", m=field(8)),
    ]
    fill_in(made)
    # Event a1 would be cut at 0.5 if the fit had a2, which is of the same radar.
    for case, decibel in zip(made, (0, 0, -3), strict=True):
        edge = int(np.argmin(np.abs(EDGES - decibel)))
        hits, false_alarms, misses = cut_counts(case.table[0, 0], edge)
        assert case.sums.hits[0, 0, JUDGED] == pytest.approx(hits, rel=0.02)
        assert case.sums.false_alarms[0, 0, JUDGED] == pytest.approx(false_alarms, rel=0.1)
        assert case.sums.misses[0, 0, JUDGED] == pytest.approx(misses, rel=0.1)


def test_yes_and_no_of_a_forecast_stays_and_its_field_is_scored_apart() -> None:
    observed = field(1)
    probability = np.stack([(observed >= np.float32(t))[np.newaxis] for t in THRESHOLDS])
    least = np.full((len(THRESHOLDS), 1), 0.5, np.float32)
    dry = np.zeros_like(observed)[np.newaxis]
    case = scored(observed, m=Forecast(dry, THRESHOLDS, np.float32(probability), None, least))
    fill_in([case])
    scores = Results([case], ["m"], [30]).scores(POOL, 30).isel(threshold=JUDGED)
    assert scores["csi"].sel(forecaster="m") == 1
    assert scores["csi"].sel(forecaster="m, field") == 0
    assert scores["prob_brier"].item() == 0


def test_starts_are_regular_rainy_and_valid_times_common(tmp_path: Path) -> None:
    made = event("a", "a")
    made.rain[6:13] = 0
    assert made.starts(4, [30, 60], 15) == [3, 15]
    assert event("a", "a").starts(4, [30, 60], 15) == [3, 6, 9, 12, 15]
    settings = ["persistence"], [30, 60], 15, None, tmp_path
    assert not list(cases(made, *settings))
    both = [case.scored.tolist() for case in cases(event("a", "a"), *settings)]
    # Starts are 6, 9, 12 and 15: of them frames 18 and 21 are forecast at +30 and at +60.
    assert both == [[False, True], [False, True], [True, False], [True, False]]


@pytest.mark.slow
def test_extrapolation_beats_persistence(tmp_path: Path) -> None:
    methods = ["persistence", "extrapolation"]
    made = []
    for name, seed in (("a", 0), ("b", 1)):
        made += cases(event(name, name, seed), methods, [30, 60], 15, None, tmp_path)
    fill_in(made)
    results = Results(made, methods, [30, 60])
    for lead in (30, 60):
        assert len(results.of("a", lead)) == len(results.of("b", lead)) >= 2
        csi = results.scores(POOL, lead)["csi"].isel(threshold=JUDGED)
        still, moved = (csi.sel(forecaster=f"{name}, field") for name in methods)
        assert moved > still + 0.3


def test_forecasts_of_peers_are_read_from_the_cache(tmp_path: Path) -> None:
    pytest.importorskip("pysteps")
    pytest.importorskip("cv2")
    made = event("a", "a")
    call = "pysteps:extrapolation", method("pysteps:extrapolation", "a"), made.rain[:5], made
    first, seconds = run(*call, [6, 12], tmp_path)
    second, again = run(*call, [6, 12], tmp_path)
    np.testing.assert_array_equal(first.rain, second.rain)
    assert seconds == again > 0  # another run would have taken another time


@pytest.mark.long
def test_program_on_a_real_event(radar_dir: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    arguments = {
        "--data": radar_dir, "--cache": tmp_path / "cache", "--events": "knmi", "--starts": 3,
        "--methods": "persistence,extrapolation",
    }  # fmt: skip
    words = [str(word) for pair in arguments.items() for word in pair]
    monkeypatch.setattr("sys.argv", ["skill", *words])
    program.main()
    lines = capsys.readouterr().out.splitlines()
    assert "knmi-20100826, +60 min, 2 valid times" in lines
    for lead in (30, 60):
        (at,) = (i for i, x in enumerate(lines) if x.startswith(f"{POOL}, +{lead} min"))
        still, moved = (line.replace("~", " ").split() for line in lines[at + 2 : at + 4])
        assert (still[0], moved[0]) == ("persistence", "extrapolation")
        assert float(moved[2]) > float(still[2])  # CSI of 1 mm/h
        assert float(moved[11]) < float(still[11])  # Brier score


def test_each_source_has_a_row_of_gains_with_an_interval_over_events() -> None:
    good, poor = field(1), field(2)
    made = {"auto": good, "extrapolation": poor}
    made |= {"pysteps:sprog": poor, "pysteps:extrapolation": good}
    one = scored(field(1), **made)
    fill_in([one])
    where = {"a1": "a", "a2": "a", "b": "b", "c": "c"}
    alike = [replace(one, event=e, radar=r) for e, r in where.items() for _ in range(3)]
    results = Results(alike, list(made), [30])
    csi = results.scores("b", 30)["csi"].isel(threshold=JUDGED)
    gain = float(csi.sel(forecaster="auto") - csi.sel(forecaster="pysteps:sprog"))
    fields = [csi.sel(forecaster=f"{name}extrapolation, field") for name in ("", "pysteps:")]
    assert gain > 0.3
    rows = list(results.by_source())
    # All cases are alike: the interval of four events has no width; two events have none.
    (cells,) = ([c.strip() for c in row.split("|")] for row in rows if row.startswith("| all"))
    assert cells[3] == "4, 12"
    assert cells[4] == f"{gain:+.3f} [{gain:+.3f} {gain:+.3f}]"
    assert cells[5].startswith(f"{float(fields[0] - fields[1]):+.3f} [")
    (cells,) = ([c.strip() for c in row.split("|")] for row in rows if row.startswith("| a |"))
    assert cells[3:5] == ["2, 6", f"{gain:+.3f}"]
    assert list(Results(alike, ["extrapolation"], [30]).by_source()) == []
