"""Progress of a fit: a bar, a notebook's widget, or a line of text every half minute."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from daskdl.train.watch.display import of_epochs, sparkline
from daskdl.train.watch.history import UNTOLD


class Progress:
    """Base of objects that show the progress of a fit; it shows nothing."""

    def start(self, done: int, total: int) -> None:
        """Begin with ``done`` of ``total`` iterations."""

    def advance(self, done: int, loss: float, rate: float) -> None:
        """Show the iterations done, the last loss and samples per second."""

    def epoch(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Show the means of an epoch."""

    def stop(self) -> None:
        """End."""


class Remaining:
    """The time left, by the iterations after the first report: before it kernels are compiled."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._first, self._began = clock, -1, 0.0

    def __call__(self, done: int, total: int) -> str:
        """Return the end of a line, empty until the second report."""
        now = self._clock()
        if self._first < 0:
            self._first, self._began = done, now
        if done == self._first:
            return ""
        seconds = (now - self._began) / (done - self._first) * (total - done)
        return f", {duration(seconds)} left"


class Lines(Progress):
    """Writes lines to standard error, ``every`` so many seconds and at an epoch's end."""

    def __init__(self, every: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._every, self._clock = every, clock
        self._total, self._shown = 0, clock()
        self._remaining = Remaining(clock)
        self._epoch_shown, self._unshown = -math.inf, ""

    def start(self, done: int, total: int) -> None:
        """Remember the last iteration."""
        self._total, self._shown = total, self._clock()

    def advance(self, done: int, loss: float, rate: float) -> None:
        """Write a line if it is time for one."""
        now, remaining = self._clock(), self._remaining(done, self._total)
        if now - self._shown < self._every:
            return
        self._shown = now
        _write(f"iteration {done}/{self._total}, loss {loss:.4g}, {rate:.3g} samples/s{remaining}")

    def epoch(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Write the means of an epoch; of epochs within a second only the first and the last."""
        now, line = self._clock(), _epoch_line(epoch, logs)
        if now - self._epoch_shown < 1:
            self._unshown = line
            return
        self._shown = self._epoch_shown = now
        self._unshown = ""
        _write(line)

    def stop(self) -> None:
        """Write the means of the last epoch, if they were not written."""
        if self._unshown:
            _write(self._unshown)
            self._unshown = ""


class Bar(Progress):
    """A bar of rich on standard error."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}, {task.fields[rate]} samples/s"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task: Any = None

    def start(self, done: int, total: int) -> None:
        """Show the bar."""
        self._bar.start()
        self._task = self._bar.add_task("training", total=total, completed=done, loss="-", rate="-")

    def advance(self, done: int, loss: float, rate: float) -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=done, loss=f"{loss:.4g}", rate=f"{rate:.3g}")

    def epoch(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Write a line above the bar."""
        self._bar.console.print(_epoch_line(epoch, logs), highlight=False, markup=False)

    def stop(self) -> None:
        """Remove the bar."""
        self._bar.stop()


def _epoch_line(epoch: int, logs: Mapping[str, float]) -> str:
    rate = logs["samples"] / max(logs["seconds"], 1e-9)
    values = [f"{name} {value:.4g}" for name, value in logs.items() if name not in UNTOLD]
    return f"epoch {epoch + 1}: {', '.join(values)}, {rate:.3g} samples/s"


def tell_restored(done: int, total: int, stopped: bool, folder: object) -> None:
    """Write from which iteration a fit resumes, or that nothing is left to do."""
    state = f"the checkpoint in {folder} is after iteration {done} of {total}"
    if stopped:
        _write(f"nothing is left to do: {state}, where a callback ended the fit")
    elif done >= total:
        _write(f"nothing is left to do: {state}")
    else:
        _write(f"the fit goes on: {state}")


def duration(seconds: float) -> str:
    """Return seconds as in 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def _write(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


#: Seconds between changes of the widget at least.
EVERY = 0.2


def in_notebook() -> bool:
    """Return whether this is a notebook with ipywidgets."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:
        return False
    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        return False
    return True


class Widget(Progress):
    """A bar, the line of the loss, and the table of epochs, of ipywidgets."""

    def __init__(self) -> None:
        import ipywidgets

        self.bar = ipywidgets.IntProgress(layout=ipywidgets.Layout(width="100%"))
        self.text = ipywidgets.HTML()
        self.whole = ipywidgets.VBox([self.bar, self.text])
        self._losses: list[float] = []
        self._epochs: list[dict[str, float]] = []
        self._line, self._shown, self._remaining = "", 0.0, Remaining()

    def start(self, done: int, total: int) -> None:
        """Show it."""
        from IPython.display import display

        self.bar.max, self.bar.value = total, done
        display(self.whole)  # type: ignore[no-untyped-call]

    def advance(self, done: int, loss: float, rate: float) -> None:
        """Show the iterations done, the last loss and samples per second."""
        self._losses.append(loss)
        self._line = (
            f"iteration {done:,} of {self.bar.max:,}, loss {loss:.4g}, {rate:.3g} samples/s"
            f"{self._remaining(done, self.bar.max)}"
        )
        self.bar.value = done
        if time.monotonic() - self._shown > EVERY:
            self._show()

    def epoch(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Show the means of an epoch, metrics and validation among them."""
        rate = logs["samples"] / max(logs["seconds"], 1e-9)
        self._epochs.append({"samples_per_second": rate, **logs, "epoch": epoch})
        self._show()

    def stop(self) -> None:
        """Show the end."""
        done = self.bar.value >= self.bar.max
        self.bar.bar_style = "success" if done else "warning"
        self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        self.text.value = (
            f"{self._line}<br>{sparkline(self._losses)}{of_epochs(self._epochs, UNTOLD)}"
        )


def make_progress(wanted: bool) -> Progress:
    """Return the progress for a notebook or for standard error."""
    if not wanted:
        return Progress()
    if in_notebook():
        return Widget()
    return Bar() if sys.stderr.isatty() else Lines()
