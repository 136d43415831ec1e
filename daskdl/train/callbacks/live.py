"""Callbacks that show a fit while it trains: a picture drawn again, event files of TensorBoard."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, needed
from daskdl.files import replacing
from daskdl.train.engines.step import PHASES
from daskdl.train.fit.callback import Callback, Logs
from daskdl.train.fit.trainer import Trainer
from daskdl.train.watch.history import rate


class LivePlot(Callback):
    """Draws :meth:`History.plot` again and again: in the notebook's cell, or to a file.

    Parameters
    ----------
    path : path, optional
        File of the picture, such as ``"fit.png"``; without it the cell of a notebook has it.
    every : float
        Seconds between pictures at least; there is one at the end in any case.

    Raises
    ------
    SettingsError
        When a fit begins outside of a notebook and there is no ``path``.

    Examples
    --------
    >>> trainer.fit(samples, epochs=20, callbacks=[LivePlot()])  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, every: float = 5.0) -> None:
        self.path, self.every = None if path is None else Path(path), every
        self._drawn, self._shown = -float("inf"), None

    def on_fit_begin(self, trainer: Trainer) -> None:
        """Begin a new picture."""
        if self.path is None and "IPython" not in sys.modules:
            raise SettingsError(
                "LivePlot: expected a notebook or path=, found neither; LivePlot('fit.png') "
                "writes to a file"
            )
        self._drawn, self._shown = -float("inf"), None

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        """Draw, if the last picture is old enough."""
        if time.monotonic() - self._drawn >= self.every:
            self._draw(trainer)

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> None:
        """Draw, if the last picture is old enough."""
        self.on_group_end(trainer, 0)

    def on_fit_end(self, trainer: Trainer) -> None:
        """Draw all of it."""
        self._draw(trainer)

    def _draw(self, trainer: Trainer) -> None:
        import matplotlib.pyplot as plt

        figure = trainer.history.plot()[0].figure
        try:
            if self.path is not None:
                with replacing(self.path) as temporary:
                    figure.savefig(temporary, format=self.path.suffix.removeprefix(".") or "png")
            else:
                self._show(figure)
        finally:
            plt.close(figure)
        self._drawn = time.monotonic()

    def _show(self, figure: Any) -> None:
        from IPython.display import display

        if self._shown is None:
            self._shown = display(figure, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._shown.update(figure)


class TensorBoard(Callback):
    """Write loss, rate and phase times of iterations, and the means of epochs.

    Tags are ``iteration/loss``, ``iteration/samples_per_second``, ``seconds/<phase>`` and
    ``epoch/<name>``; steps are iterations. Iterations that a resumed run repeats replace those
    written before. Events of a group of iterations are in the file at the group's end.

    Parameters
    ----------
    folder : path
        Folder of the event files, which ``tensorboard --logdir`` shows; one for each run.

    Raises
    ------
    MissingExtraError
        Without tensorboardX, see ``daskdl[tensorboard]``.

    Examples
    --------
    >>> from daskdl import Trainer
    >>> from daskdl.optim import SGD
    >>> trainer, x = Trainer(nn.Linear(1, 1), nn.MSELoss(), SGD(0.1)), np.ones((4, 1))
    >>> history = trainer.fit(x, x, epochs=1, callbacks=[TensorBoard("run")], progress=False)
    >>> from pathlib import Path
    >>> [path.name.split(".")[0] for path in Path("run").iterdir()]
    ['events']
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        with needed(
            "TensorBoard: expected tensorboardX, found it not installed; "
            "pip install daskdl[tensorboard]"
        ):
            import tensorboardX  # noqa: F401
        self.folder = os.fspath(folder)
        self._writer: Any = None
        self._written = 0

    def on_fit_begin(self, trainer: Trainer) -> None:
        """Begin a file."""
        # Not SummaryWriter, which hands events to a thread: a killed run would lose some.
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        self._close()
        self._written = len(trainer.history)
        os.makedirs(self.folder, exist_ok=True)
        prefix, suffix = os.path.join(self.folder, "events"), f".{self._written:010d}.{os.getpid()}"
        self._writer = EventsWriter(prefix, suffix)
        if self._written:  # what an earlier session has from this step on no longer counts
            begun = SessionLog(status=SessionLog.START)
            step = self._written + 1
            self._writer.write_event(Event(session_log=begun, step=step, wall_time=time.time()))

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        """Write the group's iterations, each with the time at which it ended."""
        history, first = trainer.history, self._written
        seconds = history["seconds"][first:]
        ends = time.time() - (seconds.sum() - np.cumsum(seconds))
        columns = {
            f"iteration/{name}": history[name][first:] for name in ("loss", *history.metrics)
        } | {f"seconds/{phase}": history[phase][first:] for phase in PHASES}
        rates = [rate(n, s) for n, s in zip(history["samples"][first:], seconds, strict=True)]
        columns["iteration/samples_per_second"] = np.array(rates)
        for tag, values in columns.items():
            for i, (value, end) in enumerate(zip(values, ends, strict=True), first + 1):
                self._write(tag, value, i, end)
        self._written = len(history)
        self._writer.flush()

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Logs) -> None:
        """Write the means of the epoch."""
        for name, value in logs.items():
            if name not in ("epoch", "iteration"):
                self._write(f"epoch/{name}", value, int(logs["iteration"]), time.time())
        self._writer.flush()

    def on_fit_end(self, trainer: Trainer) -> None:
        """End the file."""
        self._close()

    def _write(self, tag: str, value: float, step: int, when: float) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        one = Summary.Value(tag=tag, simple_value=float(value))
        summary = Summary(value=[one])
        self._writer.write_event(Event(summary=summary, step=step, wall_time=float(when)))

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __del__(self) -> None:  # after a fit that has failed
        with contextlib.suppress(AttributeError):  # it was not even made
            self._close()
