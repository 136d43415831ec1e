from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from distributed import Client

from daskdl.train import Trainer
from tests.daskdl.train.runs import (
    convolutions,
    digest,
    fit,
    images,
    problem,
)

ClientOf = Callable[[int], Client]


def gang(client: Client, samples: Any = None, **options: Any) -> Trainer:
    return fit(problem() if samples is None else samples, client=client, engine="gang", **options)


@pytest.fixture(scope="session")
def undisturbed() -> str:
    return digest(fit(problem(), validation=problem(3)))


# --- the same bits


def test_any_number_of_workers_gives_the_bits_of_one_process(client_of: ClientOf) -> None:
    options = {"epochs": 2, "batch_size": 6, "validation": images(2)}
    alone = fit(images(3), convolutions(), **options)
    for workers in (1, 2, 3):
        together = gang(client_of(workers), images(3), model=convolutions(), **options)
        assert digest(alone) == digest(together)
        np.testing.assert_array_equal(alone.history["loss"], together.history["loss"])
        np.testing.assert_array_equal(alone.history["samples"], together.history["samples"])
        for a, b in zip(alone.history.epochs, together.history.epochs, strict=True):
            assert a["val_loss"] == b["val_loss"]
