from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

from daskdl.errors import CheckpointError, SettingsError, TrainingError
from daskdl.nn import MSELoss
from daskdl.optim import Adam
from daskdl.train import BestModel, Callback, EarlyStopping, Trainer
from daskdl.train.callbacks import Logs
from daskdl.train.checkpoint import CheckpointFolder, Saved
from daskdl.train.history import COLUMNS, History
from daskdl.train.inprocess import InProcessEngine
from daskdl.train.loop import GroupSize
from daskdl.train.step import Record
from tests.daskdl.train.runs import network, problem

PER_EPOCH = 7  # 53 samples by 8


class Interrupt(Callback):
    """Raises after so many iterations, or at an epoch's end."""

    def __init__(
        self,
        iteration: int | None = None,
        epoch: int | None = None,
        error: type[BaseException] = KeyboardInterrupt,
    ) -> None:
        self.iteration, self.epoch, self.error = iteration, epoch, error

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        if iteration == self.iteration:
            raise self.error

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> None:
        if epoch == self.epoch:
            raise self.error


class Diary(Callback):
    """Keeps what was called, and asks to stop after an epoch."""

    def __init__(self, stop: int | None = None) -> None:
        self.stop, self.calls = stop, list[Any]()

    def on_fit_begin(self, trainer: Trainer) -> None:
        self.calls.append("begin")

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        assert len(trainer.history) == iteration
        self.calls.append(iteration)

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> bool:
        assert trainer.history.epochs[-1] == logs
        self.calls.append(f"epoch {epoch}")
        return epoch == self.stop

    def on_fit_end(self, trainer: Trainer) -> None:
        self.calls.append("end")


class Run:
    """A run with objects of its own; left alone, epoch 2 is its best and epoch 4 its last."""

    def __init__(self) -> None:
        self.best, self.stop = BestModel(), EarlyStopping(2)
        self.trainer = Trainer(network(), MSELoss(), Adam(5e-3), seed=5)

    def fit(
        self,
        folder: Path | None = None,
        before: Sequence[Callback] = (),
        after: Sequence[Callback] = (),
        **options: Any,
    ) -> Run:
        options = {"epochs": 9, "batch_size": 8, **options}
        self.trainer.fit(
            problem(),
            validation=problem(2, 9),
            checkpoint=folder,
            callbacks=[*before, self.best, self.stop, *after],
            progress=False,
            **options,
        )
        return self

    def came_to(self) -> dict[str, Any]:
        """Return all that must not depend on interruptions."""
        history = self.trainer.history
        rows = [{k: v for k, v in row.items() if k != "seconds"} for row in history.epochs]
        return {
            "weights": self.trainer.model.flat.tobytes(),
            "loss": history["loss"].tolist(),
            "samples": history["samples"].tolist(),
            "epochs": rows,
            "best": (self.best.best, self.best.best_epoch),
            "stop": (self.stop.best, self.stop.best_epoch),
        }


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    run = Run().fit()
    assert run.best.best_epoch == 2
    assert len(run.trainer.history.epochs) == 5
    return run.came_to()


@pytest.fixture
def short_groups():
    """Groups of one iteration."""
    with dask.config.set({"daskdl.group-time": "1 us"}):
        yield


def iterations_in(folder: Path) -> list[int]:
    return sorted(int(p.name.removeprefix("step-")) for p in folder.iterdir())


# --- interruptions


@pytest.mark.usefixtures("short_groups")
@pytest.mark.parametrize(
    ("when", "iteration"),
    [
        ({"iteration": 1}, 1),
        ({"iteration": 9}, 9),  # within an epoch
        ({"iteration": 14}, 14),  # all iterations of an epoch are done, but not its validation
        ({"epoch": 0}, 7),
        ({"epoch": 2}, 21),  # the best
        ({"epoch": 4}, 35),  # the last
    ],
)
@pytest.mark.parametrize("place", ["before", "after"])
def test_a_run_goes_on_after_ctrl_c_as_if_nothing_had_been(
    tmp_path: Path, undisturbed: dict[str, Any], when: dict[str, int], iteration: int, place: str
) -> None:
    first, diary = Run(), Diary()
    with pytest.raises(KeyboardInterrupt):
        first.fit(tmp_path, **{place: [diary, Interrupt(**when)]})
    assert "end" not in diary.calls
    assert iterations_in(tmp_path)[-1] == iteration
    shutil.copytree(tmp_path, tmp_path / "copy")
    assert Run().fit(tmp_path / "copy").came_to() == undisturbed
    assert first.fit(tmp_path).came_to() == undisturbed  # in the same process, too


