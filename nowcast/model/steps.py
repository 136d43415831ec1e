"""The time step at which a model is applied to frames of another one."""

from __future__ import annotations

import math

import numpy as np

from daskdl.errors import DataError
from nowcast.model.folder import Model
from nowcast.model.minutes import minutes
from nowcast.model.moving.model import MovingModel

#: Steps that differ by less than this part are the same.
SAME = 0.01


def step_for(model: Model, step: np.timedelta64, name: str) -> tuple[np.timedelta64, str]:
    """Return the step at which to give frames to a model, and what to say about it.

    Frames that follow each other faster than those that the model was trained on are left out,
    every second one or more. Networks of the moving frame, which are told the step, also take
    slower ones.

    Parameters
    ----------
    model : MovingModel or NowcastModel
    step : timedelta64
        Of the frames that there are.
    name : str
        Of these, for messages.

    Returns
    -------
    step : timedelta64
        A multiple of the frames' own.
    sentence : str
        Empty when it is the frames' own, and among those that the model was trained on.

    Raises
    ------
    DataError
        When the model cannot be applied.
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
