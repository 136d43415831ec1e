"""The loop of a fit: groups of iterations, epochs, validation, checkpoints, interruptions."""

from __future__ import annotations

import os
import sys
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.cluster.current import stop_if_asked
from daskdl.cluster.settings import seconds
from daskdl.errors import TRACEBACK, TrainingError
from daskdl.nn import Module
from daskdl.train.engines.choice import Engine
from daskdl.train.engines.step import PHASES, Record, State
from daskdl.train.watch.history import History
from daskdl.train.watch.progress import make_progress

if TYPE_CHECKING:
    from daskdl.train.fit.steps import Fit
    from daskdl.train.fit.trainer import Trainer


#: A group is to last so many times as long as what comes with each, such as handing large tables to
#: the driver; but no longer than so many times ``daskdl.group-time``.
WORTH, MOST = 20, 4


class GroupSize:
    """Number of iterations of the next group, so that it lasts about ``daskdl.group-time``."""

    def __init__(self, limit: int) -> None:
        self._limit, self._target, self.size = limit, seconds("group-time"), 1

    def learn(self, took: float, iterations: int, inside: float) -> None:
        """Learn from a group: its seconds, and the seconds ``inside`` of its iterations.

        The size grows fourfold at most.
        """
        worth = max(self._target, min(WORTH * (took - inside), MOST * self._target))
        fits = worth / max(inside / iterations, 1e-6)
        self.size = max(1, int(min(fits, 4 * self.size, self._limit)))


def inside(records: Sequence[Record], took: float) -> float:
    """Return the seconds that a group's iterations were under way, of all its seconds.

    The first iteration has no start time; it counts as the mean of the others, or as its phases.
    """
    first, last = records[0], records[-1]
    if len(records) > 1:
        between = (last.finished - first.finished) / (len(records) - 1)
    else:
        between = sum(getattr(first, name) for name in PHASES[:-1])
    return min(took, max(0.0, between) * len(records))


