from __future__ import annotations

import json
import math

import matplotlib as mpl
import numpy as np
import pytest

from daskdl.train.engines.step import PHASES, Record
from daskdl.train.watch.history import COLUMNS, History
from tests.daskdl.train.runs import fit, problem


def record(loss: float, samples: int, finished: float) -> Record:
    return Record(loss, samples, 0.1, 0.2, 0.3, 0.4, finished)


def two_groups() -> History:
    """Return three iterations and one, with an epoch at each group's end."""
    history = History()
    history.add([record(3.0, 8, 100.5), record(2.0, 8, 101.5), record(1.0, 2, 103.5)], 4.0)
    history.epochs.append({"epoch": 0, "iteration": 3, "loss": 7 / 3, "val_loss": 1.5})
    history.add([record(0.5, 8, 90.0)], 1.25)  # by the clock of another worker
    history.epochs.append({"epoch": 1, "iteration": 4, "loss": 0.5, "val_loss": float("nan")})
    return history


def test_every_iteration_has_a_row():
    history = two_groups()
    assert len(history) == 4
    for name in COLUMNS:
        assert history[name].dtype == np.float64
        assert history[name].shape == (4,)
    np.testing.assert_array_equal(history["loss"], [3, 2, 1, 0.5])
    np.testing.assert_array_equal(history["samples"], [8, 8, 2, 8])
    np.testing.assert_array_equal(history["update"], [0.4] * 4)


def test_seconds_of_a_groups_iterations_sum_up_to_the_groups():
    np.testing.assert_array_equal(two_groups()["seconds"], [1, 1, 2, 1.25])


def test_the_rest_of_an_iteration_is_wait():
    history = History()
    one = Record(1.0, 8, 0.1, 0.2, 0.3, 0.4, 100.0, reduce=0.5, broadcast=0.25, idle=0.125)
    history.add([one], 2.0)
    history.add([one], 1.0)  # phases of different members may overlap
    np.testing.assert_allclose(history["wait"], [0.125, 0], atol=1e-12)
    assert history["reduce"].tolist() == [0.5, 0.5]
    assert history["broadcast"].tolist() == [0.25, 0.25]
    np.testing.assert_allclose(sum(history[name] for name in PHASES)[0], history["seconds"][0])


def test_metrics_of_training_batches_are_columns_and_means_of_epochs():
    def measured(samples, *metrics):
        return Record(1.0, samples, 0, 0, 0, 0, 100.0, metrics=metrics)

    history = History()
    history.add([measured(8)], 1.0)  # before a metric was asked for
    history.add([measured(6, 0.5, 3.0), measured(2, 1.0, math.nan)], 1.0, ["accuracy", "auc"])
    assert history.metrics == ["accuracy", "auc"]
    np.testing.assert_array_equal(history["accuracy"], [math.nan, 0.5, 1.0])
    assert history.since(1)["accuracy"] == 0.625
    assert history.since(1)["auc"] == 3.0  # over the batches that have one
    assert math.isnan(history.since(3)["auc"])
    again = History.from_arrays(history.arrays(), [])
    np.testing.assert_array_equal(again.to_frame()["auc"], [math.nan, 3.0, math.nan])
    history.add([measured(8)], 1.0)  # and after
    assert math.isnan(history["accuracy"][-1])


def test_a_clock_that_goes_back_gives_no_time_below_zero():
    history = History()
    history.add([record(1, 1, 10.0), record(1, 1, 9.0), record(1, 1, 15.0)], 5.0)
    np.testing.assert_array_equal(history["seconds"], [0, 0, 6])


def test_the_mean_loss_is_over_samples():
    means = two_groups().since(1)
    assert (means["loss"], means["samples"], means["seconds"]) == ((16 + 2 + 4) / 18, 18, 4.25)
    assert means["samples_per_second"] == 18 / 4.25
    assert means["update"] == pytest.approx(3 * 0.4)
    assert list(means) == ["loss", "samples", "seconds", "samples_per_second", *PHASES]
    assert np.isnan(two_groups().since(4)["samples_per_second"])


