"""From rain stores to a trained model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.errors import SettingsError
from nowcast.model.archives import (
    Archive,
    common_step_and_spacing,
    grid_spacing,
    split_archives,
    training_windows,
)
from nowcast.model.augment import Symmetries
from nowcast.model.model import NowcastModel, minutes
from nowcast.model.rain_scale import RainScale
from nowcast.model.settings import TrainSettings
from nowcast.model.split import Stretch
from nowcast.rain.replacing import beside, remove
from nowcast.rain.simulated import is_simulated

if TYPE_CHECKING:
    from distributed import Client

    from daskdl.models import ConvLSTMForecaster


class ToNetwork:
    """Turns windows of rain rates into the network's numbers; a missing input is read as dry."""

    def __init__(self, scale: RainScale) -> None:
        self.scale = scale

    def __call__(self, batch: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Scale ``x`` and ``y``; NaN stays in ``y``, where the loss leaves it out."""
        return {
            "x": self.scale.to_network(np.nan_to_num(batch["x"])),
            "y": self.scale.to_network(batch["y"]),
        }


def frames_ahead(lead_minutes: float, step: np.timedelta64) -> int:
    """Return how many steps make up a lead time.

    Raises
    ------
    SettingsError
        When it is not a whole number of steps.
    """
    count = lead_minutes / minutes(step)
    if count < 1 or abs(count - round(count)) > 1e-6:
        raise SettingsError(
            f"lead time: expected a multiple of the frames' {minutes(step):g} min, "
            f"found {lead_minutes:g} min"
        )
    return round(count)


def train(
    stores: Path | Sequence[Path],
    out: Path,
    settings: TrainSettings,
    client: Client | None = None,
    progress: bool = True,
    say: Callable[[str], None] = lambda _: None,
    *,
    validate: Sequence[Path] = (),
    test: Sequence[Path] = (),
    init: Path | None = None,
) -> NowcastModel:
    """Train an encoder-forecaster on rain stores and write it to a folder.

    Parameters
    ----------
    stores : path, or several
        Rain stores; each is brought to one step and spacing as it is read, see `TrainSettings`.
    out : path
        Folder of the model; the run's checkpoint is kept in it while it lasts, so that the same
        call goes on after an interruption.
    settings : TrainSettings
    client : distributed.Client, optional
        Cluster to train on; without it, in this process. The model is the same.
    progress : bool
        Whether to show it on standard error.
    say : function of a sentence
        Told what is done.
    validate, test : sequence of path
        Stores to validate and to test on; without any, parts of ``stores``, see `split_archives`.
    init : path, optional
        Folder of a model to start from, in place of random weights. Its step, spacing and shape are
        taken.

    Returns
    -------
    NowcastModel
        The weights of the epoch with the lowest loss on the validation part.

    Raises
    ------
    DataError
        When a store holds too few consecutive frames, or none with rain.
    SettingsError
        When the model to start from has another lead time.
    """
    from daskdl.nn import PrecipitationLoss
    from daskdl.optim import Adam, ClipNorm
    from daskdl.optim.schedules import Cosine, Warmup
    from daskdl.train import BestModel, Trainer

    paths = [stores] if isinstance(stores, str | Path) else list(stores)
    start = None if init is None else NowcastModel.load(init)
    if start is None:
        step, spacing = common_step_and_spacing([*paths, *validate, *test], settings)
    else:
        step, spacing = start.step, start.spacing[1]
        settings = start.shape(settings)
    n_out = frames_ahead(settings.lead_minutes, step)
    archives, to_validate, to_test = (
        [Archive.open(path, step, spacing) for path in part] for part in (paths, validate, test)
    )
    split = split_archives(archives, to_validate, to_test, settings, settings.n_in + n_out)
    scale = RainScale()
    samples = training_windows(archives, split.train, n_out, settings, say)
    validation = training_windows(to_validate or archives, split.validation, n_out, settings, say)
    if settings.augment:  # before a missing input is read as dry, since it changes x with y
        samples = samples.map(Symmetries())
    samples, validation = (part.map(ToNetwork(scale)) for part in (samples, validation))
    say(
        f"{len(samples)} training windows from {_text(split.train)}, {len(validation)} to "
        f"validate on from {_text(split.validation)}; {_text(split.test)} to test on"
    )
    workers = 0 if client is None else len(client.scheduler_info(n_workers=-1)["workers"])
    if workers > samples.partitions:
        say(
            f"{workers} workers, {samples.partitions} of them with work, one a shard; "
            f"--set shards={workers} uses all and gives another model"
        )
    network = _network(settings, n_out) if start is None else start.network
    iterations = max(1, round(settings.epochs * len(samples) / settings.batch_size))
    loss = PrecipitationLoss(
        scale.to_network(np.asarray(settings.thresholds, np.float32)).tolist(), settings.weights
    )
    rise = min(20, iterations // 4 + 1)
    fall = Cosine(settings.rate, max(1, iterations - rise), end=0.05 * settings.rate)
    method = ClipNorm(Adam(Warmup(fall, rise)), 1.0)
    history = Trainer(network, loss, method, seed=settings.seed).fit(
        samples,
        iterations=iterations,
        batch_size=settings.batch_size,
        validation=validation,
        callbacks=[BestModel()],
        checkpoint=out / "training",
        client=client,
        progress=progress,
    )
    about = {
        "trained_on": [archive.name for archive in archives],
        "simulated": any(is_simulated(archive.store) for archive in archives),
        "started_from": None if init is None else str(init),
        "settings": settings.model_dump(mode="json"),
        "windows": {"train": len(samples), "validation": len(validation)},
        "iterations": iterations,
    }
    model = NowcastModel(network, step, grid_spacing(archives[0].rain), scale, split, about)
    model.save(out)
    _write_history(history, out / "history.json")
    remove(out / "training")  # what an interrupted run would have gone on from
    return model


def _network(settings: TrainSettings, n_out: int) -> ConvLSTMForecaster:
    from daskdl.models import ConvLSTMForecaster

    return ConvLSTMForecaster(
        settings.n_in,
        n_out,
        settings.channels,
        settings.kernel_size,
        settings.block,
        settings.seed,
    )


def _text(stretches: Sequence[Stretch]) -> str:
    """Say which stretches, the number of them when there are many."""
    if len(stretches) == 1:
        return str(stretches[0])
    return f"{len(stretches)} stretches of {len({s.store for s in stretches})} stores"


def _write_history(history: Any, path: Path) -> None:
    with beside(path) as temporary:
        temporary.write_text(json.dumps(history.to_dict(), indent=1))
