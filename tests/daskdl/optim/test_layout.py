"""Layout: names and places of a model's parameters."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.nn import Embedding, Linear, Sequential
from daskdl.optim import (
    EMA,
    LAMB,
    LARS,
    LBFGS,
    SGD,
    Accumulate,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    ClipNorm,
    Ftrl,
    Group,
    Groups,
    Layout,
    Nadam,
    RMSprop,
)
from tests.daskdl.optim.runs import LAYOUT


def test_it_is_that_of_the_models_vector():
    model = Sequential(Linear(3, 4, seed=0), Linear(4, 2, seed=1))
    layout = Layout.of(model)
    named = dict(model.named_parameters())
    assert layout.size == model.flat.size
    assert list(layout.names) == list(named)
    for here, place in layout.ranges:
        parameter = named[layout.names[place]]
        assert layout.shapes[place] == parameter.shape
        np.testing.assert_array_equal(model.flat[here], parameter.data.ravel())


def test_patterns_are_those_of_file_names_in_the_case_given():
    assert LAYOUT.find("*.weight") == [0, 2]
    assert LAYOUT.find("first.*") == [0, 1]
    assert LAYOUT.find("First.*") == []
    assert LAYOUT.find("last.weight") == [2]


def test_a_model_without_parameters_has_an_empty_one():
    layout = Layout((), ())
    assert layout.size == layout.ranges.size == 0


METHODS = [
    SGD(0.1, 0.9, weight_decay=0.1),
    Adam(0.1, weight_decay=0.1),
    AdamW(0.1, weight_decay=0.1),
    Adagrad(0.1, weight_decay=0.1),
    Adadelta(1.0, weight_decay=0.1),
    Adamax(0.1, weight_decay=0.1),
    Ftrl(0.1),
    Nadam(0.1, weight_decay=0.1),
    RMSprop(0.1, weight_decay=0.1, centered=True),
    LAMB(0.1),
    LARS(0.1, weight_decay=0.1),
    LBFGS(0.1),
    EMA(ClipNorm(Groups(AdamW(0.1)), 1.0), 0.9),
    Accumulate(Groups(SGD(0.1, 0.9, weight_decay=0.1), (Group("layers.1.*", rate=2.0),)), 2),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_what_is_frozen_stays_and_the_rest_steps_as_without(method):
    model = Sequential(Linear(3, 4, seed=0), Linear(4, 2, seed=1)).freeze("layers.0", "*.bias")
    layout = Layout.of(model)
    assert layout.frozen == ("layers.0.weight", "layers.0.bias", "layers.1.bias")
    bound = method.on(layout)
    weights, state = model.flat.copy(), bound.init(layout.size)
    moved = slice(16, 24)  # weights of the last layer
    before = weights.copy()
    for i in range(4):
        gradient = np.zeros_like(weights)
        gradient[moved] = weights[moved] - 1
        weights, state = bound.update(weights, gradient, state, i)
    np.testing.assert_array_equal(np.delete(weights, np.r_[moved]), np.delete(before, np.r_[moved]))
    assert (weights[moved] != before[moved]).all()
    for name, shadow in state.items():
        if name.startswith("ema"):
            np.testing.assert_array_equal(shadow[:16], before[:16])


def test_tables_come_last_and_lie_outside_of_the_vector():
    model = Sequential(Embedding(5, 2, seed=0, sparse=True), Linear(2, 3, seed=0))
    layout = Layout.of(model.freeze("layers.0"))
    assert layout.names == ("layers.1.weight", "layers.1.bias", "layers.0.weight")
    assert (layout.tables, layout.frozen) == (1, ("layers.0.weight",))
    assert layout.size == layout.ranges.size == model.flat.size == 9
    assert layout.find("layers.0.*") == [2]