class Loop:
    """One fit, from the state it begins with to its last iteration.

    The model and the history of its trainer are kept up to date.
    """

    def __init__(self, fit: Fit, engine: Engine, state: State) -> None:
        self.trainer, self.engine, self.batches = fit.trainer, engine, fit.batches
        self.state, self.total, self.names = state, fit.total, fit.validated
        self.callbacks, self.progress = fit.options.callbacks, make_progress(fit.options.progress)
        self._save = None if fit.folder is None else fit.save
        self._save_every = fit.options.checkpoint_every
        self._saved_at, self._saved_when = state.iteration, time.monotonic()
        self._interval = seconds("checkpoint-interval")
        self._size, self._stopped = GroupSize(engine.group_limit), False
        self._measured = tuple(fit.trainer.metrics) if fit.job.measures else ()
        self._started_from: State | None = None  # with which the engine began its last group

    def go(self) -> None:
        """Run to the end, or until a callback stops it."""
        self.progress.start(self.state.iteration, self.total)
        try:
            with self._followed():
                for callback in self.callbacks:
                    callback.on_fit_begin(self.trainer)
            while True:
                if self._epoch_is_due():
                    self._stopped = self._end_epoch()
                    self._checkpoint()
                if self._stopped or self.state.iteration >= self.total:
                    break
                self._group()
        except (KeyboardInterrupt, SystemExit):  # Ctrl-C; a program's SIGTERM
            # It may have come between any two lines of _group.
            self.trainer.history.cut(self.state.iteration)
            self._restore()
            self._checkpoint()
            raise
        except Exception:
            self._restore()
            raise
        finally:
            self.progress.stop()
        for callback in self.callbacks:
            callback.on_fit_end(self.trainer)

    def _restore(self) -> None:
        """Give the model the weights of the last finished group.

        The model has them already, if an engine that overwrites its state worked on the next one.
        """
        overwritten = getattr(self.engine, "overwrites", False) and self.state is self._started_from
        if not overwritten:
            self.trainer.model.restore(self.state.weights)

    def _group(self) -> None:
        first, per_epoch = self.state.iteration, len(self.batches)
        epoch, begin = divmod(first, per_epoch)
        last = min(first + self._size.size, (epoch + 1) * per_epoch, self.total)
        if self._save is not None and self._save_every is not None:
            last = min(last, (first // self._save_every + 1) * self._save_every)
        shares = list(self.batches.shares(epoch, begin, begin + last - first))
        began = time.monotonic()
        self._started_from = self.state
        after = self.engine.run(self.state, shares)
        took = time.monotonic() - began
        history: History = self.trainer.history
        history.add(after.records, took, self._measured)
        self.state = State(after.weights, after.slots, after.iteration)
        self.trainer.model.restore(after.weights)
        self._size.learn(took, last - first, inside(after.records, took))
        samples = sum(record.samples for record in after.records)
        self.progress.advance(last, after.records[-1].loss, samples / max(took, 1e-9))
        for callback in self.callbacks:
            callback.on_group_end(self.trainer, last)
        stop_if_asked()
        if self._save_every is not None:
            if last % self._save_every == 0:
                self._checkpoint()
        elif time.monotonic() - self._saved_when > self._interval:
            self._checkpoint()

    def _epoch_is_due(self) -> bool:
        """Return whether an epoch, or the run within one, ends here and has no row yet."""
        t, rows = self.state.iteration, self.trainer.history.epochs
        is_end = t > 0 and (t % len(self.batches) == 0 or t >= self.total)
        return is_end and (not rows or rows[-1]["iteration"] < t)

    def _end_epoch(self) -> bool:
        t, history = self.state.iteration, self.trainer.history
        epoch = (t - 1) // len(self.batches)
        so_far = history.since(epoch * len(self.batches))
        logs: dict[str, float] = {"epoch": epoch, "iteration": t, **so_far}
        if self.names:
            began = time.monotonic()
            values = self.engine.evaluate(self.state, self.batches.batch_size)
            logs |= dict(zip(self.names, values, strict=True))
            logs["validation"] = time.monotonic() - began
        before = [callback.state() for callback in self.callbacks]
        try:
            history.epochs.append(logs)
            with self._followed():
                # Every callback sees every epoch, also after one has asked to stop.
                answers = [c.on_epoch_end(self.trainer, epoch, logs) for c in self.callbacks]
        except (KeyboardInterrupt, SystemExit):
            # As if the epoch had not ended: it does when the run goes on, for every callback.
            history.epochs[:] = [row for row in history.epochs if row is not logs]
            for callback, state in zip(self.callbacks, before, strict=True):
                if state:
                    callback.restore(state)
            raise
        self._observe(logs.get("val_loss", logs["loss"]))
        self.progress.epoch(epoch, logs)
        return any(answers)

    @contextmanager
    def _followed(self) -> Iterator[None]:
        """Run callbacks, and take over the weights that they leave in the model.

        Raises TrainingError when a callback has changed something that must not change in a fit.
        """
        if not self.callbacks:
            yield
            return
        trainer, model = self.trainer, self.trainer.model
        before, parts = _fingerprint(model), _fixed(trainer)
        yield
        for name, was, now in zip(parts, parts.values(), _fixed(trainer).values(), strict=True):
            if was != now:
                raise TrainingError(
                    f"Trainer.fit: expected callbacks to leave {name} as it was, found that one "
                    "has changed it, which a fit that is under way does not follow; end this fit "
                    "and start another, which goes on from the model's weights"
                )
        if _fingerprint(model) != before:
            self.state = State(model.snapshot(), self.state.slots, self.state.iteration)
            self.engine.forget_state()

    def _observe(self, loss: float) -> None:
        """Give the loss to the optimizer's schedule."""
        slots_before = self.state.slots
        slots = self.trainer.optimizer.observe(slots_before, loss)
        if any(slots[name] is not array for name, array in slots_before.items()):
            self.state = State(self.state.weights, slots, self.state.iteration)
            self.engine.forget_state()

    def _checkpoint(self) -> None:
        rows = self.trainer.history.epochs
        epoch_ended = bool(rows) and rows[-1]["iteration"] == self.state.iteration
        due = epoch_ended or self.state.iteration != self._saved_at
        if self._save is not None and due and self.state.iteration:
            self._save(self.state, self._stopped)
            self._saved_at, self._saved_when = self.state.iteration, time.monotonic()


def _fingerprint(model: Module) -> int:
    """Return a number that changes when weights, buffers or tables do."""
    checksum = zlib.crc32(model.vector.data)
    for table in model.tables.values():
        checksum = zlib.crc32(np.ascontiguousarray(table.data).data, checksum)
    return checksum


def _fixed(trainer: Trainer) -> dict[str, Any]:
    """Return the objects that a fit sends to its workers, by the names used in errors."""
    frozen = [p.requires_grad for p in trainer.model.parameters()]
    return {
        "which parameters are frozen": frozen,
        "trainer.loss": id(trainer.loss),
        "trainer.optimizer": id(trainer.optimizer),
    }


@contextmanager
def interruptions_reported(run: Loop, folder: Any) -> Iterator[None]:
    """Add the progress of a run to the KeyboardInterrupt of Ctrl-C, for a script's last line.

    A process that does not catch it ends by the signal. ``folder`` is the folder of checkpoints, or
    None.
    """
    try:
        yield
    except KeyboardInterrupt:
        how = (
            f"the same call goes on from the checkpoint in {folder}"
            if folder is not None
            else "the model has its weights; with checkpoint='folder' a fit can go on"
        )
        main = threading.current_thread() is threading.main_thread()
        if main and sys.excepthook is sys.__excepthook__:  # a debugger's stays
            sys.excepthook = _in_a_line
        done = f"fit interrupted after iteration {run.state.iteration} of {run.total}"
        # No class of its own: by its class Python knows how the process is to end.
        interrupt = KeyboardInterrupt(f"{done}; {how}")
        interrupt._render_traceback_ = lambda *_: [str(interrupt)]  # type: ignore[attr-defined]  # IPython
        raise interrupt from None


def _in_a_line(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if hasattr(error, "_render_traceback_") and not os.environ.get(TRACEBACK):
        print(f"{error} ({TRACEBACK}=1 shows where it was)", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)
