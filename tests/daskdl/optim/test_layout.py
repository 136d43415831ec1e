"""Layout: names and places of a model's parameters."""

from __future__ import annotations

import numpy as np

from daskdl.nn import Linear, Sequential
from daskdl.optim import Layout
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