def test_an_interruption_is_cut_off_even_amid_a_row():
    history = two_groups()
    history._columns["loss"].append(9.0)
    history.cut(3)
    assert {len(history[name]) for name in COLUMNS} == {3}
    assert [row["iteration"] for row in history.epochs] == [3]


@pytest.mark.parametrize("made", [two_groups, History])
def test_a_checkpoint_gives_back_the_same(made):
    history = made()
    epochs = json.loads(json.dumps(history.epochs))
    back = History.from_arrays(history.arrays(), epochs)
    assert repr(back.to_dict()) == repr(history.to_dict())  # types and NaN, too
    back.epochs.append({"epoch": 2})
    assert len(epochs) == len(history.epochs)


def test_plain_data_is_a_copy():
    history = two_groups()
    data = history.to_dict()
    assert set(data) == {"iterations", "epochs"}
    assert data["iterations"]["loss"] == [3, 2, 1, 0.5]
    data["iterations"]["loss"].clear()
    data["epochs"][0].clear()
    assert len(history) == 4
    assert history.epochs[0]["iteration"] == 3


def test_a_frame_has_a_row_an_iteration():
    frame = two_groups().to_frame()
    assert tuple(frame.columns) == (*COLUMNS[:3], "samples_per_second", *COLUMNS[3:])
    assert frame.index.name == "iteration"
    assert frame["samples_per_second"].tolist() == [8, 8, 1, 6.4]
    assert frame["samples"].tolist() == [8, 8, 2, 8]
    assert frame["samples"].dtype == np.int64
    assert History().to_frame().shape == (0, len(COLUMNS) + 1)


def test_a_frame_of_epochs_has_their_rows():
    frame = two_groups().to_frame(epochs=True)
    assert frame.index.name == "epoch"
    assert list(frame.columns) == ["iteration", "loss", "val_loss"]
    assert frame["iteration"].tolist() == [3, 4]
    assert History().to_frame(epochs=True).shape == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [None, "graph", "gang"])
def test_fits_of_all_engines_have_all_columns(engine, client_of):
    options = {} if engine is None else {"client": client_of(2), "engine": engine}
    history = fit(problem(), validation=problem(2), epochs=2, **options).history
    frame, epochs = history.to_frame(), history.to_frame(epochs=True)
    assert len(frame) == 14
    assert len(epochs) == 2
    assert not frame.isna().any(axis=None)
    assert not epochs.isna().any(axis=None)
    some = ["data", "forward", "backward", "update"] + 2 * (engine == "gang") * ["reduce"]
    for name in ("loss", "samples", "seconds", *some):
        assert (frame[name] > 0).all(), name
    parts = frame[[*PHASES]].sum(axis=1)
    assert (parts >= frame["seconds"] - 1e-9).all()  # wait is the rest
    for name in ("samples", "seconds", *PHASES):
        sums = frame[name].to_numpy().reshape(2, 7).sum(1)
        np.testing.assert_allclose(epochs[name], sums, rtol=1e-9)
    np.testing.assert_allclose(epochs["samples_per_second"], 53 / epochs["seconds"])
    assert {"loss", "val_loss", "validation", "iteration"} <= {*epochs.columns}


def test_a_repr_names_iterations_epochs_and_losses():
    assert repr(two_groups()) == "History(4 iterations, 2 epochs, loss=0.5, val_loss=nan)"
    assert repr(History()) == "History(0 iterations, 0 epochs)"


def test_a_plot_draws_iterations_and_epochs():
    with mpl.rc_context({"backend": "agg"}):
        from matplotlib.figure import Figure

        ax = Figure().subplots()
        assert two_groups().plot(ax) is ax
        lines = {line.get_label(): line.get_xydata() for line in ax.get_lines()}
        np.testing.assert_array_equal(lines["epoch"], [[3, 7 / 3], [4, 0.5]])
        np.testing.assert_array_equal(lines["iteration"][:, 1], [3, 2, 1, 0.5])
        assert len(lines["validation"]) == 2
        fresh = two_groups()
        fresh.epochs = [{"epoch": 0, "iteration": 3, "loss": 2.0}]
        labels = [line.get_label() for line in fresh.plot(Figure().subplots()).get_lines()]
        assert labels == ["iteration", "epoch"]
