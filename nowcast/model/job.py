"""A training job, for the fixed and the moving frame."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daskdl.files import replacing
from nowcast.model.archives import Archive
from nowcast.model.settings import TrainSettings
from nowcast.model.split import Split, Stretch

if TYPE_CHECKING:
    from distributed import Client

    from daskdl.data import SampleSet
    from daskdl.nn import Loss, Module
    from daskdl.train import History


@dataclass(frozen=True)
class Job:
    """A training run: its archives and their split, its settings and its output folder."""

    #: Archives with stretches to train on (``archives``) and to validate on (``to_validate``).
    archives: Sequence[Archive]
    to_validate: Sequence[Archive]
    split: Split
    settings: TrainSettings
    out: Path  #: Folder of the model.
    client: Client | None
    progress: bool
    say: Callable[[str], None]
    about: dict[str, Any]  #: Plain data for people.

    def announce(self, samples: SampleSet, validation: SampleSet, noun: str) -> None:
        """Report the numbers of samples, and workers without any."""
        split = self.split
        self.say(
            f"{len(samples)} training {noun} from {_text(split.train)}, {len(validation)} to "
            f"validate on from {_text(split.validation)}; {_text(split.test)} to test on"
        )
        workers = (
            0 if self.client is None else len(self.client.scheduler_info(n_workers=-1)["workers"])
        )
        if workers > samples.partitions:
            self.say(
                f"{workers} workers, {samples.partitions} of them with work, one a shard; "
                f"--set shards={workers} uses all and gives another model"
            )

    def iterations(self, samples: SampleSet) -> int:
        """Return the number of batches in the epochs of the settings."""
        return max(1, round(self.settings.epochs * len(samples) / self.settings.batch_size))

    def fit(
        self, network: Module, loss: Loss, samples: SampleSet, validation: SampleSet, *,
        warmup: int, number: int | None = None,
    ) -> History:  # fmt: skip
        """Train a network; it ends with the weights of the epoch of lowest validation loss.

        - ``warmup``: largest number of iterations in which the learning rate rises before it falls.
        - ``number``: number of this network if there are several; each has a seed and a checkpoint.
        """
        from daskdl.optim import Adam, ClipNorm
        from daskdl.optim.schedules import Cosine, Warmup
        from daskdl.train import BestModel, Trainer

        settings, iterations = self.settings, self.iterations(samples)
        rise = min(warmup, iterations // 4 + 1)
        fall = Cosine(settings.rate, max(1, iterations - rise), end=0.05 * settings.rate)
        method = ClipNorm(Adam(Warmup(fall, rise)), 1.0)
        checkpoint = self.out / "training"
        return Trainer(network, loss, method, seed=settings.seed + (number or 0)).fit(
            samples,
            iterations=iterations,
            batch_size=settings.batch_size,
            validation=validation,
            callbacks=[BestModel()],
            checkpoint=checkpoint if number is None else checkpoint / str(number),
            client=self.client,
            progress=self.progress,
        )

    def write_history(self, histories: Sequence[History]) -> None:
        """Write ``history.json``: one history, or a list for several networks."""
        rows = [history.to_dict() for history in histories]
        with replacing(self.out / "history.json") as temporary:
            temporary.write_text(json.dumps(rows[0] if len(rows) == 1 else rows, indent=1))


def _text(stretches: Sequence[Stretch]) -> str:
    """Return a stretch as text, or the number of several stretches."""
    if len(stretches) == 1:
        return str(stretches[0])
    return f"{len(stretches)} stretches of {len({s.store for s in stretches})} stores"
