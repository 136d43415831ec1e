"""Layouts of parameters, states that go on, and methods at the rates of schedules."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given

from daskdl.errors import CheckpointError, SettingsError
from daskdl.nn import Embedding, Linear, Sequential
from daskdl.optim import (
    EMA,
    LAMB,
    LBFGS,
    SGD,
    Accumulate,
    Adam,
    AdamW,
    ClipNorm,
    ClipValue,
    Group,
    Groups,
    Layout,
    load_state,
    save_state,
)
from daskdl.optim.schedules import (
    Cosine,
    Exponential,
    MultiStep,
    OneCycle,
    Plateau,
    Polynomial,
    Step,
    Warmup,
)
from tests.daskdl.optim import runs
from tests.daskdl.optim.runs import LAYOUT


def test_a_layout_follows_the_models_vector():
    model = Sequential(Linear(3, 4, seed=0), Linear(4, 2, seed=1))
    layout = Layout.of(model)
    named = dict(model.named_parameters())
    assert layout.size == model.flat.size
    assert list(layout.names) == list(named)
    for here, place in layout.ranges:
        parameter = named[layout.names[place]]
        assert layout.shapes[place] == parameter.shape
        np.testing.assert_array_equal(model.flat[here], parameter.data.ravel())


def test_patterns_match_as_file_names_and_with_their_case():
    assert LAYOUT.find("*.weight") == [0, 2]
    assert LAYOUT.find("first.*") == [0, 1]
    assert LAYOUT.find("First.*") == []
    assert LAYOUT.find("last.weight") == [2]


def test_a_model_without_parameters_has_an_empty_layout():
    layout = Layout((), ())
    assert layout.size == layout.ranges.size == 0


METHODS = [
    *runs.EVERY,
    EMA(ClipNorm(Accumulate(Groups(AdamW(Warmup(Plateau(0.1), 2))), 2), 1.0), 0.9),
    Accumulate(Groups(SGD(0.1, 0.9, weight_decay=0.1), (Group("l*.weight", rate=2.0),)), 2),
]
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)


@each_method
def test_frozen_parameters_stay_and_the_others_step(method):
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


@each_method
def test_a_run_goes_on_with_the_same_bits(method, tmp_path):
    method = method.on(runs.LAYOUT)
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


def test_a_saved_state_has_plain_names(tmp_path):
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


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="state cannot be written"):
        save_state(tmp_path / "nowhere" / "s", Adam().init(3))


SCHEDULES = [
    Step(0.1, 3),
    MultiStep(0.1, (2, 4)),
    Exponential(0.1, 0.9),
    Polynomial(0.1, 20),
    Cosine(0.1, 3, restarts=True),
    OneCycle(0.1, 10),
    Plateau(0.1),
    Warmup(Cosine(0.1, 5), 3),
]


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("make", [type(method) for method in runs.EVERY])
def test_a_step_takes_the_rate_of_the_schedule(make, schedule):
    method = make(schedule).on(runs.LAYOUT)
    assert pickle.loads(pickle.dumps(method)) == method
    assert repr(schedule) in repr(method)
    w, state = runs.start(), method.init(runs.SIZE)
    expected, fixed_state = w, make(1.0).on(runs.LAYOUT).init(runs.SIZE)
    for i in range(6):
        w, state = method.update(w, runs.gradients(w, i), state, i)
        fixed = make(schedule(i)).on(runs.LAYOUT)
        assert method.rate_at(i, state) == fixed.rate_at(i)
        expected, fixed_state = fixed.update(expected, runs.gradients(expected, i), fixed_state, i)
        np.testing.assert_array_equal(w, expected)


def test_a_plateaus_state_is_part_of_the_methods():
    method, w = SGD(Plateau(1.0, factor=0.5, patience=0)), runs.start()
    state = method.init(runs.SIZE)
    assert set(state) == {f"learning_rate.{name}" for name in ("rate", "best", "bad", "rest")}
    seen = method.observe(method.observe(state, 3.0), 3.0)
    assert method.rate_at(0, state) == 1.0
    assert method.rate_at(0, seen) == 0.5
    g = runs.gradients(w, 0)
    new, after = method.update(w, g, seen, 7)
    np.testing.assert_array_equal(new, SGD(0.5).update(w, g, {}, 7)[0])
    assert after == seen


def test_a_method_at_a_fixed_rate_ignores_metrics():
    state = Adam().init(3)
    assert Adam().observe(state, 1.0) is state


def test_a_function_is_no_schedule():
    with pytest.raises(SettingsError, match="Adam: expected learning_rate to be a number or a Sch"):
        Adam(lambda i: 0.1)


INNER = Adam(Plateau(0.1, patience=0))
ALL = [ClipValue(INNER, 0.5), ClipNorm(INNER, 0.5), EMA(INNER, 0.9), Accumulate(INNER, 2)]
each = pytest.mark.parametrize("method", ALL, ids=lambda m: type(m).__name__)


@each
def test_a_wrapped_method_hears_of_validations(method):
    state = method.init(runs.SIZE)
    for _ in range(2):
        state = method.observe(state, 1.0)
    assert method.rate_at(5, state) == pytest.approx(0.01)
    assert method.rate_at(5) == 0.1
    _, after = method.update(runs.start(), runs.start(), state, 1)
    assert after.keys() == state.keys()
    assert method.rate_at(6, after) == pytest.approx(0.01)


def test_wrappers_go_around_each_other():
    groups = Groups(AdamW(Step(0.1, 5)))
    method = EMA(ClipNorm(Accumulate(groups, over=2), norm=1.0), decay=0.9).on(runs.LAYOUT)
    assert set(method.init(runs.SIZE)) == {"mean", "square", "ema.weights", "accumulate.gradient"}
    assert np.isfinite(runs.descend(method)).all()
    assert method.part([slice(0, 5)]) is None
    assert method.rate_at(9) == 0.1
    assert method.rate_at(10) == pytest.approx(0.01)


@pytest.mark.parametrize(
    "method",
    [
        Accumulate(Adam(0.1), 2),
        EMA(SGD(0.1, 0.9), 0.5),
        ClipValue(SGD(0.1, 0.9), 0.5),
        EMA(ClipValue(Accumulate(Groups(AdamW()), 2), 0.3), 0.9),
    ],
    ids=lambda m: type(m).__name__,
)
@runs.few
@given(points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(method, points):
    runs.check_pure(method.on(runs.LAYOUT))
    runs.check_slices(method.on(runs.long_layout(301)), points)


def test_the_layout_reaches_the_wrapped_method():
    method = EMA(LAMB(), 0.9).on(runs.LAYOUT)
    assert method.method.layout == runs.LAYOUT
    assert method.part([slice(0, 3)]) is None


def test_a_wrapper_around_itself_is_refused():
    with pytest.raises(SettingsError, match=r"EMA: expected to be once around a method, found it"):
        EMA(EMA(SGD())).init(3)


def test_a_wrapper_of_no_method_is_refused():
    with pytest.raises(SettingsError, match="EMA: expected a Method as the first argument, found"):
        EMA("SGD")


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (EMA(Adam()), "EMA: expected parameters that are trained as a whole, found tables"),
        (ClipNorm(LAMB(), 1), r"ClipNorm: expected a method that needs no sum .*, found LAMB"),
        (ClipValue(ClipNorm(Adam(), 1), 1), "ClipValue: expected a method that needs no sum"),
        (LBFGS(), "LBFGS: expected parameters that are trained as a whole"),
    ],
    ids=lambda m: type(m).__name__,
)
def test_methods_without_a_step_by_rows_say_so(method, sentence):
    with pytest.raises(SettingsError, match=sentence):
        method.init_rows(6)
