"""The gate: which networks may be used by default."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from nowcast.lagrangian.exceedance import SHIPPED
from nowcast.model.model import NowcastModel
from nowcast.model.moving.model import MovingModel
from nowcast.model.moving.networks import Averaged, network
from nowcast.model.split import Split, Stretch
from nowcast.rain.identity import name_of
from nowcast.rain.store import write_zarr
from nowcast.verification.gate import judge, verdict
from tests.nowcast.stores import N_IN, N_OUT, moving_rain, small_model


def scores(low: list[list[float]], high: list[list[float]], events: int = 5) -> xr.Dataset:
    """Scores with the differences of a model from S-PROG by (lead, threshold)."""
    dims = ("forecaster", "lead_time", "threshold")
    both = {"low": np.array([low, low]), "high": np.array([high, high])}
    values = {f"csi_difference_{end}": (dims, data) for end, data in both.items()}
    shape = both["low"].shape
    values["csi_difference"] = (dims, (both["low"] + both["high"]) / 2)
    values["csi"] = (dims, np.full(shape, 0.5))
    values["roc_area"] = (dims, np.full(shape, np.nan))
    values["crps_difference"] = (dims[:2], np.full(shape[:2], np.nan))
    return xr.Dataset(
        values,
        coords={
            "forecaster": ["model", "sprog"],
            "lead_time": np.array([30, 60]) * np.timedelta64(60, "s"),
            "threshold": [0.1, 1.0, 5.0],
        },
        attrs={"reference": "sprog", "n_events": events, "n_cases": 40},
    )


SAME = [[-0.1] * 3] * 2, [[0.1] * 3] * 2


#: Better at 1 mm/h and one hour, and nowhere worse; intervals by (lead, threshold).
BETTER = [[-0.1, -0.1, -0.1], [-0.1, 0.01, -0.1]], SAME[1]
MIXED = [[-0.2, -0.1, -0.1], [-0.1, 0.01, -0.1]], [[-0.1, 0.1, 0.1], [0.1, 0.1, 0.1]]


@pytest.mark.parametrize(
    ("interval", "events", "simulated", "passed", "sentence"),
    [
        (BETTER, 5, False, True, "better than sprog at 1 mm/h on 5 events it has not seen"),
        (BETTER, 5, True, True, "better than sprog at 1 mm/h on 5 simulated events it has not"),
        (MIXED, 5, False, False, "worse than sprog on events it has not seen"),
        (SAME, 5, False, False, "no better than sprog on 5 events it has not seen"),
        (BETTER, 2, False, False, "not shown to be better than sprog: the test part has 2 events, "
         "expected 3 or more"),
    ],
)  # fmt: skip
def test_a_network_passes_that_is_better_somewhere_and_worse_nowhere(
    interval, events, simulated, passed, sentence
):
    made = verdict(scores(*interval, events=events), simulated=simulated)
    assert made.passed is passed
    assert made.to_dict()["simulated"] is simulated
    assert made.sentence.startswith(sentence)


def test_a_verdict_has_differences_and_findings():
    made = verdict(scores(*BETTER))
    assert made.csi_difference["60"] == pytest.approx([0.055, 0.01, 0.1])
    assert "model against sprog: CSI at 0.1 and 5 mm/h: no difference" in made.findings[0]


@pytest.mark.slow
def test_an_untrained_network_fails_and_one_simulated_store_is_noticed(tmp_path):
    paths, names = [], []
    for number in range(3):
        store = moving_rain(title=f"store {number}", simulated=int(number == 1))
        write_zarr(store, tmp_path / f"{number}.zarr")
        paths.append(tmp_path / f"{number}.zarr")
        names.append(name_of(store))
    model = small_model()
    first, last = np.datetime64("2020-06-01T00:00"), np.datetime64("2020-06-01T04:00")
    test = tuple(Stretch(name, first, last) for name in names)
    model = NowcastModel(
        model.network, model.step, model.spacing, model.scale,
        Split(model.split.train, model.split.validation, test), {},
    )  # fmt: skip
    made = judge(model, paths)
    assert made.n_events == 3
    assert made.simulated
    assert not made.passed
    assert made.sentence == "worse than sprog on events it has not seen"
    assert all(low < 0 for _, low, _ in made.csi_difference.values())


@pytest.mark.slow
def test_without_a_long_stretch_nothing_is_shown(tmp_path):
    write_zarr(moving_rain(title="other"), tmp_path / "rain.zarr")
    made = judge(small_model(), [tmp_path / "rain.zarr"])
    assert not made.passed
    assert made.sentence.startswith("not shown to be better than sprog: there is no test stretch")
    assert (N_IN, N_OUT) == (2, 3)


@pytest.mark.slow
def test_stores_whose_steps_do_not_divide_are_left_out_and_counted(tmp_path):
    # 15 min is no whole number of 10 min.
    stores = [moving_rain(), moving_rain(15 * np.arange(24), title="slow")]
    first, last = np.datetime64("2020-06-01T00:00"), np.datetime64("2020-06-01T07:00")
    for number, store in enumerate(stores):
        write_zarr(store, tmp_path / f"{number}.zarr")
    parts = tuple(Stretch(name_of(store), first, last) for store in stores)
    networks = Averaged([network("small", 0)]).eval()
    model = MovingModel(networks, (10.0,), (1.0,), 30, SHIPPED, Split((), (), parts), {})
    made = judge(model, [tmp_path / f"{number}.zarr" for number in range(2)])
    assert "1 of 2 test stretches were left out, as the longest step, 15 min" in made.sentence
    assert "1 of 2" in made.findings[-1]
