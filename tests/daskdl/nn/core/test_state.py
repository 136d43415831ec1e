"""The state of a network other than its weights: modes, frozen parameters, buffers, draws."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

from daskdl import nn, ops
from daskdl.errors import SettingsError
from daskdl.nn import Linear, ReLU, Sequential
from daskdl.nn.core.state import arrays, drawing, next_draw, watched
from daskdl.tensor import Tensor

X = np.ones((4, 3), np.float32)


def model():
    return nn.Sequential(nn.Linear(3, 4, seed=0), nn.Tanh(), nn.Linear(4, 2, seed=1))


def learning(network):
    """Return the names of the parameters whose gradients are not zero."""
    network.zero_grad()
    ops.sum(network(X)).backward()
    return [name for name, p in network.named_parameters() if p.grad.any()]


@pytest.mark.parametrize(
    ("names", "trained"),
    [
        (["layers.0"], ["layers.2.weight", "layers.2.bias"]),
        (["*.bias"], ["layers.0.weight", "layers.2.weight"]),
        (["layers.0.bias", "layers.2.weight"], ["layers.0.weight", "layers.2.bias"]),
        ([], []),
    ],
)
def test_parameters_are_frozen_by_name(names, trained):
    network = model().freeze(*names) if trained else model()
    if not trained:
        network.freeze()
        assert not any(p.requires_grad for p in network.parameters())
        return
    assert learning(network) == trained
    for other in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert learning(other) == trained
    assert len(learning(network.unfreeze())) == 4


def test_gradients_that_were_there_become_zero():
    network = model()
    assert len(learning(network)) == 4
    network.freeze("layers.2")
    assert not network.flat_grad[-10:].any()
    assert network.flat_grad[:-10].any()


def test_unknown_names_are_refused_and_nothing_is_changed():
    network = model()
    with pytest.raises(
        SettingsError, match=r"such as 'layers\.2', .*'layers\.0\.bias', found 'head'"
    ):
        network.freeze("layers.0", "head")
    assert len(learning(network)) == 4


def test_calls_are_watched_innermost_first_with_inputs_and_results() -> None:
    model, calls = Sequential(Linear(3, 2, seed=0), ReLU()), []
    x = np.ones((4, 3), np.float32)
    with watched(model, lambda name, module, inputs, result: calls.append((name, inputs, result))):
        result = model(x)
    assert [name for name, _, _ in calls] == ["layers.0", "layers.1", ""]
    assert calls[0][1][0] is calls[2][1][0] is x
    assert calls[1][1][0] is calls[0][2]
    assert calls[2][2] is result
    model(x)
    assert len(calls) == 3


def test_a_model_is_left_as_it_was_after_an_error() -> None:
    model = Sequential(Linear(3, 2, seed=0))
    with pytest.raises(ValueError, match="3"), watched(model, lambda *call: None):
        model(np.ones((4, 5), np.float32))
    assert not any("forward" in vars(module) for _, module in model.modules())


def test_arrays_of_tuples_and_tensors() -> None:
    a, b = np.zeros(2), Tensor(np.ones(3))
    result = list(arrays((a, [b, None], "x")))
    assert result[0] is a
    assert result[1] is b.data
    assert len(result) == 2


def test_a_seed_gives_one_sequence_without_repeats():
    with drawing(7):
        first = [next_draw() for _ in range(3)]
    with drawing(7):
        assert [next_draw() for _ in range(3)] == first
    assert len(set(first)) == 3
    assert {seed for seed, _ in first} == {7}


def test_an_inner_pass_does_not_disturb_the_outer():
    with drawing(1):
        expected = [next_draw(), next_draw()]
    with drawing(1):
        draws = [next_draw()]
        with drawing(2):
            next_draw()
        draws.append(next_draw())
    assert draws == expected


def test_threads_draw_on_their_own():
    seen = []

    def draw():
        seen.append(next_draw())

    with drawing(3):
        thread = threading.Thread(target=draw)
        thread.start()
        thread.join()
        assert next_draw() == (3, 0)
    assert seen[0][0] != 3


def test_without_a_seed_no_two_draws_are_the_same():
    assert len({next_draw() for _ in range(10)}) == 10


def test_a_seed_may_be_made_when_the_first_layer_draws():
    made = []

    def seed():
        made.append(7)
        return 7

    with drawing(seed):
        assert not made
        assert [next_draw(), next_draw()] == [(7, 0), (7, 1)]
    assert made == [7]
