"""Training of networks in the fixed frame: images of rain from images of rain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nowcast.model.archives import grid_spacing, training_windows
from nowcast.model.inputs import RainScale, Symmetries
from nowcast.model.job import Job
from nowcast.model.minutes import frames_ahead
from nowcast.model.model import NowcastModel
from nowcast.model.settings import TrainSettings

if TYPE_CHECKING:
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


def train_fixed(job: Job, start: NowcastModel | None = None) -> NowcastModel:
    """Train an encoder-forecaster of ConvLSTM layers.

    Parameters
    ----------
    job : Job
    start : NowcastModel, optional
        To go on with, in place of random weights.
    """
    from daskdl.nn import PrecipitationLoss
    from daskdl.optim import Adam, ClipNorm
    from daskdl.optim.schedules import Cosine, Warmup
    from daskdl.train import BestModel, Trainer

    settings, scale, step = job.settings, RainScale(), job.archives[0].step
    n_out = frames_ahead(settings.lead_minutes, step)
    samples = training_windows(job.archives, job.split.train, n_out, settings, job.say)
    validation = training_windows(job.to_validate, job.split.validation, n_out, settings, job.say)
    if settings.augment:  # before a missing input is read as dry, since it changes x with y
        samples = samples.map(Symmetries())
    samples, validation = (part.map(ToNetwork(scale)) for part in (samples, validation))
    job.announce(samples, validation, "windows")
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
        checkpoint=job.out / "training",
        client=job.client,
        progress=job.progress,
    )
    about = job.about | {
        "windows": {"train": len(samples), "validation": len(validation)},
        "iterations": iterations,
    }
    job.write_history([history])
    spacing = grid_spacing(job.archives[0].rain)
    return NowcastModel(network, step, spacing, scale, job.split, about)


def _network(settings: TrainSettings, n_out: int) -> ConvLSTMForecaster:
    from daskdl.models import ConvLSTMForecaster

    return ConvLSTMForecaster(
        settings.n_in, n_out, settings.channels, settings.kernel_size, settings.block, settings.seed
    )
