"""Training of networks in the moving frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from daskdl.data import Recipe, SampleSet
from daskdl.data.lazy.joined import join
from daskdl.errors import DataError, SettingsError
from nowcast.lagrangian.exceedance import MarginTable
from nowcast.lagrangian.frames import frames_back
from nowcast.model.archives import Archive, window_recipes
from nowcast.model.job import Job
from nowcast.model.moving.losses import ExceedanceLoss
from nowcast.model.moving.model import MovingModel
from nowcast.model.moving.networks import Averaged, CorrectionNetwork, network
from nowcast.model.moving.samples import Draw, Mirrors, MovingRecipe
from nowcast.model.settings import TrainSettings
from nowcast.model.split import Stretch, frames_ahead, minutes
from nowcast.rain.frames import WindowRecipe

#: Candidate factors of the learned correction; the best one on the validation part is kept.
PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Largest missing fraction of a region; the area of a composite's radars may have any shape.
MISSING = 0.8
#: Distance of neighbouring regions as a fraction of their side.
STRIDE = 0.375
#: Largest fraction of memory for samples that are made once, instead of in every epoch.
KEPT = 0.2


def train_moving(job: Job, start: MovingModel | None, table: MarginTable) -> MovingModel:
    """Train networks that correct S-PROG's probabilities.

    - ``start``: model to continue from, instead of untrained networks; its table is used.
    - ``table``: table that makes the probabilities.
    """
    table = table if start is None else start.table
    samples, validation = (
        moving_samples(archives, part, job.settings, table, training=training, say=job.say)
        for archives, part, training in (
            (job.archives, job.split.train, True),
            (job.to_validate, job.split.validation, False),
        )
    )  # fmt: skip
    job.announce(samples, validation, "samples")
    samples = _kept(samples, job).map(Mirrors())
    # Validation samples are made once, since they are used after each epoch and for each part.
    validation = validation.persist(job.client)
    networks, loss = _networks(job.settings, start), ExceedanceLoss(job.settings.loss)
    histories = [
        job.fit(one, loss, samples, validation, warmup=50, number=number)
        for number, one in enumerate(networks)
    ]
    losses = {
        part: float(Averaged(networks, part).evaluate(validation, loss=loss)["loss"])
        for part in PARTS
    }
    best = min(losses, key=lambda part: losses[part])
    if not best:
        job.say(
            "nothing that was learned helps on the validation part: the model is sprog's forecast"
        )
    about = job.about | {
        "samples": {"train": len(samples), "validation": len(validation)},
        "validation_loss_by_part": {f"{part:g}": loss for part, loss in losses.items()},
        "part": best,
    }
    job.write_history(histories)
    used = [*job.archives, *job.to_validate]
    return MovingModel(
        Averaged(networks, best),
        tuple(sorted({minutes(archive.step) for archive in used})),
        tuple(sorted({round(archive.spacing_km, 3) for archive in used})),
        job.settings.lead_minutes,
        table,
        job.split,
        about,
    )


def moving_samples(
    archives: Sequence[Archive],
    stretches: Sequence[Stretch],
    settings: TrainSettings,
    table: MarginTable,
    *,
    training: bool,
    say: Callable[[str], None] = lambda _: None,
) -> SampleSet:
    """Return samples of the moving frame; every shard has samples of each archive.

    - ``training``: whether samples are augmented, in the number of the settings; otherwise a fourth
      as many are made.
    - raises DataError if there is no window of frames.
    """
    smallest = [min(a.rain.sizes[axis] for a in archives) for axis in ("y", "x")]
    if min(smallest) < 8:
        raise DataError(
            f"{archives[0].name}: expected at least 8 cells along y and x, found "
            f"{smallest[0]} x {smallest[1]}; train on a larger grid"
        )
    if "max_missing" not in settings.model_fields_set:
        settings = settings.model_copy(update={"max_missing": MISSING})
    shards: list[list[Recipe]] = [[] for _ in range(settings.shards)]
    by_archive = []
    for archive in archives:
        tile = tuple(min(settings.region, archive.rain.sizes[axis]) for axis in ("y", "x"))
        of_archive = [part for part in stretches if part.store == archive.name]
        if of_archive:
            n_out = frames_ahead(settings.lead_minutes, archive.step)
            by_archive += window_recipes(
                [archive], of_archive, frames_back(minutes(archive.step)), n_out, settings,
                (tile[0], tile[1]), max(1, round(STRIDE * settings.region)), say,
            )  # fmt: skip
    if not by_archive:
        raise DataError("training windows: expected stretches, found none")
    draw = Draw(settings.draws, settings.cells, training and settings.augment, settings.seed)
    total = sum(len(recipe) for _, recipes in by_archive for recipe in recipes)
    most = settings.starts if training else max(1, settings.starts // 4)
    for archive, recipes in by_archive:
        step = minutes(archive.step)
        spacing = archive.spacing_km
        for shard, recipe in zip(shards, _thinned(recipes, min(1.0, most / total)), strict=False):
            if len(recipe):
                shard.append(MovingRecipe(recipe, spacing, step, draw, table))
    return SampleSet([join(recipes) for recipes in shards if recipes])


def _networks(settings: TrainSettings, start: MovingModel | None) -> list[CorrectionNetwork]:
    """Return the networks to train: untrained ones, or the networks of a model to continue from.

    Raises SettingsError if that model's number of networks is not the one in the settings.
    """
    if start is None:
        numbers = range(settings.networks)
        return [network(settings.network, settings.seed + number) for number in numbers]
    count = len(start.network.networks)
    if "networks" in settings.model_fields_set and settings.networks != count:
        raise SettingsError(
            f"networks: expected {count}, as the model to start from has, found "
            f"{settings.networks}; leave it out"
        )
    return list(start.network.networks)


def _kept(samples: SampleSet, job: Job) -> SampleSet:
    """Make samples now if this process reuses them and memory suffices; else keep them lazy."""
    import psutil

    seen_again = job.settings.epochs * job.settings.networks > 1
    fits = samples.nbytes <= KEPT * psutil.virtual_memory().total
    if job.client is not None or not seen_again or not fits:
        return samples
    job.say(f"making the samples, which then stay in memory ({samples.nbytes / 1e9:.1f} GB)")
    return samples.persist()


def _thinned(recipes: Sequence[WindowRecipe], share: float) -> list[WindowRecipe]:
    """Return a ``share`` of each recipe's windows, evenly spaced, at least one."""
    if share >= 1:
        return list(recipes)

    def positions(count: int) -> NDArray[np.int64]:
        number = max(1, round(share * count))
        return np.unique(np.linspace(0, count - 1, number).round().astype(np.int64))

    return [recipe.select(positions, 0) for recipe in recipes]
