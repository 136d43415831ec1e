"""From a rain store to a trained model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.errors import DataError, SettingsError
from nowcast.model.augment import Symmetries
from nowcast.model.model import NowcastModel, minutes
from nowcast.model.rain_scale import RainScale
from nowcast.model.settings import TrainSettings
from nowcast.model.split import split_by_time
from nowcast.rain.replacing import beside, remove
from nowcast.rain.simulated import is_simulated
from nowcast.rain.store import open_rain, path_of, time_step

if TYPE_CHECKING:
    import xarray as xr
    from distributed import Client

    from daskdl.data import SampleSet


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


def grid_spacing(rain: xr.Dataset) -> tuple[float, float]:
    """Return the metres between rows and between columns of a rain store."""
    spacing = []
    for name in ("y", "x"):
        values = rain[name].values
        if len(values) < 2:
            raise DataError(f"{path_of(rain)}: expected at least 2 cells along {name}, found 1")
        spacing.append(float(values[-1] - values[0]) / (len(values) - 1))
    return spacing[0], spacing[1]


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


def training_windows(
    path: Path, rain: xr.Dataset, times: Any, n_out: int, settings: TrainSettings
) -> SampleSet:
    """Return the windows of frames of a stretch of time, in mm h-1."""
    from nowcast.rain.windows import windows

    block = settings.block
    high, wide = (min(settings.tile, rain.sizes[axis]) // block * block for axis in ("y", "x"))
    if min(high, wide) == 0:
        raise DataError(
            f"{path}: expected at least {block} cells along y and x, found "
            f"{rain.sizes['y']} x {rain.sizes['x']}"
        )
    return windows(
        path,
        variable="rain_rate",
        n_in=settings.n_in,
        n_out=n_out,
        step=time_step(rain),
        times=times,
        tile=(high, wide),
        tile_stride=settings.tile_stride,
        wet_threshold=settings.wet_threshold,
        wet_fraction=settings.wet_fraction,
        keep_dry=settings.keep_dry,
        max_missing=settings.max_missing,
        partitions=settings.shards,
        seed=settings.seed,
    )


def train(
    path: Path,
    out: Path,
    settings: TrainSettings,
    client: Client | None = None,
    progress: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> NowcastModel:
    """Train an encoder-forecaster on a rain store and write it to a folder.

    Parameters
    ----------
    path : path
        Rain store.
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

    Returns
    -------
    NowcastModel
        The weights of the epoch with the lowest loss on the validation part.

    Raises
    ------
    DataError
        When the store holds too few consecutive frames, or none with rain.
    """
    from daskdl.models import ConvLSTMForecaster
    from daskdl.nn import PrecipitationLoss
    from daskdl.optim import Adam, ClipNorm
    from daskdl.optim.schedules import Cosine, Warmup
    from daskdl.train import BestModel, Trainer

    rain = open_rain(path)
    step = time_step(rain)
    n_out = frames_ahead(settings.lead_minutes, step)
    split = split_by_time(rain["time"].values, settings.fractions, settings.n_in + n_out)
    scale = RainScale()
    samples = training_windows(path, rain, split.train, n_out, settings)
    validation = training_windows(path, rain, split.validation, n_out, settings)
    if settings.augment:  # before a missing input is read as dry, since it changes x with y
        samples = samples.map(Symmetries())
    samples, validation = (part.map(ToNetwork(scale)) for part in (samples, validation))
    say(
        f"{len(samples)} training windows from {split.train[0]} to {split.train[1]}, "
        f"{len(validation)} to validate on from {split.validation[0]} to {split.validation[1]}"
    )
    workers = 0 if client is None else len(client.scheduler_info(n_workers=-1)["workers"])
    if workers > samples.partitions:
        say(
            f"{workers} workers, {samples.partitions} of them with work, one a shard; "
            f"--set shards={workers} uses all and gives another model"
        )
    network = ConvLSTMForecaster(
        settings.n_in,
        n_out,
        settings.channels,
        settings.kernel_size,
        settings.block,
        settings.seed,
    )
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
        "trained_on": rain.attrs.get("title", str(path)),
        "simulated": is_simulated(rain),
        "settings": settings.model_dump(mode="json"),
        "windows": {"train": len(samples), "validation": len(validation)},
        "iterations": iterations,
    }
    model = NowcastModel(network, step, grid_spacing(rain), scale, split, about)
    model.save(out)
    _write_history(history, out / "history.json")
    remove(out / "training")  # what an interrupted run would have gone on from
    return model


def _write_history(history: Any, path: Path) -> None:
    with beside(path) as temporary:
        temporary.write_text(json.dumps(history.to_dict(), indent=1))
