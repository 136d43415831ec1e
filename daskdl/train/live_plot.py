"""LivePlot: the picture of a fit's history, drawn again while it trains."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskdl.errors import SettingsError
from daskdl.train.callbacks import Callback, Logs

if TYPE_CHECKING:
    from daskdl.train.trainer import Trainer


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
                beside = self.path.with_name(f".{self.path.name}")
                figure.savefig(beside, format=self.path.suffix.removeprefix(".") or "png")
                beside.replace(self.path)
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
