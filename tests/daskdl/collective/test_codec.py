from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st

from daskdl.collective.codec import add_rounded, decode, encode, encoded_size, round_in_place
from daskdl.errors import SettingsError
from daskdl.nn import BatchNorm, Linear, Module, MSELoss, ReLU, Sequential
from daskdl.optim import Adam, ClipNorm
from daskdl.train import Trainer
from tests.daskdl.train.runs import Do, digest, fit, problem

Vector = Any


def nearest(x: Vector) -> Vector:
    """Return the nearest bfloat16 by arithmetic: 8 bits of mantissa, ties to even."""
    _, exponent = np.frexp(x.astype(np.float64))
    exponent = np.maximum(exponent, -125)  # below, numbers are further apart
    scale = np.ldexp(1.0, 8 - exponent)
    with np.errstate(over="ignore"):
        return (np.rint(x.astype(np.float64) * scale) / scale).astype(np.float32)


def numbers(n: int = 4096) -> Vector:
    rng = np.random.default_rng(n)
    x = rng.normal(size=n) * 10.0 ** rng.integers(-44, 38, n)
    x = x.astype(np.float32)
    x[:9] = [0, -0.0, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 3.4e38, np.inf, -np.inf, 1e-45]
    return x


def test_the_first_numbers_are_rounded_and_the_others_kept() -> None:
    x = numbers()
    for rounded in (0, 1, 4000, x.size, x.size + 7, -3):
        words, found = encode(x, rounded), np.zeros_like(x)
        assert words.size == encoded_size(x.size, rounded)
        decode(words, rounded, found)
        k = min(max(rounded, 0), x.size)
        np.testing.assert_array_equal(found[:k], nearest(x[:k]))
        np.testing.assert_array_equal(found[k:], x[k:])
        round_in_place(x_copy := x.copy(), rounded)
        np.testing.assert_array_equal(x_copy, found)


@given(st.floats(width=32, allow_nan=False))
def test_what_is_rounded_stays(number: float) -> None:
    once = np.array([number], np.float32)
    round_in_place(once, 1)
    twice = once.copy()
    round_in_place(twice, 1)
    assert once.tobytes() == twice.tobytes()


def test_nan_stays_nan() -> None:
    bits = np.array([0x7F800001, 0xFFFFFFFF, 0x7FC00000], np.uint32)
    x = bits.view(np.float32)
    found = np.zeros(3, np.float32)
    decode(encode(x, 3), 3, found)
    assert np.isnan(found).all()
    assert np.isnan(add_rounded(x.copy(), np.ones(3, np.float32), 3)).all()


def test_operands_are_rounded_and_the_sum_is_not() -> None:
    a, b = numbers(), numbers()[::-1].copy()
    with np.errstate(over="ignore", invalid="ignore"):
        want = nearest(a) + nearest(b)
        want[4000:] = a[4000:] + b[4000:]
        found = add_rounded(a.copy(), b, 4000)
    np.testing.assert_array_equal(found, want)


# --- training


def normalised() -> Module:
    """Return a network with running statistics, which are not rounded."""
    return Sequential(Linear(5, 8, seed=1), BatchNorm(8), ReLU(), Linear(8, 2, seed=2))


def state(trainer: Trainer) -> bytes:
    return bytes(trainer.model.vector.tobytes())


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


def test_a_step_that_needs_the_whole_gradient_gives_the_same_bits(client: Client) -> None:
    def clipped(**options: Any) -> bytes:
        trainer = Trainer(normalised(), MSELoss(), ClipNorm(Adam(0.1), 0.5), seed=5)
        trainer.fit(problem(), epochs=2, batch_size=8, progress=False, wire="bfloat16", **options)
        return state(trainer)

    assert clipped(client=client, engine="gang") == clipped()


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
