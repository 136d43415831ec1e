"""The folder of a trained model in either frame, and the time step to apply it at."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from daskdl.errors import DataError
from nowcast.model.model import FILE, NowcastModel
from nowcast.model.moving.model import MovingModel
from nowcast.model.split import minutes

Model: TypeAlias = NowcastModel | MovingModel


def load_model(folder: Path) -> Model:
    """Read a model that ``nowcast train`` wrote.

    Raises DataError if the folder has no model, or another program's.
    """
    import daskdl.models  # noqa: F401  (makes the networks' classes known)
    from daskdl.nn import load, read_metadata

    path = folder / FILE if folder.is_dir() else folder
    if not path.is_file():
        raise DataError(
            f"{folder}: expected a model that nowcast train wrote, found no {FILE}; "
            "give the folder that was its --out"
        )
    network: Any = load(path)
    metadata = read_metadata(path)
    try:
        if metadata.get("frame") == "moving":
            return MovingModel.of(network, metadata)
        return NowcastModel.of(network, metadata)
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path}: expected a model that nowcast train wrote, found one without {error}; "
            "train it again with this version"
        ) from error


#: Steps that differ by less than this fraction are equal.
SAME = 0.01


def step_for(model: Model, step: np.timedelta64, name: str) -> tuple[np.timedelta64, str]:
    """Return the step of the frames to give to a model, and a sentence for the user.

    If frames follow each other faster than in training, some are left out, such as every second
    one. Networks of the moving frame also accept slower frames, because the step is one of their
    inputs.

    - ``step``: step of the available frames.
    - ``name``: name of the frames for messages.
    - returns ``step``: a multiple of the frames' step.
    - returns ``sentence``: empty if the frames' step is used and is within the steps of training.
    - raises DataError if the model cannot be applied.
    """
    moving = isinstance(model, MovingModel)
    trained = model.steps if isinstance(model, MovingModel) else (minutes(model.step),)
    low, high, have = trained[0], trained[-1], minutes(step)
    every = f"every {low:g}{f' to {high:g}' if high > low else ''} min"
    if low * (1 - SAME) <= have <= high * (1 + SAME):
        return step, ""
    times = math.ceil(low * (1 - SAME) / have)
    if have < low and (moving or times * have <= high * (1 + SAME)):
        return times * step, (
            f"{name}: the model was trained on frames {every}; of these, every {have:g} min, one "
            f"in {times} is used"
        )
    if moving:
        return step, (
            f"{name}: the model was trained on frames {every}, and is used on frames every "
            f"{have:g} min; it knows less of these"
        )
    raise DataError(
        f"{name}: expected frames {every} or a whole part of that, as the model was trained on, "
        f"found every {have:g} min; train one on such frames"
    )
