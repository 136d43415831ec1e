"""The skill benchmark: scores are right, and no fit saw the radar that judges it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from ci.bench.skill import __main__ as program
from ci.bench.skill import methods
from ci.bench.skill.events import Event
from ci.bench.skill.fitted import Logistic, calibrated_threshold
from ci.bench.skill.results import POOL, Results, compare
from ci.bench.skill.scores import THRESHOLDS, Forecast, Scores, score
from ci.bench.skill.table import by_source
from daskdl.errors import SettingsError
from nowcast.verification.probability import brier_parts
from tests.nowcast.stores import storms, translation


def field(seed: int) -> np.ndarray:
    return storms((96, 96), seed)


def scored(forecast: np.ndarray, observed: np.ndarray, **more) -> Scores:
    made = Forecast(forecast[np.newaxis], **more)
    return score(made, 0, observed, np.isfinite(observed), spacing=1.0)


def test_counts_follow_the_definition() -> None:
    forecast, observed = 9 * field(1), 9 * field(2)
    scores = scored(forecast, observed)
    for threshold in THRESHOLDS:
        f, o = forecast >= np.float32(threshold), observed >= np.float32(threshold)
        assert scores.csi(threshold) == pytest.approx((f & o).sum() / (f | o).sum())
        assert scores.counts(threshold) == ((f & o).sum(), (f & ~o).sum(), (o & ~f).sum())
    assert scores.crps[1] == pytest.approx(np.abs(forecast - observed).sum(), rel=1e-5)


def test_a_perfect_forecast_is_perfect() -> None:
    observed = field(3)
    scores = scored(observed, observed)
    assert scores.csi(1.0) == scores.fss(1.0) == 1
    assert scores.detail[0] == scores.detail[1] > 0


def test_threshold_is_found_where_the_field_is_half_as_strong() -> None:
    observed = field(4)
    scores = scored(observed / 2, observed)
    assert calibrated_threshold([scores], 1.0) == pytest.approx(0.5, rel=0.03)
    assert scores.csi(1.0, 0.5) > 0.98 > scores.csi(1.0)
    assert calibrated_threshold([], 1.0) == 1


def test_logistic_is_calibrated_on_the_data_of_its_fit() -> None:
    observed = field(5)
    noisy = observed * np.exp(np.random.default_rng(0).normal(size=observed.shape)).astype("f4")
    scores = scored(noisy, observed)
    sums = Logistic.fit([scores], 1.0).brier_sums(scores, 1.0)
    assert sums[:, 1].sum() == pytest.approx(sums[:, 3].sum(), rel=1e-2)
    _, false_alarms, misses = scores.counts(1.0)
    assert brier_parts(sums).score < 0.9 * (false_alarms + misses) / sums[:, 0].sum()


def test_members_give_a_probability() -> None:
    observed = field(6)
    members = np.stack([observed, np.zeros_like(observed)])[:, np.newaxis]
    scores = scored(members.mean(0)[0], observed, members=members)
    event = (observed >= 1).mean()
    assert brier_parts(scores.brier).score == pytest.approx(event * 0.25, rel=1e-6)


def test_fits_leave_out_the_radar_that_judges_them() -> None:
    half, whole = scored(field(7) / 2, field(7)), scored(field(8), field(8))
    cases = {
        (event, "m", lead): [scores]
        for event, scores in {"a1": half, "a2": half, "b": whole}.items()
        for lead in (30, 60)
    }
    results = Results(cases, {"a1": "a", "a2": "a", "b": "b"}, ["m"])
    # Event a1 would be cut at 0.5 if the fit had a2, which is of the same radar.
    assert results.threshold("a1", "m", 30, 1.0) == pytest.approx(1, rel=0.03)
    assert results.threshold("b", "m", 30, 1.0) == pytest.approx(0.5, rel=0.03)
    assert len(results.others("b", "m", 30)) == 1


def event(name: str, radar: str, seed: int, frames: int = 30) -> Event:
    time = np.datetime64("2020-01-01T00:00", "ns") + np.arange(frames) * np.timedelta64(5, "m")
    return Event(name, radar, time, translation(frames, 0, 1, 96, 40, seed), 5, 1.0)


def test_starts_are_regular_rainy_and_valid_times_common() -> None:
    made = event("a", "a", 0)
    made.rain[6:13] = 0
    starts = made.starts(4, [30, 60], 15)
    assert starts == [3, 15]
    assert event("a", "a", 0).starts(4, [30, 60], 15) == [3, 6, 9, 12, 15]
    assert event("a", "a", 0).common_valid_times([3, 6, 9, 12, 15], [30, 60]) == {15, 18, 21}


@pytest.mark.slow
def test_extrapolation_beats_persistence(tmp_path: Path) -> None:
    events = [event("a", "a", 0), event("b", "b", 1)]
    results = compare(
        events,
        ["persistence", "extrapolation"],
        [30, 60],
        every=15,
        most=None,
        cache=tmp_path,
        say=lambda _: None,
    )
    for lead in (30, 60):
        assert len(results.cases["a", "extrapolation", lead]) == 2
        still, moved = (results.sums(POOL, m, lead).csi(1.0) for m in results.methods)
        assert moved > still + 0.3


def test_forecasts_of_peers_are_read_from_the_cache(tmp_path: Path) -> None:
    pytest.importorskip("pysteps")
    pytest.importorskip("cv2")
    made = event("a", "a", 0)
    first = methods.run("pysteps:extrapolation", made, 5, [30, 60], tmp_path)
    (cached,) = tmp_path.rglob("*.npz")
    stamp = cached.stat().st_mtime_ns
    second = methods.run("pysteps:extrapolation", made, 5, [30, 60], tmp_path)
    assert cached.stat().st_mtime_ns == stamp
    np.testing.assert_array_equal(first.rain, second.rain)
    assert first.seconds == second.seconds > 0


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


def test_blur_is_seen_in_the_detail() -> None:
    observed = field(9)
    scores = scored(ndimage.gaussian_filter(observed, 3), observed)
    assert scores.detail[0] < 0.5 * scores.detail[1]


def test_decisions_of_a_forecast_count_instead_of_its_cut_field() -> None:
    observed = field(1)
    yes = {t: (observed >= np.float32(t))[np.newaxis] for t in THRESHOLDS}
    scores = scored(np.zeros_like(observed), observed, yes=yes)
    results = Results({("e", "m", lead): [scores] for lead in (30, 60)}, {"e": "a"}, ["m"])
    assert results.calibrated_csi("e", "m", 30, 1.0) == 1
    assert scores.csi(1.0) == 0
    assert scores.fss(1.0) == 0  # of the field


def test_gain_has_an_interval_over_events() -> None:
    good, poor = scored(field(1), field(1)), scored(field(2), field(1))
    cases = {}
    for event in "abcd":
        for lead in (30, 60):
            cases[event, "good", lead], cases[event, "poor", lead] = [good] * 4, [poor] * 4
    results = Results(cases, {event: event for event in "abcd"}, ["good", "poor"])
    gain = results.calibrated_csi(POOL, "good", 30, 1.0) - results.calibrated_csi(
        POOL, "poor", 30, 1.0
    )
    # All cases are alike: the interval has no width.
    np.testing.assert_allclose(results.gain("good", "poor", 30, 1.0), [gain] * 3)
    assert gain > 0.3
    uncut = good.csi(1.0) - poor.csi(1.0)
    assert results.gain("good", "poor", 30, 1.0, "b", cut=False)[0] == pytest.approx(uncut)


def test_each_source_has_a_row_of_gains() -> None:
    good, poor = scored(field(1), field(1)), scored(field(2), field(1))
    by_method = {"auto": good, "pysteps:sprog": poor, "extrapolation": poor}
    by_method["pysteps:extrapolation"] = good
    radars = {"a1": "a", "a2": "a", "b": "b"}
    cases = {(e, m, lead): [by_method[m]] for e in radars for m in by_method for lead in (30, 60)}
    results = Results(cases, radars, list(by_method))
    rows = [line for line in by_source(results) if line.startswith("| a | +60 | 2, 2 |")]
    (cells,) = ([cell.strip() for cell in row.split("|")] for row in rows)
    gain = good.csi(1.0) - poor.csi(1.0)
    assert cells[4].startswith(f"{results.gain('auto', 'pysteps:sprog', 60, 1.0, 'a')[0]:+.3f} [")
    assert cells[5].startswith(f"{-gain:+.3f} [")
    assert by_source(Results(cases, radars, ["auto"])) == []


def test_unknown_methods_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"--methods: expected names among .*, found 'magic'"):
        methods.run("magic", event("a", "a", 0), 5, [30], tmp_path)
