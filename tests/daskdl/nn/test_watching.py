"""A watcher is told each layer's output, and the model is left as it was."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.nn import Linear, ReLU, Sequential
from daskdl.nn.watching import arrays, watched
from daskdl.tensor import Tensor


def test_modules_are_told_innermost_first_with_what_they_got_and_gave() -> None:
    model, told = Sequential(Linear(3, 2, seed=0), ReLU()), []
    x = np.ones((4, 3), np.float32)
    with watched(model, lambda name, module, given, result: told.append((name, given, result))):
        result = model(x)
    assert [name for name, _, _ in told] == ["layers.0", "layers.1", ""]
    assert told[0][1][0] is told[2][1][0] is x
    assert told[1][1][0] is told[0][2]
    assert told[2][2] is result
    model(x)
    assert len(told) == 3


def test_a_model_is_left_as_it_was_after_an_error() -> None:
    model = Sequential(Linear(3, 2, seed=0))
    with pytest.raises(ValueError, match="3"), watched(model, lambda *told: None):
        model(np.ones((4, 5), np.float32))
    assert not any("forward" in vars(module) for _, module in model.modules())


def test_arrays_of_tuples_and_tensors() -> None:
    a, b = np.zeros(2), Tensor(np.ones(3))
    found = list(arrays((a, [b, None], "x")))
    assert found[0] is a
    assert found[1] is b.data
    assert len(found) == 2
