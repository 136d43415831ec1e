"""From rain stores to a trained model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from daskdl.files import remove
from nowcast.lagrangian.exceedance import SHIPPED, MarginTable
from nowcast.lagrangian.frames import frames_back
from nowcast.model.archives import Archive, common_step_and_spacing, split_archives
from nowcast.model.fixed import train_fixed
from nowcast.model.folder import Model, load_model
from nowcast.model.job import Job
from nowcast.model.model import NowcastModel
from nowcast.model.moving.model import MovingModel
from nowcast.model.moving.train import train_moving
from nowcast.model.settings import TrainSettings, check_frame
from nowcast.model.split import minutes
from nowcast.rain.identity import is_simulated

if TYPE_CHECKING:
    from distributed import Client


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
    table: MarginTable = SHIPPED,
) -> Model:
    """Train a network on rain stores and write it to a folder.

    - ``stores``: rain stores; all are resampled to one step and spacing on reading, see
      `TrainSettings`.
    - ``out``: folder of the model; during the run it also has a checkpoint, so that the same call
      resumes after an interruption.
    - ``client``: cluster to train on; without one, this process trains. The model is the same.
    - ``progress``: whether to show progress on standard error.
    - ``say``: function that gets messages on the run.
    - ``validate``, ``test``: stores for validation and test; by default parts of ``stores``, see
      `split_archives`.
    - ``init``: folder of a model to start from, instead of random weights. Its frame, step, spacing
      and shape are used.
    - ``table``: table of the probabilities that a network of the moving frame corrects.
    - returns the model with the weights of the epoch of lowest loss on the validation part.
    - raises DataError if a store has too few consecutive frames, or none with rain.
    - raises SettingsError if the model to start from has another lead time, or settings contradict
      each other.
    """
    paths = [stores] if isinstance(stores, str | Path) else list(stores)
    start = None if init is None else load_model(init)
    settings = settings if start is None else start.shape(settings)
    check_frame(settings)
    moving = settings.frame == "moving"
    step, spacing = settings.step_and_spacing
    if isinstance(start, NowcastModel):
        step, spacing = start.step, start.spacing[1]
    elif not moving:
        step, spacing = common_step_and_spacing([*paths, *validate, *test], step, spacing)
    archives, to_validate, to_test = (
        [Archive.open(path, step, spacing) for path in part] for part in (paths, validate, test)
    )
    n_in = settings.n_in
    if moving:
        n_in = max(frames_back(minutes(archive.step)) for archive in archives)
    split = split_archives(archives, to_validate, to_test, settings, n_in)
    job = Job(
        archives, to_validate or archives, split, settings, out, client, progress, say,
        {
            "trained_on": [archive.name for archive in archives],
            "simulated": any(is_simulated(archive.store) for archive in archives),
            "started_from": None if init is None else str(init),
            "settings": settings.model_dump(mode="json"),
        },
    )  # fmt: skip
    model: Model
    if moving:
        model = train_moving(job, start if isinstance(start, MovingModel) else None, table)
    else:
        model = train_fixed(job, start if isinstance(start, NowcastModel) else None)
    model.save(out)
    remove(out / "training")  # the checkpoint for a resumed run
    return model
