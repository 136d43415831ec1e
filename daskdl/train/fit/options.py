"""Options of a fit: what they may be, and the sentence if they are not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from daskdl.collective.codec import check_wire
from daskdl.errors import SettingsError
from daskdl.predict.arguments import whole
from daskdl.train.engines.choice import check_engine
from daskdl.train.fit.callback import Callback, check_callbacks


@dataclass(frozen=True)
class FitOptions:
    """Arguments of :meth:`daskdl.train.Trainer.fit` beside samples and client, each checked.

    Raises SettingsError for the first one that makes no sense.
    """

    epochs: int | None
    iterations: int | None
    batch_size: int
    shards: int | None
    validation: Any
    callbacks: Sequence[Callback]
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int | None
    resume: bool
    engine: str
    threads: int | None
    wire: str
    progress: bool
    shuffle: str
    training_metrics: bool

    def __post_init__(self) -> None:
        check_engine(self.engine)
        check_callbacks(self.callbacks)
        self.total(1)
        for name in ("shards", "batch_size", "threads", "checkpoint_every"):
            value = getattr(self, name)
            if value is not None or name == "batch_size":
                object.__setattr__(self, name, whole(f"Trainer.fit, {name}", value))
        check_wire(self.wire)

    def total(self, per_epoch: int) -> int:
        """Return the iterations of a run, of epochs of so many each."""
        if (self.epochs is None) == (self.iterations is None):
            raise SettingsError(
                f"Trainer.fit: expected either epochs or iterations, found epochs={self.epochs!r} "
                f"and iterations={self.iterations!r}; give one of the two"
            )
        if self.epochs is None:
            return whole("Trainer.fit, iterations", self.iterations)
        return whole("Trainer.fit, epochs", self.epochs) * per_epoch
