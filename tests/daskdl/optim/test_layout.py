"""Layout: names and places of a model's parameters."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import CheckpointError
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
    load_state,
    save_state,
)
from daskdl.optim.schedules import Plateau, Warmup
from tests.daskdl.optim import runs
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


METHODS_STATEFILE = [
    SGD(momentum=0.9),
    Adam(amsgrad=True),
    Adagrad(),
    RMSprop(centered=True),
    Adadelta(),
    Adamax(),
    Nadam(),
    Ftrl(),
    LAMB().on(runs.LAYOUT),
    LBFGS(history=2),
    EMA(ClipNorm(Accumulate(Groups(AdamW(Warmup(Plateau(0.1), 2))).on(runs.LAYOUT), 2), 1.0)),
]


@pytest.mark.parametrize("method", METHODS_STATEFILE, ids=lambda m: type(m).__name__)
def test_a_run_goes_on_with_the_same_bits(method, tmp_path):
    w, state = runs.start(), method.init(runs.SIZE)
    for i in range(3):
        w, state = method.update(w, runs.gradients(w, i), state, i)
    save_state(tmp_path / "state.safetensors", state)
    back = load_state(tmp_path / "state.safetensors", method.init(runs.SIZE))
    assert [p.name for p in tmp_path.iterdir()] == ["state.safetensors"]
    assert {n: (a.dtype, a.shape) for n, a in back.items()} == {
        n: (a.dtype, a.shape) for n, a in state.items()
    }
    g = runs.gradients(w, 3)
    one, other = (method.update(w, g, s, 3) for s in (state, back))
    np.testing.assert_array_equal(one[0], other[0])
    for name, array in one[1].items():
        np.testing.assert_array_equal(array, other[1][name])


def test_others_read_it_by_plain_names(tmp_path):
    from safetensors.numpy import load_file

    save_state(tmp_path / "s", Adam().init(3))
    assert sorted(load_file(tmp_path / "s")) == ["mean", "square"]


def test_the_state_of_another_method_is_refused(tmp_path):
    save_state(tmp_path / "s", Adam().init(3))
    with pytest.raises(
        CheckpointError, match=r"expected square of shape \(3,\)|expected mean of none"
    ):
        load_state(tmp_path / "s", SGD(momentum=0.9).init(3))
    with pytest.raises(CheckpointError, match=r"expected mean of shape \(4,\), found shape \(3,\)"):
        load_state(tmp_path / "s", Adam().init(4))
    wide = {name: a.astype(np.float64) for name, a in Adam().init(3).items()}
    with pytest.raises(CheckpointError, match="expected mean of dtype float64, found dtype float3"):
        load_state(tmp_path / "s", wide)


def test_a_file_that_is_missing_or_cut_short_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="state: expected a whole safetensors file"):
        load_state(tmp_path / "state", {})
    save_state(tmp_path / "s", Adam().init(300))
    (tmp_path / "s").write_bytes((tmp_path / "s").read_bytes()[:-10])
    with pytest.raises(CheckpointError, match="s: expected a whole safetensors file"):
        load_state(tmp_path / "s", Adam().init(300))


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="state cannot be written"):
        save_state(tmp_path / "nowhere" / "s", Adam().init(3))
