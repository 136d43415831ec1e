"""Methods that step each number by itself, and steps in place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from daskdl import optim
from daskdl.kernels.optim import updates
from daskdl.optim import SGD, Adagrad, Adam, Elementwise, Layout
from daskdl.rows import Rows
from tests.daskdl.optim import runs
from tests.daskdl.optim.runs import LAYOUT, SIZE, STEPS, gradients, start

each = pytest.mark.parametrize("method", runs.ELEMENTWISE, ids=lambda m: type(m).__name__)


@dataclass(frozen=True)
class Halved(Elementwise):
    """Descent at half the rate."""

    learning_rate: float = 0.1
    weight_decay: float = 0.0

    def kernel(self):
        return updates.sgd

    def starts(self):
        return {}

    def factors(self, iteration, rate, decay):
        return decay, rate / 2


def test_a_method_of_ones_own_is_a_kernel_and_its_factors():
    np.testing.assert_array_equal(runs.descend(Halved(0.2)), runs.descend(SGD(0.1)))
    assert Halved().by_element


@each
def test_float32_follows_float64(method):
    """The usual settings do not amplify rounding errors."""
    single, double = (runs.descend(method, dtype=np.dtype(t)) for t in ("f4", "f8"))
    np.testing.assert_allclose(single, double, rtol=3e-6, atol=3e-6)


@pytest.mark.slow
@each
def test_long_slices_have_the_bits_of_the_whole(method):
    runs.check_slices(method, [3, 50, 77], large=True)


@each
def test_a_vector_without_numbers_steps(method):
    nothing = np.zeros(0, np.float32)
    new, state = method.update(nothing, nothing, method.init(0), 0)
    assert new.shape == (0,)
    assert all(a.shape == (0,) for a in state.values())


@each
def test_a_million_iterations_later_it_still_steps(method):
    w = runs.start()
    new, _ = method.update(w, runs.gradients(w, 0), method.init(runs.SIZE), 10**6)
    assert np.isfinite(new).all()


@pytest.mark.parametrize(
    ("method", "name", "options"),
    [
        (SGD(0.1), "SGD", {}),
        (Adagrad(0.1), "Adagrad", {}),
        (Adam(0.1, beta1=0.8), "SparseAdam", {"betas": (0.8, 0.999)}),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # PyTorch's own
def test_rows_step_as_pytorchs_sparse_gradients(method, name, options, torch):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((20, 3), np.float32)
    state = {slot: v.reshape(20, 3) for slot, v in method.init_rows(60).items()}
    parameter = torch.nn.Parameter(torch.from_numpy(table.copy()))
    optimizer = getattr(torch.optim, name)([parameter], lr=0.1, **options)
    for i in range(5):
        ids, d = rng.integers(0, 20, 9), rng.standard_normal((9, 3), np.float32)
        parameter.grad = torch.sparse_coo_tensor(
            torch.from_numpy(ids)[None], torch.from_numpy(d), (20, 3)
        )
        optimizer.step()
        method.update_rows("table", table, Rows.of(ids, d, 20), state, i)
    np.testing.assert_allclose(table, parameter.detach().numpy(), rtol=2e-5, atol=2e-6)


@each
def test_rows_have_the_bits_of_the_whole_step(method):
    rng = np.random.default_rng(1)
    table = rng.standard_normal((20, 3), np.float32)
    state = {slot: v.reshape(20, 3) for slot, v in method.init_rows(60).items()}
    whole, whole_state = table.ravel().copy(), method.init(60)
    for i in range(3):
        rows = Rows.all_of(rng.standard_normal((20, 3), np.float32))
        method.update_rows("table", table, rows, state, i, 0.5)
        whole, whole_state = method.update(whole, rows.values.ravel(), whole_state, i, 0.5)
    np.testing.assert_array_equal(table.ravel(), whole)
    for slot, vector in state.items():
        np.testing.assert_array_equal(vector.ravel(), whole_state[slot])


IN_PLACE = [
    *runs.EVERY[:-2],
    optim.ClipNorm(Adam(0.1), 1.0),
    optim.ClipValue(SGD(0.1), 0.5),
    optim.EMA(SGD(0.1)),
    optim.Accumulate(Adam(0.1), over=3),
    optim.Groups(optim.AdamW(0.1), (optim.Group("*.bias", rate=0.5, weight_decay=0.0),)),
]


@pytest.mark.slow
@pytest.mark.parametrize("layout", [LAYOUT, Layout(LAYOUT.names, LAYOUT.shapes, ("first.bias",))])
@pytest.mark.parametrize("method", [*IN_PLACE, *runs.EVERY[-2:]], ids=repr)
def test_a_step_in_place_equals_the_pure_step(method, layout):
    if isinstance(method, optim.LBFGS) and layout.frozen:
        pytest.skip("has no groups")
    method = method.on(layout)
    pure, over = start(), start()
    states = method.init(SIZE), method.init(SIZE)
    for i in range(STEPS):
        pure, first = method.update(pure, gradients(pure, i), states[0], i)
        over, second = method.update(over, gradients(over, i), states[1], i, overwrite=True)
        states = first, second
        np.testing.assert_array_equal(over, pure)
        assert first.keys() == second.keys()
        for name in first:
            np.testing.assert_array_equal(second[name], first[name], name)


@pytest.mark.parametrize("method", IN_PLACE, ids=repr)
def test_a_step_in_place_keeps_the_memory_of_the_weights(method):
    method, weights = method.on(LAYOUT), start()
    state, before = method.init(SIZE), weights
    for i in range(3):
        weights, state = method.update(weights, gradients(weights, i), state, i, overwrite=True)
        assert np.shares_memory(weights, before)
    assert (weights != start()).any()
