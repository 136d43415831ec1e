"""The loop of a fit: checkpoints, groups, epochs; optim methods of users."""

from __future__ import annotations

import dask
import numpy as np
import pytest

from daskdl.errors import CheckpointError, SettingsError, TrainingError
from daskdl.nn import MSELoss
from daskdl.optim import Method
from daskdl.train import Trainer
from daskdl.train.engines.inprocess import InProcessEngine
from daskdl.train.engines.step import PHASES, Record
from daskdl.train.fit.checkpoint import CheckpointFolder, Saved
from daskdl.train.fit.loop import GroupSize, inside
from tests.daskdl.train.jobs import Descent
from tests.daskdl.train.runs import Diary, Do, Run, failing, iterations_in, network, problem

# --- checkpoints


@pytest.mark.slow
@pytest.mark.usefixtures("short_groups")
def test_without_resume_a_run_begins_anew(tmp_path, uninterrupted):
    with pytest.raises(KeyboardInterrupt):
        Run().fit(tmp_path, after=[Do(30)], checkpoint_every=29)
    diary, run = Diary(), Run()
    with pytest.raises(KeyboardInterrupt):
        run.fit(tmp_path, before=[diary], after=[Do(2)], resume=False)
    assert diary.calls == ["begin", 1, 2]
    assert iterations_in(tmp_path) == [2]
    assert Run().fit(tmp_path).outcome() == uninterrupted


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"batch_size": 9}, "expected batch_size 9, found 8"),
        ({"shards": 3}, "expected shards of 3 entries, found 4"),
        ({"wire": "bfloat16"}, 'expected wire "bfloat16", found "float32"'),
    ],
)
def test_another_runs_checkpoint_is_refused_and_kept(tmp_path, options, difference):
    Run().fit(tmp_path, epochs=1)
    with pytest.raises(CheckpointError) as raised:
        Run().fit(tmp_path, **options)
    assert str(raised.value) == (
        f"{tmp_path}: holds the checkpoint of another run: {difference}; give another folder, or "
        "resume=False to begin anew"
    )
    assert iterations_in(tmp_path) == [7]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The iteration and the number of epochs of each written checkpoint."""
    calls: list[tuple[int, int]] = []
    write = CheckpointFolder.write

    def noting(self: CheckpointFolder, saved: Saved) -> None:
        calls.append((saved.iteration, len(saved.more["epochs"])))
        write(self, saved)

    monkeypatch.setattr(CheckpointFolder, "write", noting)
    return calls


ENDS = [(7, 1), (14, 2), (16, 3)]
OFTEN = [(1, 0), (5, 0), (7, 0), (7, 1), (14, 1), (14, 2), (16, 2), (16, 3)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("interval", "every", "expected", "groups"),
    [
        ("1 hour", None, ENDS, [1, 5, 7, 14, 16]),
        ("0 s", None, OFTEN, [1, 5, 7, 14, 16]),
        ("0 s", 100, ENDS, [1, 5, 7, 14, 16]),
        ("0 s", 6, [(6, 0), (7, 1), (12, 1), (14, 2), (16, 3)], [1, 5, 6, 7, 12, 14, 16]),
        ("0 s", 7, [(7, 0), (7, 1), (14, 1), (14, 2), (16, 3)], [1, 5, 7, 14, 16]),
    ],
)
def test_checkpoints_are_written_when_they_are_due_and_groups_end_there_and_with_epochs(
    tmp_path, written, interval, every, expected, groups
):
    settings = {"daskdl.checkpoint-interval": interval, "daskdl.group-time": "1 hour"}
    diary, options = Diary(), {"epochs": None, "iterations": 16, "checkpoint_every": every}
    with dask.config.set(settings):
        Run().fit(tmp_path, before=[diary], **options)
    assert written == expected
    assert [call for call in diary.calls if isinstance(call, int)] == groups


@pytest.mark.parametrize("name", ["checkpoint-interval", "group-time"])
def test_a_wrong_setting_is_refused_before_the_first_iteration(name):
    run = Run()
    with (
        dask.config.set({f"daskdl.{name}": "soon"}),
        pytest.raises(SettingsError, match=f"daskdl.{name}: expected a duration .* 'soon'"),
    ):
        run.fit()
    assert len(run.trainer.history) == 0


# --- groups, epochs and callbacks


def test_the_end_of_a_run_within_an_epoch_has_a_row():
    diary, run = Diary(), Run()
    with dask.config.set({"daskdl.group-time": "1 hour"}):
        run.fit(before=[diary], epochs=None, iterations=9)
    assert diary.calls == ["begin", 1, 5, 7, "epoch 0", 9, "epoch 1", "end"]
    row = run.trainer.history.epochs[-1]
    assert (row["epoch"], row["iteration"], row["samples"]) == (1, 9, 16)
    assert row["loss"] == pytest.approx(run.trainer.history["loss"][7:].mean())
    counts = {"epoch", "iteration", "loss", "samples", "val_loss"}
    times = {"seconds", "samples_per_second", "validation", *PHASES}
    assert set(row) == counts | times
    assert row["validation"] > 0
    assert row["samples_per_second"] == row["samples"] / row["seconds"]
    assert row["forward"] == run.trainer.history["forward"][7:].sum()


def test_every_callback_sees_the_epoch_in_which_one_stops():
    one, other = Diary(stop=1), Diary()
    run = Run().fit(before=[one], after=[other])
    assert len(run.trainer.history.epochs) == 2
    assert one.calls == other.calls
    assert one.calls[-2:] == ["epoch 1", "end"]


def test_the_size_of_a_group_follows_its_time():
    with dask.config.set({"daskdl.group-time": "8 s"}):
        size = GroupSize(100)
    sizes = [size.size]
    for seconds_each in (0.0, 1e-3, 1e-3, 1e-3, 0.5, 100.0, 3.0):
        size.learn(seconds_each * size.size, size.size, seconds_each * size.size)
        sizes.append(size.size)
    assert sizes == [1, 4, 16, 64, 100, 16, 1, 2]
    with dask.config.set({"daskdl.group-time": float("1e400")}), pytest.raises(SettingsError):
        GroupSize(100)


@pytest.mark.parametrize(("each_group", "size"), [(0.1, 80), (0.4, 80), (1.0, 200), (60.0, 320)])
def test_a_group_is_worth_its_overhead(each_group, size):
    """Twenty times as long as its overhead, such as a second in which tables go to the driver."""
    with dask.config.set({"daskdl.group-time": "8 s"}):
        sizes = GroupSize(1000)
    for _ in range(6):
        sizes.learn(each_group + 0.1 * sizes.size, sizes.size, 0.1 * sizes.size)
    assert sizes.size == size


def test_seconds_inside_the_iterations_of_a_group():
    def record(finished):
        return Record(0.0, 1, 0.1, 0.2, 0.3, 0.1, finished, reduce=0.05)

    assert inside([record(5.0), record(6.0), record(7.0)], 9.0) == pytest.approx(3.0)
    assert inside([record(5.0)], 9.0) == pytest.approx(0.75)
    assert inside([record(5.0)], 0.5) == 0.5
    assert inside([record(6.0), record(5.0)], 9.0) == 0  # by the clock of another worker


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, TrainingError])
def test_an_engine_is_closed_in_any_case(monkeypatch, error):
    closed: list[bool] = []
    monkeypatch.setattr(InProcessEngine, "close", lambda self: closed.append(True))
    if error is None:
        Run().fit(epochs=1)
    else:
        with pytest.raises(error):
            Run().fit(after=[Do(1, failing(error))])
    assert closed == [True]


def fitted(method: Method) -> Trainer:
    trainer = Trainer(network(), MSELoss(), method, seed=5)
    trainer.fit(problem(), epochs=2, batch_size=8, client=False, progress=False)
    return trainer


def test_weights_of_another_dtype_are_rounded_in_each_step():
    narrow, wide = fitted(Descent()), fitted(Descent(change=lambda w: w.astype(np.float64)))
    assert wide.model.vector.dtype == np.float32
    np.testing.assert_array_equal(wide.model.vector, narrow.model.vector)


def test_scalars_and_vectors_are_states():
    fitted(
        Descent(
            first=lambda n: {"count": np.zeros((), np.int64), "mean": np.zeros(n, np.float32)},
            state=lambda s: s | {"count": s["count"] + 1},
        )
    )


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"first": lambda n: {"m": np.zeros(3)}}, SettingsError, r"init: .*found shape \(3,\) as"),
        ({"first": lambda n: {"m": np.zeros((2, n))}}, SettingsError, r"found shape \(2, \d+\) as"),
        ({"first": lambda n: {"m": 0.0}}, SettingsError, "found float as 'm'"),
        ({"change": lambda w: w[:-1]}, TrainingError, r"update: expected new weights of shape"),
        ({"change": lambda w: None}, TrainingError, "found NoneType; return a number for each"),
        ({"state": lambda s: {"new": 1}}, TrainingError, r"a state of \[\], found \['new'\] too"),
        (
            {"first": lambda n: {"m": np.zeros(n)}, "state": lambda s: {"m": s["m"][1:]}},
            TrainingError,
            "expected 'm' as an array of shape",
        ),
    ],
)
def test_a_method_that_does_not_fit_the_weights_is_refused(options, kind, message):
    with pytest.raises(kind, match=message):
        fitted(Descent(**options))
