"""Training of networks in the fixed frame, which map images of rain to images of rain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nowcast.model.archives import training_windows
from nowcast.model.job import Job
from nowcast.model.model import NowcastModel, RainScale
from nowcast.model.settings import TrainSettings
from nowcast.model.split import frames_ahead
from nowcast.rain.grid import grid_spacing

if TYPE_CHECKING:
    from daskdl.models import ConvLSTMForecaster


class Symmetries:
    """Changes each window at random to another possible course of the rain.

    Windows are mirrored in x, in y, and along the diagonal if square, because storms of a short
    archive move in few directions. They are also reversed in time: else, if an archive ends while
    its storms grow, a model would learn that storms always grow.
    """

    def __call__(self, batch: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Return ``x`` and ``y``, (N, T, H, W, 1) each; every window has its own random change."""
        n_in = batch["x"].shape[1]
        frames = np.concatenate([batch["x"], batch["y"]], axis=1)
        square = frames.shape[2] == frames.shape[3]
        result = np.empty_like(frames)
        for window, target, ways in zip(
            frames, result, rng.integers(0, 2, (len(frames), 4)), strict=True
        ):
            back, down, across = (slice(None, None, -1 if way else 1) for way in ways[:3])
            changed = window[back, down, across]
            target[...] = changed.swapaxes(1, 2) if square and ways[3] else changed
        return {"x": result[:, :n_in], "y": result[:, n_in:]}


class ToNetwork:
    """Scales windows of rain rates for the network; missing inputs count as dry."""

    def __init__(self, scale: RainScale) -> None:
        self.scale = scale

    def __call__(self, batch: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Scale ``x`` and ``y``; NaN stays in ``y``, because the loss ignores it."""
        return {
            "x": self.scale.to_network(np.nan_to_num(batch["x"])),
            "y": self.scale.to_network(batch["y"]),
        }


def train_fixed(job: Job, start: NowcastModel | None = None) -> NowcastModel:
    """Train an encoder-forecaster of ConvLSTM layers.

    - ``start``: model to continue from, instead of random weights.
    """
    from daskdl.nn import PrecipitationLoss

    settings, scale, step = job.settings, RainScale(), job.archives[0].step
    n_out = frames_ahead(settings.lead_minutes, step)
    samples = training_windows(job.archives, job.split.train, n_out, settings, job.say)
    validation = training_windows(job.to_validate, job.split.validation, n_out, settings, job.say)
    if settings.augment:  # before missing inputs become dry, since it may swap x and y
        samples = samples.map(Symmetries())
    samples, validation = (part.map(ToNetwork(scale)) for part in (samples, validation))
    job.announce(samples, validation, "windows")
    network = _network(settings, n_out) if start is None else start.network
    loss = PrecipitationLoss(
        scale.to_network(np.asarray(settings.thresholds, np.float32)).tolist(), settings.weights
    )
    history = job.fit(network, loss, samples, validation, warmup=20)
    about = job.about | {
        "windows": {"train": len(samples), "validation": len(validation)},
        "iterations": job.iterations(samples),
    }
    job.write_history([history])
    spacing = grid_spacing(job.archives[0].rain, job.archives[0].name)
    return NowcastModel(network, step, spacing, scale, job.split, about)


def _network(settings: TrainSettings, n_out: int) -> ConvLSTMForecaster:
    from daskdl.models import ConvLSTMForecaster

    return ConvLSTMForecaster(
        settings.n_in, n_out, settings.channels, settings.kernel_size, settings.block, settings.seed
    )
