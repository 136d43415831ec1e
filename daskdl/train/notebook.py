"""Notebook: the progress of a fit as a widget that changes while it trains."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from daskdl.train.display import of_epochs, sparkline
from daskdl.train.history import UNTOLD
from daskdl.train.progress import Bar, Lines, Progress, Silent, duration

#: Seconds between changes of the widget at least.
EVERY = 0.2


def in_notebook() -> bool:
    """Return whether a kernel shows results, and ipywidgets is there."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:
        return False
    try:
        import ipywidgets  # noqa: F401
    except ImportError:
        return False
    return True


class Widget(Silent):
    """A bar, the line of the loss, and the table of epochs, of ipywidgets."""

    def __init__(self) -> None:
        import ipywidgets

        self.bar = ipywidgets.IntProgress(layout=ipywidgets.Layout(width="100%"))
        self.text = ipywidgets.HTML()
        self.whole = ipywidgets.VBox([self.bar, self.text])
        self._losses: list[float] = []
        self._epochs: list[dict[str, float]] = []
        self._line, self._shown = "", 0.0

    def start(self, done: int, total: int) -> None:
        """Show it."""
        from IPython.display import display

        self._first, self._began = done, time.monotonic()
        self.bar.max, self.bar.value = total, done
        display(self.whole)  # type: ignore[no-untyped-call]

    def advance(self, done: int, loss: float, rate: float) -> None:
        """Tell the iterations done, the last loss and samples per second."""
        self._losses.append(loss)
        now = time.monotonic()
        left = (now - self._began) / max(1, done - self._first) * (self.bar.max - done)
        self._line = (
            f"iteration {done:,} of {self.bar.max:,}, loss {loss:.4g}, {rate:.3g} samples/s, "
            f"{duration(left)} left"
        )
        self.bar.value = done
        if now - self._shown > EVERY:
            self._show()

    def epoch(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Tell the means of an epoch, metrics and validation among them."""
        rate = logs["samples"] / max(logs["seconds"], 1e-9)
        self._epochs.append({"samples_per_second": rate, **logs, "epoch": epoch})
        self._show()

    def stop(self) -> None:
        """Show how it ended."""
        done = self.bar.value >= self.bar.max
        self.bar.bar_style = "success" if done else "warning"
        self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        self.text.value = (
            f"{self._line}<br>{sparkline(self._losses)}{of_epochs(self._epochs, UNTOLD)}"
        )


def make_progress(wanted: bool) -> Progress:
    """Return the progress that fits: a notebook's, or that of standard error."""
    if not wanted:
        return Silent()
    if in_notebook():
        return Widget()
    return Bar() if sys.stderr.isatty() else Lines()
