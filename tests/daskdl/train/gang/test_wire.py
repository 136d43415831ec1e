from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from distributed import Client

from daskdl.collective.codec import round_in_place
from daskdl.errors import SettingsError
from daskdl.nn import BatchNorm, Linear, Module, MSELoss, ReLU, Sequential
from daskdl.optim import Adam, ClipNorm
from daskdl.train import Trainer
from tests.daskdl.train.runs import Do, digest, fit, problem


def normalised() -> Module:
    """Return a network with running statistics, which are not rounded."""
    return Sequential(Linear(5, 8, seed=1), BatchNorm(8), ReLU(), Linear(8, 2, seed=2))


def state(trainer: Trainer) -> bytes:
    return bytes(trainer.model.vector.tobytes())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["gang", "graph"])
def test_the_bits_are_the_same_on_any_number_of_workers(
    client_of: Callable[[int], Client], engine: str
) -> None:
    # Small batches leave shards without samples: their sums are handed on.
    options: dict[str, Any] = {"wire": "bfloat16", "batch_size": 3, "epochs": 1}
    alone = fit(problem(5), normalised(), **options)
    assert state(alone) != state(fit(problem(5), normalised(), batch_size=3, epochs=1))
    for workers in (1, 2, 3) if engine == "gang" else (2,):
        client = client_of(workers)
        together = fit(problem(5), normalised(), client=client, engine=engine, **options)
        assert state(together) == state(alone)
        np.testing.assert_array_equal(together.history["loss"], alone.history["loss"])


@pytest.mark.kills
@pytest.mark.usefixtures("short_groups")
def test_weights_stay_float32_from_group_to_group_and_worker_to_worker(client: Client) -> None:
    options: dict[str, Any] = {"wire": "bfloat16", "epochs": 2}
    alone = fit(problem(), **options)
    restart = Do(5, lambda: client.restart_workers([next(iter(client.nthreads()))]))
    assert digest(fit(problem(), client=client, engine="gang", callbacks=[restart], **options)) == (
        digest(alone)
    )
    once = alone.model.flat.copy()
    round_in_place(once, once.size)
    assert (once != alone.model.flat).mean() > 0.9


@pytest.mark.slow
def test_a_step_that_needs_the_whole_gradient_gives_the_same_bits(client: Client) -> None:
    def clipped(**options: Any) -> bytes:
        trainer = Trainer(normalised(), MSELoss(), ClipNorm(Adam(0.1), 0.5), seed=5)
        trainer.fit(problem(), epochs=2, batch_size=8, progress=False, wire="bfloat16", **options)
        return state(trainer)

    assert clipped(client=client, engine="gang") == clipped()


@pytest.mark.slow
def test_training_still_converges() -> None:
    losses = [
        fit(problem(), epochs=30, wire=wire).history["loss"][-7:].mean()
        for wire in ("float32", "bfloat16")
    ]
    first = fit(problem(), iterations=1).history["loss"][0]
    assert losses[1] < first / 2
    assert losses[1] < 1.1 * losses[0]


def test_another_format_is_refused() -> None:
    with pytest.raises(SettingsError, match="wire: expected one of float32, bfloat16, found 'f8'"):
        fit(problem(), wire="f8")
