from __future__ import annotations

import json

import matplotlib as mpl
import numpy as np
import pytest

from daskdl.train.history import COLUMNS, PHASES, History
from daskdl.train.step import Record


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


def test_every_iteration_has_a_row() -> None:
    history = two_groups()
    assert len(history) == 4
    for name in COLUMNS:
        assert history[name].dtype == np.float64
        assert history[name].shape == (4,)
    np.testing.assert_array_equal(history["loss"], [3, 2, 1, 0.5])
    np.testing.assert_array_equal(history["samples"], [8, 8, 2, 8])
    np.testing.assert_array_equal(history["update"], [0.4] * 4)


def test_seconds_of_a_groups_iterations_sum_up_to_the_groups() -> None:
    np.testing.assert_array_equal(two_groups()["seconds"], [1, 1, 2, 1.25])


def test_what_is_left_of_an_iteration_is_wait() -> None:
    history = History()
    one = Record(1.0, 8, 0.1, 0.2, 0.3, 0.4, 100.0, reduce=0.5, broadcast=0.25)
    history.add([one], 2.0)
    history.add([one], 1.0)  # phases of different members may overlap
    np.testing.assert_allclose(history["wait"], [0.25, 0])
    assert history["reduce"].tolist() == [0.5, 0.5]
    assert history["broadcast"].tolist() == [0.25, 0.25]
    np.testing.assert_allclose(sum(history[name] for name in PHASES)[0], history["seconds"][0])


def test_a_checkpoint_from_before_a_phase_was_known_is_read() -> None:
    arrays = two_groups().arrays()
    del arrays["reduce"]
    assert History.from_arrays(arrays, [])["reduce"].tolist() == [0.0] * 4


def test_a_clock_that_goes_back_gives_no_time_below_zero() -> None:
    history = History()
    history.add([record(1, 1, 10.0), record(1, 1, 9.0), record(1, 1, 15.0)], 5.0)
    np.testing.assert_array_equal(history["seconds"], [0, 0, 6])


def test_the_mean_loss_is_over_samples() -> None:
    assert two_groups().mean_loss(1) == ((16 + 2 + 4) / 18, 18, 4.25)


def test_an_interruption_is_cut_off_even_amid_a_row() -> None:
    history = two_groups()
    history._columns["loss"].append(9.0)
    history.cut(3)
    assert {len(history[name]) for name in COLUMNS} == {3}
    assert [row["iteration"] for row in history.epochs] == [3]


@pytest.mark.parametrize("made", [two_groups, History])
def test_a_checkpoint_gives_back_the_same(made) -> None:
    history = made()
    epochs = json.loads(json.dumps(history.epochs))
    back = History.from_arrays(history.arrays(), epochs)
    assert repr(back.to_dict()) == repr(history.to_dict())  # types and NaN, too
    back.epochs.append({"epoch": 2})
    assert len(epochs) == len(history.epochs)


def test_plain_data_is_a_copy() -> None:
    history = two_groups()
    plain = history.to_dict()
    assert set(plain) == {"iterations", "epochs"}
    assert plain["iterations"]["loss"] == [3, 2, 1, 0.5]
    plain["iterations"]["loss"].clear()
    plain["epochs"][0].clear()
    assert len(history) == 4
    assert history.epochs[0]["iteration"] == 3


def test_a_frame_has_a_row_an_iteration() -> None:
    frame = two_groups().to_frame()
    assert tuple(frame.columns) == COLUMNS
    assert frame.index.name == "iteration"
    assert frame["samples"].tolist() == [8, 8, 2, 8]
    assert frame["samples"].dtype == np.int64
    assert History().to_frame().shape == (0, len(COLUMNS))


def test_it_shows_what_it_came_to() -> None:
    assert repr(two_groups()) == "History(4 iterations, 2 epochs, loss=0.5, val_loss=nan)"
    assert repr(History()) == "History(0 iterations, 0 epochs)"


def test_it_draws_iterations_and_epochs() -> None:
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
