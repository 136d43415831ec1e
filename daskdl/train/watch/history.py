"""History: loss, counts and phase times of every iteration, and a summary of each epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError, needed
from daskdl.names import nearest
from daskdl.train.engines.step import PHASES, Record

if TYPE_CHECKING:
    import pandas as pd

#: Columns of an iteration.
COLUMNS = ("loss", "samples", "seconds", *PHASES)

#: Columns of an epoch that are not means or sums of these.
EPOCH = ("epoch", "iteration", "samples_per_second", "validation")

#: Columns that are not in the line of an epoch.
UNTOLD = {*EPOCH, *COLUMNS} - {"loss"}


class History:
    """Record of a fit.

    Iterations have the :data:`COLUMNS` and, if they were computed of training batches, metrics by
    name.

    Attributes
    ----------
    epochs : list of dict
        A row for each: ``epoch``, ``iteration`` (at its end), ``loss`` and the metrics (means over
        its samples while the weights changed), ``samples``, ``seconds``, ``samples_per_second`` and
        the seconds of each of :data:`PHASES`. With validation also ``val_loss``, each metric as
        ``val_<name>``, and the seconds of ``validation``, which ``seconds`` does not include.

    Examples
    --------
    >>> from daskdl import Trainer
    >>> from daskdl.optim import SGD
    >>> trainer, x = Trainer(nn.Linear(1, 1), nn.MSELoss(), SGD(0.1)), np.ones((4, 1))
    >>> history = trainer.fit(x, x, epochs=3, batch_size=4, progress=False)
    >>> len(history), len(history.epochs), bool(history["loss"][2] < history["loss"][0])
    (3, 3, True)
    """

    def __init__(self) -> None:
        self._columns: dict[str, list[float]] = {name: [] for name in COLUMNS}
        self.epochs: list[dict[str, float]] = []

    def __len__(self) -> int:
        """Return the number of iterations."""
        return len(self._columns["loss"])

    def __getitem__(self, column: str) -> NDArray[np.float64]:
        """Return one of :data:`COLUMNS`, or a metric, float64 (iterations,)."""
        if column not in self._columns:
            near = ", ".join(map(repr, nearest(column, self._columns)))
            raise SettingsError(
                f"History: expected a column such as {near}, found {column!r}; what belongs to an "
                "epoch, such as 'val_loss', is in history.epochs"
            )
        return np.array(self._columns[column], np.float64)

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics of training batches."""
        return list(self._columns)[len(COLUMNS) :]

    def add(self, records: Sequence[Record], seconds: float, metrics: Sequence[str] = ()) -> None:
        """Append a group of iterations that took ``seconds`` together.

        A metric that earlier iterations do not have is NaN there.
        """
        for name in metrics:
            self._columns.setdefault(name, [math.nan] * len(self))
        ends = np.array([record.finished for record in records])
        between = np.diff(ends).clip(0)
        # The time from the call to the first update has no clock of its own.
        took = np.concatenate([[max(0.0, seconds - between.sum())], between])
        phases = [[getattr(record, name) for record in records] for name in PHASES[:-1]]
        clocks = zip(took.tolist(), *phases, strict=True)
        new: dict[str, Sequence[float]] = {
            "loss": [record.loss for record in records],
            "samples": [record.samples for record in records],
            "seconds": took.tolist(),
            **dict(zip(PHASES, phases, strict=False)),
            "wait": [max(0.0, each - sum(known)) for each, *known in clocks],
        }
        values = zip(*(record.metrics for record in records), strict=True)
        new |= dict(zip(metrics, values, strict=False))
        for name, column in self._columns.items():
            column.extend(new.get(name) or [math.nan] * len(records))

    def cut(self, iterations: int) -> None:
        """Forget everything after ``iterations``."""
        for column in self._columns.values():
            del column[iterations:]
        self.epochs[:] = [row for row in self.epochs if row["iteration"] <= iterations]

    def since(self, first: int) -> dict[str, float]:
        """Return means of loss and metrics over samples, sums of all else, from ``first`` on."""
        samples = self["samples"][first:]
        total, seconds = int(samples.sum()), float(self["seconds"][first:].sum())
        return {
            **{name: _mean(self[name][first:], samples) for name in ("loss", *self.metrics)},
            "samples": total,
            "seconds": seconds,
            "samples_per_second": rate(total, seconds),
            **{phase: float(self[phase][first:].sum()) for phase in PHASES},
        }

    def __repr__(self) -> str:
        last = self.epochs[-1] if self.epochs else {}
        shown = ", ".join(f"{k}={last[k]:.4g}" for k in ("loss", "val_loss") if k in last)
        return (
            f"History({len(self)} iterations, {len(self.epochs)} epochs{', ' * bool(shown)}{shown})"
        )

    def _repr_html_(self) -> str:
        from daskdl.train.watch.display import of_epochs, sparkline

        line = f"<p>{escape(repr(self))} {sparkline(self['loss'].tolist())}</p>"
        return line + of_epochs(self.epochs, UNTOLD)

    # --- out and in

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: ``iterations`` by column, and ``epochs``."""
        return {
            "iterations": {name: list(values) for name, values in self._columns.items()},
            "epochs": [dict(row) for row in self.epochs],
        }

    def to_frame(self, epochs: bool = False) -> pd.DataFrame:
        """Return a pandas DataFrame with one row an iteration, or one an epoch.

        The columns are :data:`COLUMNS`, ``samples_per_second`` and the metrics, or the keys of
        :attr:`epochs`.
        """
        with needed(
            "History.to_frame: expected pandas, found it not installed; pip install pandas"
        ):
            import pandas as pd
        if epochs:
            return pd.DataFrame(self.epochs, columns=None if self.epochs else ["epoch"]).set_index(
                "epoch"
            )
        frame = pd.DataFrame(self._columns)
        rates = [rate(n, s) for n, s in zip(frame["samples"], frame["seconds"], strict=True)]
        frame.insert(3, "samples_per_second", np.array(rates, np.float64))
        frame.index.name = "iteration"
        return frame

    def plot(self, ax: Any = None) -> Any:
        """Draw loss, metrics and times of the fit with matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the loss alone. By default a new figure has panels for loss, metrics if there
            are any, and the seconds of an iteration by phase.

        Returns
        -------
        ax, or the list of the new figure's Axes
        """
        from daskdl.train.watch.plot import draw, draw_loss

        if ax is None:
            return draw(self)
        draw_loss(self, ax)
        return ax

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the columns as arrays, for a checkpoint."""
        return {name: self[name] for name in self._columns}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[np.float64]], epochs: Sequence[dict[str, float]]
    ) -> History:
        """Undo :meth:`arrays`."""
        history = cls()
        names = dict.fromkeys((*COLUMNS, *arrays))
        history._columns = {name: arrays[name].tolist() for name in names}
        history._columns["samples"] = [int(n) for n in history._columns["samples"]]
        history.epochs = [dict(row) for row in epochs]
        return history


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the mean of values without NaN, such as the AUC of a batch of one class."""
    known = ~np.isnan(values)
    total = weights[known].sum()
    return float((values[known] * weights[known]).sum() / total) if total else math.nan


def rate(samples: float, seconds: float) -> float:
    """Return samples per second; NaN for no time, as between clocks that disagree."""
    return float(samples / seconds) if seconds > 0 else float("nan")
