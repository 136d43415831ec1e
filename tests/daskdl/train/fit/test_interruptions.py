"""Interrupted runs go on as if uninterrupted; Ctrl-C in a script prints one line."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.errors import PredictionError, TrainingError
from daskdl.nn import Linear, Module, MSELoss
from daskdl.optim import SGD, Adam
from daskdl.train import BestModel, Callback, EarlyStopping, Trainer
from daskdl.train.fit.callback import Logs
from daskdl.train.fit.checkpoint import CheckpointFolder
from daskdl.train.watch.history import COLUMNS, History
from tests.daskdl.train.processes import started
from tests.daskdl.train.runs import Diary, Do, On, Run, failing, iterations_in, network, problem


@pytest.mark.slow
@pytest.mark.usefixtures("short_groups")
@pytest.mark.parametrize(
    ("when", "iteration", "error"),
    [
        ({"after": 1}, 1, KeyboardInterrupt),
        ({"after": 9}, 9, KeyboardInterrupt),  # within an epoch
        ({"after": 9}, 9, SystemExit),
        # All iterations of an epoch are done, but not its validation.
        ({"after": 14}, 14, KeyboardInterrupt),
        ({"epoch": 0}, 7, KeyboardInterrupt),
        ({"epoch": 2}, 21, SystemExit),  # the best
        ({"epoch": 4}, 35, KeyboardInterrupt),  # the last
    ],
)
@pytest.mark.parametrize("place", ["before", "after"])
def test_a_run_goes_on_after_ctrl_c_or_an_exit_as_if_uninterrupted(
    tmp_path, uninterrupted, when, iteration, error, place
):
    first, diary = Run(), Diary()
    with pytest.raises(error):
        first.fit(tmp_path, **{place: [diary, Do(**when, action=failing(error))]})
    assert "end" not in diary.calls
    assert iterations_in(tmp_path)[-1] == iteration
    shutil.copytree(tmp_path, tmp_path / "copy")
    assert Run().fit(tmp_path / "copy").outcome() == uninterrupted
    assert first.fit(tmp_path).outcome() == uninterrupted  # in the same process, too


@pytest.mark.slow
@pytest.mark.usefixtures("short_groups")
@pytest.mark.parametrize("engine", ["graph", "gang"])
def test_a_run_interrupted_on_a_cluster_goes_on_in_this_process(
    client, tmp_path, uninterrupted, engine
):
    with pytest.raises(KeyboardInterrupt):
        Run().fit(tmp_path, after=[Do(11)], client=client, engine=engine)
    assert Run().fit(tmp_path).outcome() == uninterrupted


@pytest.mark.slow
@pytest.mark.usefixtures("short_groups")
def test_a_run_that_died_goes_on_from_its_last_checkpoint(tmp_path, uninterrupted):
    with pytest.raises(MemoryError):
        Run().fit(tmp_path, after=[Do(13, failing(MemoryError))], checkpoint_every=3)
    assert iterations_in(tmp_path) == [9, 12]
    with pytest.raises(MemoryError):
        Run().fit(tmp_path, after=[Do(20, failing(MemoryError))])
    assert iterations_in(tmp_path) == [12, 14]
    diary = Diary()
    assert Run().fit(tmp_path, after=[diary]).outcome() == uninterrupted
    assert diary.calls[:2] == ["begin", 15]


@pytest.mark.slow
def test_a_run_that_is_made_longer_equals_a_long_one(tmp_path, uninterrupted):
    short = Run().fit(tmp_path, epochs=4)
    assert short.outcome()["weights"] == uninterrupted["weights"]  # the best ones already
    assert Run().fit(tmp_path).outcome() == uninterrupted


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"epochs": 5}, {"epochs": 20}])
def test_a_run_that_has_ended_is_not_run_again(tmp_path, uninterrupted, options):
    Run().fit(tmp_path)
    diary = Diary()
    assert Run().fit(tmp_path, before=[diary], **options).outcome() == uninterrupted
    assert diary.calls == ["end"]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [0, 3, len(COLUMNS)])
def test_an_interruption_while_a_row_is_written_leaves_equal_columns(
    tmp_path, monkeypatch, uninterrupted, columns
):
    add = History.add

    def interrupted(self, records, *more):
        if len(self):
            for name in COLUMNS[:columns]:
                self._columns[name].append(9.0)
            raise KeyboardInterrupt
        add(self, records, *more)

    with monkeypatch.context() as patched:
        patched.setattr(History, "add", interrupted)
        run = Run()
        with pytest.raises(KeyboardInterrupt):
            run.fit(tmp_path)
    assert iterations_in(tmp_path) == [len(run.trainer.history)]
    assert Run().fit(tmp_path).outcome() == uninterrupted


class Count(Callback):
    """Counts epochs."""

    epochs = 0

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> None:
        self.epochs += 1

    def state(self) -> dict[str, Any]:
        return {"epochs": np.array(self.epochs)}

    def restore(self, state: Any) -> None:
        self.epochs = int(state["epochs"])


@pytest.mark.slow
@pytest.mark.parametrize("place", ["before", "after"])
def test_every_callback_sees_an_interrupted_epoch_once(tmp_path, place):
    for count, more in (Count(), [Do(epoch=1)]), (Count(), []):
        callbacks = [count, *more] if place == "after" else [*more, count]
        try:
            Run().fit(tmp_path, before=callbacks, epochs=3)
        except KeyboardInterrupt:
            assert count.epochs == 1
    assert count.epochs == 3


def interrupt_as_the_model_follows(trainer):
    """Press Ctrl-C once, as the weights of the first group are put into the model."""

    def interrupted(weights):
        del trainer.model.restore
        raise KeyboardInterrupt

    trainer.model.restore = interrupted


def test_an_interruption_leaves_the_model_with_the_weights_of_its_history(tmp_path):
    run = Run()
    with pytest.raises(KeyboardInterrupt):
        run.fit(tmp_path, after=[On(begin=interrupt_as_the_model_follows)])
    saved = CheckpointFolder(tmp_path).read()
    assert saved.iteration == len(run.trainer.history) == 1
    np.testing.assert_array_equal(run.trainer.model.flat, saved.arrays["weights"])


@pytest.mark.slow
def test_a_stop_by_a_callback_survives_an_interruption(tmp_path, monkeypatch, uninterrupted):
    write = CheckpointFolder.write

    def interrupted(self, saved):
        if saved.iteration == 35 and not pressed:
            pressed.append(True)
            raise KeyboardInterrupt
        write(self, saved)

    pressed: list[bool] = []
    monkeypatch.setattr(CheckpointFolder, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Run().fit(tmp_path)
    assert Run().fit(tmp_path).outcome() == uninterrupted


def test_callbacks_may_come_and_go(tmp_path):
    def fit(epochs, *callbacks):
        trainer = Trainer(network(), MSELoss(), Adam(5e-3), seed=5)
        trainer.fit(
            problem(), epochs=epochs, checkpoint=tmp_path, callbacks=callbacks, progress=False
        )
        return trainer

    early, late = EarlyStopping(9), EarlyStopping(9, monitor="iteration")
    fit(3, early, late)
    best, early_again, late_again = BestModel(), EarlyStopping(9), EarlyStopping(9, monitor="epoch")
    fit(3, Diary(), best, early_again, late_again)
    assert (early_again.best, early_again.best_epoch) == (early.best, early.best_epoch)
    assert (late_again.best, late_again.best_epoch) == (2, 0)
    assert (best.best_epoch, best.weights) == (-1, None)  # no state of another callback


@pytest.mark.slow
@pytest.mark.parametrize("how", ["alone", "on a cluster of its own", "with the traceback"])
def test_ctrl_c_in_a_script_is_one_line_and_ends_no_workers(tmp_path, how):
    traceback = how == "with the traceback"
    environment = {"DASKDL_TRACEBACK": "1"} if traceback else {}
    process = started("interrupted", tmp_path, how, **environment)
    _, error = process.communicate()
    assert process.returncode == -2  # as a shell expects of Ctrl-C
    lines = [line for line in error.splitlines() if not line.startswith("compiling kernels")]
    assert "fit interrupted after iteration" in lines[-1]
    assert f"goes on from the checkpoint in {tmp_path}" in lines[-1]
    assert len(lines) == 1 or traceback, error
    assert ("Traceback" in error) is traceback


class Broken(Module):
    """Fails only for inputs below ``least``."""

    def __init__(self, least: float) -> None:
        self.linear = Linear(2, 1)
        self.least = least

    def forward(self, x):
        if x.min() < self.least:
            raise ZeroDivisionError("of my own")
        return self.linear(x)


X = np.concatenate([np.ones((4, 2)), -np.ones((4, 2))]).astype(np.float32)
LINE = r" \(test_interruptions.py, line \d+, in forward: raise ZeroDivisionError\(\"of my own\"\)\)"


@pytest.mark.parametrize("least", [0.0, 2.0])
def test_the_users_line_is_in_the_message(least):
    """In the trial before the first iteration, and in an iteration."""
    where = "iteration 0" if least == 0 else "Broken: one sample of shapes"
    with pytest.raises(TrainingError, match=rf"{where}.*ZeroDivisionError: of my own{LINE}"):
        Trainer(Broken(least), MSELoss(), SGD(0.1)).fit(X, X[:, :1], epochs=1, progress=False)


@pytest.mark.slow
def test_the_users_line_is_in_the_message_of_a_worker(client):
    samples = SampleSet.from_arrays(x=X, y=X[:, :1], partitions=2)
    trainer = Trainer(Broken(0.0), MSELoss(), SGD(0.1))
    with pytest.raises(TrainingError, match=rf"at worker .*of my own{LINE}"):
        trainer.fit(samples, epochs=1, progress=False, client=client)
    with client.as_current(), pytest.raises(PredictionError, match=rf"partition 1.*{LINE}"):
        trainer.model.predict(samples).compute()
