"""Steps at which models are applied to frames of another step."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.lagrangian.margins import SHIPPED
from nowcast.model.moving.model import MovingModel
from nowcast.model.moving.networks import Averaged, network
from nowcast.model.split import Split
from nowcast.model.steps import step_for
from tests.nowcast.stores import small_model


def minutes(count: float) -> np.timedelta64:
    return np.timedelta64(round(60 * count), "s")


def moving(*steps: float) -> MovingModel:
    made = Averaged([network("small", 0)])
    return MovingModel(made, steps, (1.0,), 60, SHIPPED, Split((), (), ()), {})


@pytest.mark.parametrize(
    ("steps", "have", "used", "words"),
    [
        ((5, 10), 5, 5, ""),
        ((5, 10), 7.5, 7.5, ""),
        ((10,), 5, 10, "one in 2 is used"),
        ((10,), 4, 12, "one in 3 is used"),
        ((5,), 15, 15, "it knows less of these"),
    ],
)
def test_networks_of_the_moving_frame_take_any_step(steps, have, used, words):
    step, said = step_for(moving(*steps), minutes(have), "a.zarr")
    assert step == minutes(used)
    assert words in said
    assert bool(words) == bool(said)


def test_those_of_the_fixed_frame_only_their_own():
    model = small_model()  # every ten minutes
    assert step_for(model, minutes(10), "a.zarr") == (minutes(10), "")
    assert step_for(model, minutes(5), "a.zarr")[0] == minutes(10)
    for have in (4, 20):
        with pytest.raises(DataError, match=f"found every {have} min; train one on such frames"):
            step_for(model, minutes(have), "a.zarr")
