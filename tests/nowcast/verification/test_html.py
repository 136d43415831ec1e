"""The report of a verification: one file without links to others."""

from __future__ import annotations

import base64
import re

import numpy as np
import pytest
import xarray as xr

from nowcast.forecasters import Forecast, forecaster
from nowcast.plot.probabilistic import plot_probabilistic
from nowcast.verification import findings, verify
from nowcast.verification.html import write_report
from tests.nowcast.stores import Answers, moving_rain


def ensemble() -> Answers:
    """Return a forecaster whose members are multiples of the last frame."""

    def answer(frames: np.ndarray, leads: int) -> Forecast:
        still = np.repeat(frames[-1:], leads, 0)
        factors = np.array([0.3, 0.8, 1.2, 2.0], np.float32)
        return Forecast(still, members=still * factors[:, None, None, None])

    return Answers(answer)


@pytest.fixture(scope="module")
def made():
    store = moving_rain(title="Rain rate of <Test> & Co")
    methods = {"extrapolation": forecaster("extrapolation"), "members": ensemble()}
    scores = verify(
        store["rain_rate"], methods, 2, thresholds=(0.1, 1.0), scales=(1, 5),
        reference="extrapolation",
    )  # fmt: skip
    scores.attrs["source"] = store.attrs["title"]
    return scores, store, methods


@pytest.mark.slow
def test_report_has_all_pictures_and_fetches_nothing(made, tmp_path):
    scores, store, methods = made
    write_report(scores, tmp_path / "verify.html", [store], methods)
    text = (tmp_path / "verify.html").read_text(encoding="utf-8")
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert len(pictures) == 3
    for data in pictures:
        assert base64.b64decode(data)[:4] == b"\x89PNG"
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert "&lt;Test&gt; &amp; Co" in text
    for sentence in findings(scores):
        assert sentence.replace("'", "&#x27;") in text
    csi = float(scores["csi"].sel(forecaster="members", threshold=1.0)[-1])
    assert f"<td>{csi:.3f}</td>" in text
    assert text.count("<table>") == 4
    assert "imulated" not in text
    assert [path.name for path in tmp_path.iterdir()] == ["verify.html"]


@pytest.mark.slow
def test_simulated_data_is_called_so_and_faults_stand_out(made, tmp_path):
    scores, store, methods = made
    scores = scores.assign_attrs(simulated=1)
    scores = scores.assign_coords(forecaster=["extrapolation", "persistence"])
    scores["csi"].loc[{"forecaster": "persistence"}] = 1.1
    write_report(scores, tmp_path / "verify.html", [store], methods)
    text = (tmp_path / "verify.html").read_text(encoding="utf-8")
    assert "<p class=fault>Simulated data.</p>" in text
    assert "<li class=fault>Fault of the motion" in text


def test_reliability_needs_probabilities(made, tmp_path, monkeypatch):
    from nowcast.plot import probabilistic

    figures = []
    monkeypatch.setattr(probabilistic, "save", lambda figure, path: figures.append(figure))
    scores, _, _ = made
    plot_probabilistic(scores, tmp_path / "x.png")
    deterministic = scores.sel(forecaster=["extrapolation"]).drop_vars("rank_histogram")
    plot_probabilistic(deterministic, tmp_path / "x.png")
    titles = [[axes.get_title() for axes in figure.axes] for figure in figures]
    assert titles[0] == [
        "reliability, 0.1 mm h$^{-1}$", "reliability, 1 mm h$^{-1}$", "rank histogram",
        "power, forecast / observed",
    ]  # fmt: skip
    assert titles[1] == ["power, forecast / observed"]


LEADS = (5, 10, 15, 20)


def scores(
    low: np.ndarray, high: np.ndarray, csi: np.ndarray | None = None, events: int = 9
) -> xr.Dataset:
    """Scores of two forecasters with intervals (threshold, lead) of extrapolation's gain."""
    dims = ("forecaster", "lead_time", "threshold")
    shape = (2, len(LEADS), low.shape[0])
    values = {}
    for end, data in (("low", low), ("high", high)):
        both = np.zeros(shape)
        both[0] = data.T
        values[f"csi_difference_{end}"] = (dims, both)
    values["csi"] = (dims, np.full(shape, 0.5) if csi is None else csi)
    nothing = np.full(shape, np.nan)
    values |= {"roc_area": (dims, nothing), "crps_difference": (dims[:2], nothing[..., 0])}
    return xr.Dataset(
        values,
        coords={
            "forecaster": ["extrapolation", "persistence"],
            "lead_time": np.array(LEADS) * np.timedelta64(60, "s"),
            "threshold": [0.1, 1.0, 10.0, 30.0][: low.shape[0]],
        },
        attrs={"reference": "persistence", "n_events": events},
    )


def test_leads_are_named_as_runs_and_thresholds_together():
    low = np.array([[-1, 0.1, 0.1, 0.1]] * 2 + [[-1, -1, -1, -1], [np.nan] * 4])
    high = np.array([[1, 0.2, 0.2, 0.2]] * 2 + [[-0.5, 1, 1, 1], [np.nan] * 4])
    assert findings(scores(low, high)) == [
        "extrapolation against persistence: CSI at 0.1 and 1 mm/h: better from +10 to +20 min, "
        "else no difference; at 10 mm/h: worse at +5 min, else no difference; at 30 mm/h: too few "
        "events."
    ]


def test_better_and_worse_need_an_interval_without_zero():
    low = np.array([[-0.1, -0.1, 0.0, -0.01]])
    assert findings(scores(low, low + 0.2)) == [
        "extrapolation against persistence: CSI at 0.1 mm/h: no difference."
    ]


def test_few_events_get_a_sentence():
    low = np.array([[0.1] * 4])
    assert findings(scores(low, low + 0.1, events=2))[1:] == [
        "The intervals are from 2 events: other weather may give another order."
    ]
    assert findings(scores(low * np.nan, low * np.nan)) == [
        "Too few independent cases for intervals: nothing can be said of who is better."
    ]


def test_extrapolation_below_persistence_is_a_fault_of_the_motion():
    low = np.array([[0.1] * 4] * 2)
    csi = np.full((2, 4, 2), 0.5)
    csi[0, 1:3, 1] = 0.4
    first = findings(scores(low, low, csi))[0]
    assert first == (
        "Fault of the motion: extrapolation is below persistence at 1 mm/h from +10 to +15 min; "
        "look at the motion before anything that builds on it."
    )