@pytest.mark.usefixtures("short_groups")
def test_a_run_that_died_goes_on_from_its_last_checkpoint(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    with pytest.raises(MemoryError):
        Run().fit(tmp_path, after=[Interrupt(13, error=MemoryError)], checkpoint_every=3)
    assert iterations_in(tmp_path) == [9, 12]
    with pytest.raises(MemoryError):
        Run().fit(tmp_path, after=[Interrupt(20, error=MemoryError)])
    assert iterations_in(tmp_path) == [12, 14]
    diary = Diary()
    assert Run().fit(tmp_path, after=[diary]).came_to() == undisturbed
    assert diary.calls[:2] == ["begin", 15]


def test_a_run_that_is_made_longer_equals_a_long_one(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    short = Run().fit(tmp_path, epochs=4)
    assert short.came_to()["weights"] == undisturbed["weights"]  # the best ones already
    assert Run().fit(tmp_path).came_to() == undisturbed


@pytest.mark.parametrize("options", [{}, {"epochs": 5}, {"epochs": 20}])
def test_a_run_that_has_ended_is_not_run_again(
    tmp_path: Path, undisturbed: dict[str, Any], options: dict[str, int]
) -> None:
    Run().fit(tmp_path)
    diary = Diary()
    assert Run().fit(tmp_path, before=[diary], **options).came_to() == undisturbed
    assert diary.calls == ["end"]


@pytest.mark.parametrize("columns", [0, 3, len(COLUMNS)])
def test_an_interruption_as_a_row_is_written_leaves_all_in_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, Any], columns: int
) -> None:
    add = History.add

    def interrupted(self: History, records: Sequence[Record], seconds: float) -> None:
        if len(self):
            for name in COLUMNS[:columns]:
                self._columns[name].append(9.0)
            raise KeyboardInterrupt
        add(self, records, seconds)

    with monkeypatch.context() as patched:
        patched.setattr(History, "add", interrupted)
        run = Run()
        with pytest.raises(KeyboardInterrupt):
            run.fit(tmp_path)
    assert iterations_in(tmp_path) == [len(run.trainer.history)]
    assert Run().fit(tmp_path).came_to() == undisturbed


class Count(Callback):
    """Counts epochs."""

    epochs = 0

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> None:
        self.epochs += 1

    def state(self) -> dict[str, Any]:
        return {"epochs": np.array(self.epochs)}

    def restore(self, state: Any) -> None:
        self.epochs = int(state["epochs"])


@pytest.mark.parametrize("place", ["before", "after"])
def test_every_callback_sees_an_interrupted_epoch_once(tmp_path: Path, place: str) -> None:
    for count, more in (Count(), [Interrupt(epoch=1)]), (Count(), []):
        callbacks = [count, *more] if place == "after" else [*more, count]
        try:
            Run().fit(tmp_path, before=callbacks, epochs=3)
        except KeyboardInterrupt:
            assert count.epochs == 1
    assert count.epochs == 3


class BeforeTheModelFollows(Callback):
    """Presses Ctrl-C once, as the weights of the first group are put into the model."""

    def on_fit_begin(self, trainer: Trainer) -> None:
        model = trainer.model

        def interrupted(weights: object) -> None:
            del model.load_flat
            raise KeyboardInterrupt

        model.load_flat = interrupted  # type: ignore[method-assign,assignment]


def test_an_interruption_leaves_the_model_with_the_weights_of_its_history(tmp_path: Path) -> None:
    run = Run()
    with pytest.raises(KeyboardInterrupt):
        run.fit(tmp_path, after=[BeforeTheModelFollows()])
    saved = CheckpointFolder(tmp_path).read()
    assert saved is not None
    assert saved.iteration == len(run.trainer.history) == 1
    np.testing.assert_array_equal(run.trainer.model.flat, saved.arrays["weights"])


