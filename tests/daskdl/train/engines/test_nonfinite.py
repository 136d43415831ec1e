"""Errors name the layer, the shard and the iteration of a number that is not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.errors import TrainingError
from daskdl.nn import (
    BatchNorm,
    Dropout,
    Embedding,
    Linear,
    Module,
    MSELoss,
    ReLU,
    Sequential,
    drawing,
)
from daskdl.optim import SGD
from daskdl.tensor import op
from daskdl.train import Trainer
from daskdl.train.engines.nonfinite import explain, finite
from tests.daskdl.train.runs import problem


@op
def logarithm(x: Any) -> Any:
    """Log x; NaN below zero."""
    with np.errstate(all="ignore"):
        return np.log(x), lambda dy: (dy / x,)


@op
def root(x: Any) -> Any:
    """Square root of x, whose slope at 0 is infinite."""

    def backward(dy: Any) -> Any:
        with np.errstate(all="ignore"):
            return (dy * 0.5 / np.sqrt(x),)

    return np.sqrt(x), backward


class Log(Module):
    def forward(self, x: Any) -> Any:
        return logarithm(x)


class Root(Module):
    def forward(self, x: Any) -> Any:
        return root(x)


class Spoils(Module):
    """Takes a logarithm of -1 if one of several samples has this number."""

    def __init__(self, number: float) -> None:
        self.number = number
        self.inner = Linear(5, 2, seed=1)

    def forward(self, x: Any) -> Any:
        if len(x) > 1 and self.number in x[:, 4]:
            return logarithm(self.inner(x) * 0 - 1)
        return self.inner(x)


def computed(model: Module, x: Any, y: Any) -> float:
    """Compute the gradient of a model, and return the loss."""
    model.train().zero_grad()
    with drawing(1), np.errstate(all="ignore"):
        loss = MSELoss()(model(x), y)
        loss.backward()
    return float(loss)


def explained(model: Module, x: Any, y: Any) -> str:
    loss = computed(model, x, y)
    return explain(model, {"x": x, "y": y}, 1, loss)


X, Y = np.ones((4, 3), np.float32), np.zeros((4, 2), np.float32)


def test_the_first_module_is_named_and_not_those_after_it():
    model = Sequential(Linear(3, 2, seed=0), Sequential(ReLU(), Log()), Linear(2, 2, seed=1))
    model.flat[:8] = [1, 1, 1, -1, -1, -1, 0, 0]  # outputs 3 and -3
    text = explained(model, X, Y)
    assert text.startswith("expected a finite loss, found ")
    assert "output is not finite is layers.1.layers.1 (Log): 4 of 8 numbers" in text
    assert "such as -inf; its input was finite; lower the learning rate" in text


def test_dropout_draws_the_same_again():
    """A one that is dropped becomes 0, whose logarithm is not finite: that depends on the draw."""
    model, x = Sequential(Dropout(0.5), Log()).train(), np.ones((1, 1), np.float32)
    infinite = []
    for seed in range(12):
        with drawing(seed):
            infinite.append(bool(np.isinf(model(x).data).all()))
        assert ("layers.1 (Log)" in explain(model, {"x": x}, seed, np.nan)) == infinite[-1]
    assert len(set(infinite)) == 2


def test_running_statistics_are_left_alone():
    model = Sequential(BatchNorm(3), Linear(3, 2, seed=0), Log()).train()
    before = model.flat_buffers.copy()
    explain(model, {"x": X + np.arange(4, dtype=np.float32)[:, None]}, 1, np.nan)
    np.testing.assert_array_equal(model.flat_buffers, before)


def test_missing_values_in_the_samples_are_named():
    x = X.copy()
    x[1, 2] = np.nan
    text = explained(Sequential(Linear(3, 2, seed=0), ReLU()), x, Y)
    assert "layers.0 (Linear): 2 of 8 numbers that are not finite, such as nan; its input" in text
    assert "its input already had 1 of 12 numbers that are not finite, such as nan" in text
    text = explained(Sequential(Linear(3, 2, seed=0), ReLU()), X, Y * np.nan)
    assert "output is finite, the loss of it is not; y has 8 of 8 numbers" in text


def test_weights_that_were_not_finite_before_are_named():
    model = Sequential(Linear(3, 2, seed=0), Linear(2, 2, seed=1))
    model.layers[1].bias.data[:] = np.inf
    assert "the weights were not finite before it, first layers.1.bias" in explained(model, X, Y)


def test_a_gradient_that_alone_is_not_finite_is_named():
    model = Sequential(Linear(3, 2, seed=0), Linear(2, 2, seed=1), Root())
    model.flat[:] = 0  # the root of 0 is finite, its slope is not
    text = explained(model, X, Y + 1)
    assert text.startswith("expected a finite gradient, found ")
    assert "backwards, the first gradient that is not finite is that of layers.1." in text


def test_huge_numbers_are_finite():
    huge = np.full(8, 3e38, np.float32)
    assert finite(huge)
    assert finite(np.concatenate([huge, -huge]))
    for wrong in (np.nan, np.inf, -np.inf):
        huge[3] = wrong
        assert not finite(huge)


# --- in a fit


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_gradient_that_is_not_finite_ends_a_fit():
    model = Sequential(Linear(5, 2, seed=0), Root())
    model.flat[:] = 0
    samples = problem(2).map(lambda batch: {**batch, "y": 0 * batch["y"] + 1})
    trainer = Trainer(model, MSELoss(), SGD(0.1), seed=5)
    with pytest.raises(TrainingError, match=r"^iteration 0 .*, shard 0.*: expected a finite grad"):
        trainer.fit(samples, epochs=1, batch_size=8, progress=False)
    assert not model.flat.any()


def spoilt(samples: SampleSet, number: float, **options: Any) -> TrainingError:
    trainer = Trainer(Sequential(Spoils(number), ReLU()), MSELoss(), SGD(1e-6), seed=5)
    with pytest.raises(TrainingError) as raised:
        trainer.fit(samples, epochs=1, batch_size=8, progress=False, **options)
    assert np.isfinite(trainer.model.flat).all()
    return raised.value


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["graph", "gang"])
def test_engines_name_layer_shard_iteration_and_worker(engine, client_of):
    alone = str(spoilt(problem(3), 40))
    where, _, reason = alone.partition(": ")
    assert where.endswith("(epoch 0), shard 2")
    assert "output is not finite is layers.0 (Spoils): " in reason
    together = str(spoilt(problem(3), 40, client=client_of(2), engine=engine))
    assert together.startswith(where)
    assert together.endswith(reason)
    assert "worker tcp://" in together


def test_rows_that_are_not_finite_are_named():
    model = Embedding(9, 2, seed=0, sparse=True)
    y = model(np.array([3, 4]))
    y.backward(np.array([[1, np.nan], [1, 1]], np.float32))
    text = explain(model, {"x": np.array([3, 4])}, 0, 1.0)
    assert "the first gradient that is not finite is that of weight: 1 of 4 numbers" in text