def test_that_a_callback_stopped_the_run_survives_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, Any]
) -> None:
    write = CheckpointFolder.write

    def interrupted(self: CheckpointFolder, saved: Saved) -> None:
        if saved.iteration == 35 and not pressed:
            pressed.append(True)
            raise KeyboardInterrupt
        write(self, saved)

    pressed: list[bool] = []
    monkeypatch.setattr(CheckpointFolder, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Run().fit(tmp_path)
    assert Run().fit(tmp_path).came_to() == undisturbed


def test_callbacks_may_come_and_go(tmp_path: Path) -> None:
    def fit(epochs: int, *callbacks: Callback) -> Trainer:
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
    assert (best.best_epoch, best.weights) == (-1, None)  # nothing of another's


# --- checkpoints


@pytest.mark.usefixtures("short_groups")
def test_without_resume_a_run_begins_anew(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        Run().fit(tmp_path, after=[Interrupt(30)], checkpoint_every=29)
    diary, run = Diary(), Run()
    with pytest.raises(KeyboardInterrupt):
        run.fit(tmp_path, before=[diary], after=[Interrupt(2)], resume=False)
    assert diary.calls == ["begin", 1, 2]
    assert iterations_in(tmp_path) == [2]
    assert Run().fit(tmp_path).came_to() == undisturbed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch_size": 9}, "expected batch_size 9, found 8"),
        ({"shards": 3}, "expected shards of 3 entries, found 4"),
    ],
)
def test_another_runs_checkpoint_is_refused_and_kept(
    tmp_path: Path, options: dict[str, int], said: str
) -> None:
    Run().fit(tmp_path, epochs=1)
    with pytest.raises(CheckpointError) as raised:
        Run().fit(tmp_path, **options)
    assert str(raised.value) == (
        f"{tmp_path}: holds the checkpoint of another run: {said}; give another folder, or "
        "resume=False to begin anew"
    )
    assert iterations_in(tmp_path) == [7]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Iteration and number of epochs of what is written."""
    calls: list[tuple[int, int]] = []
    write = CheckpointFolder.write

    def noting(self: CheckpointFolder, saved: Saved) -> None:
        calls.append((saved.iteration, len(saved.more["epochs"])))
        write(self, saved)

    monkeypatch.setattr(CheckpointFolder, "write", noting)
    return calls


ENDS = [(7, 1), (14, 2), (16, 3)]


@pytest.mark.parametrize(
    ("interval", "every", "expected"),
    [
        ("1 hour", None, ENDS),
        ("0 s", None, [(1, 0), (5, 0), (7, 0), (7, 1), (14, 1), (14, 2), (16, 2), (16, 3)]),
        ("0 s", 100, ENDS),
        ("0 s", 6, [(6, 0), (7, 1), (12, 1), (14, 2), (16, 3)]),
        ("0 s", 7, [(7, 0), (7, 1), (14, 1), (14, 2), (16, 3)]),
    ],
)
def test_a_checkpoint_is_written_when_it_is_due(
    tmp_path: Path, written: list[tuple[int, int]], interval: str, every: int | None, expected
) -> None:
    settings = {"daskdl.checkpoint-interval": interval, "daskdl.group-time": "1 hour"}
    with dask.config.set(settings):
        Run().fit(tmp_path, epochs=None, iterations=16, checkpoint_every=every)
    assert written == expected


@pytest.mark.parametrize("name", ["checkpoint-interval", "group-time"])
def test_a_setting_that_cannot_be_is_refused_before_the_first_iteration(name: str) -> None:
    run = Run()
    with (
        dask.config.set({f"daskdl.{name}": "soon"}),
        pytest.raises(SettingsError, match=f"daskdl.{name}: expected a duration .* 'soon'"),
    ):
        run.fit()
    assert len(run.trainer.history) == 0


# --- groups, epochs and callbacks


@pytest.mark.parametrize(
    ("every", "groups"),
    [(None, [1, 5, 7, 14, 16]), (4, [1, 4, 7, 8, 12, 14, 16])],
)
def test_groups_end_with_epochs_and_checkpoints(
    tmp_path: Path, every: int | None, groups: list[int]
) -> None:
    diary = Diary()
    with dask.config.set({"daskdl.group-time": "1 hour"}):
        Run().fit(tmp_path, before=[diary], epochs=None, iterations=16, checkpoint_every=every)
    assert [call for call in diary.calls if isinstance(call, int)] == groups


def test_the_end_of_a_run_within_an_epoch_has_a_row() -> None:
    diary, run = Diary(), Run()
    with dask.config.set({"daskdl.group-time": "1 hour"}):
        run.fit(before=[diary], epochs=None, iterations=9)
    assert diary.calls == ["begin", 1, 5, 7, "epoch 0", 9, "epoch 1", "end"]
    row = run.trainer.history.epochs[-1]
    assert (row["epoch"], row["iteration"], row["samples"]) == (1, 9, 16)
    assert row["loss"] == pytest.approx(run.trainer.history["loss"][7:].mean())
    assert set(row) == {"epoch", "iteration", "loss", "samples", "seconds", "val_loss"}


def test_every_callback_sees_the_epoch_in_which_one_stops() -> None:
    one, other = Diary(stop=1), Diary()
    run = Run().fit(before=[one], after=[other])
    assert len(run.trainer.history.epochs) == 2
    assert one.calls == other.calls
    assert one.calls[-2:] == ["epoch 1", "end"]


def test_the_size_of_a_group_follows_its_time() -> None:
    with dask.config.set({"daskdl.group-time": "8 s"}):
        size = GroupSize(100)
    sizes = [size.size]
    for seconds_each in (0.0, 1e-3, 1e-3, 1e-3, 0.5, 100.0, 3.0):
        size.learn(size.size, seconds_each * size.size)
        sizes.append(size.size)
    assert sizes == [1, 4, 16, 64, 100, 16, 1, 2]
    with dask.config.set({"daskdl.group-time": float("1e400")}), pytest.raises(SettingsError):
        GroupSize(100)


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, TrainingError])
def test_samples_are_let_go_of_in_any_case(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException] | None
) -> None:
    closed: list[bool] = []
    monkeypatch.setattr(InProcessEngine, "close", lambda self: closed.append(True))
    if error is None:
        Run().fit(epochs=1)
    else:
        with pytest.raises(error):
            Run().fit(after=[Interrupt(1, error=error)])
    assert closed == [True]
