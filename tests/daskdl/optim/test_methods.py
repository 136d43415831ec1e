"""Optim methods compared with PyTorch's, and properties of Adam's and Adagrad's relatives."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl import optim
from daskdl.errors import SettingsError
from daskdl.optim import SGD, Adagrad, Adam, AdamW, Ftrl, Nadam, RMSprop
from daskdl.optim.schedules import Polynomial
from tests.daskdl.optim import runs


@dataclass(frozen=True)
class Case:
    """A method, its drawn settings, and their names in PyTorch."""

    name: str
    options: dict[str, Any]
    names: dict[str, str]
    betas: bool = False
    peer: str = ""
    rate: float = 0.01
    settings: Any = field(init=False)

    def __post_init__(self) -> None:
        drawn = {"beta1": runs.betas, "beta2": runs.betas} if self.betas else {}
        object.__setattr__(self, "settings", st.fixed_dictionaries(drawn | self.options))

    def method(self, rate: float, settings: dict[str, Any]) -> optim.Method:
        """Return our method."""
        return getattr(optim, self.name)(rate, **settings)

    def torchs(self, torch: Any, rate: float, settings: dict[str, Any]) -> Any:
        """Return a function that makes PyTorch's method for some parameters."""
        options = {self.names.get(n, n): v for n, v in settings.items() if n[:4] != "beta"}
        if self.betas:
            options["betas"] = settings["beta1"], settings["beta2"]
        return lambda p: getattr(torch.optim, self.peer or self.name)(p, lr=rate, **options)


EPSILON, DECAY = {"epsilon": runs.epsilons}, {"weight_decay": runs.decays}
EPS, RHO = {"epsilon": "eps"}, {"epsilon": "eps", "smoothing": "rho"}
MOMENTUM = {"momentum": st.just(0.0) | runs.betas}
AMSGRAD = {"amsgrad": st.booleans()}
INITIAL = {"rate_decay": runs.decays, "initial": st.sampled_from([0.0, 0.5, 2.0])}
NADAM = {"momentum_decay": st.floats(0, 0.5), "decoupled": st.booleans()}
RMSPROP = {"smoothing": st.floats(0.5, 0.99), "centered": st.booleans()}
FTRL = {
    "beta": st.floats(0, 2),
    "l1": st.just(0.0) | st.floats(0.01, 2),
    "l2": runs.decays,
    "initial": st.sampled_from([0.25, 1.0]),
}
CASES = [
    Case("Adam", EPSILON | DECAY | AMSGRAD, EPS, betas=True),
    Case("AdamW", EPSILON | DECAY | AMSGRAD, EPS, betas=True),
    Case("Adamax", EPSILON | DECAY, EPS, betas=True),
    Case("Nadam", EPSILON | DECAY | NADAM, EPS | {"decoupled": "decoupled_weight_decay"},
         betas=True, peer="NAdam"),
    Case("Adagrad", EPSILON | DECAY | INITIAL,
         EPS | {"rate_decay": "lr_decay", "initial": "initial_accumulator_value"}, rate=0.1),
    Case("Adadelta", EPSILON | DECAY | {"smoothing": runs.betas}, RHO),
    Case("RMSprop", EPSILON | DECAY | MOMENTUM | RMSPROP, EPS | {"smoothing": "alpha"}),
    Case("SGD", DECAY | MOMENTUM | {"dampening": runs.betas}, {}, rate=0.05),
    Case("SGD", DECAY | {"momentum": runs.betas, "nesterov": st.booleans()}, {}, rate=0.05),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@runs.few
@given(data=st.data(), rate=runs.rates, dtype=runs.dtypes)
def test_agrees_with_pytorch(case, data, rate, dtype, torch):
    settings = data.draw(case.settings)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # NAdam keeps the product of the momenta in it
    try:
        peer = case.torchs(torch, rate, settings)
        expected = runs.torch_descends(peer, torch, np.dtype(dtype))
    finally:
        torch.set_default_dtype(default)
    weights = runs.descend(case.method(rate, settings), dtype=np.dtype(dtype))
    runs.assert_close(weights, expected)


@pytest.mark.parametrize("case", [*CASES, Case("Ftrl", FTRL | DECAY, {})], ids=lambda c: c.name)
@runs.few
@given(data=st.data(), points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(case, data, points):
    method = case.method(case.rate, data.draw(case.settings))
    runs.check_pure(method)
    runs.check_slices(method, points)


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("Adam", {"learning_rate": -1}, "0 <= learning_rate < inf, found -1"),
        ("Adam", {"beta1": 1.0}, "0 <= beta1 < 1, found 1.0"),
        ("Adam", {"beta2": -0.1}, "0 <= beta2 < 1, found -0.1"),
        ("Adam", {"epsilon": -1e-8}, "0 <= epsilon"),
        ("Adam", {"weight_decay": -1}, "0 <= weight_decay"),
        ("AdamW", {"weight_decay": -1}, "0 <= weight_decay < inf, found -1"),
        ("Adamax", {"beta2": 1.0}, "0 <= beta2 < 1, found 1.0"),
        ("Nadam", {"momentum_decay": -1}, "0 <= momentum_decay < inf, found -1"),
        *(
            ("Adagrad", {name: -1}, f"0 <= {name} < inf, found -1")
            for name in ("learning_rate", "rate_decay", "weight_decay", "initial", "epsilon")
        ),
        ("Adadelta", {"smoothing": -0.1}, "0 <= smoothing < 1, found -0.1"),
        ("RMSprop", {"smoothing": 1.0}, "0 <= smoothing < 1, found 1.0"),
        ("Ftrl", {"l1": -1}, "0 <= l1 < inf, found -1"),
        ("Ftrl", {"learning_rate": 0}, "learning_rate > 0, found 0"),
        ("SGD", {"learning_rate": -1}, "0 <= learning_rate < inf, found -1"),
        ("SGD", {"learning_rate": float("nan")}, "0 <= learning_rate < inf, found nan"),
        ("SGD", {"learning_rate": "fast"}, "0 <= learning_rate < inf, found 'fast'"),
        ("SGD", {"weight_decay": -1}, "0 <= weight_decay < inf, found -1"),
        ("SGD", {"momentum": 1.0}, "0 <= momentum < 1, found 1.0"),
        ("SGD", {"dampening": 1.0}, "0 <= dampening < 1, found 1.0"),
        ("SGD", {"nesterov": True}, "momentum > 0 and dampening = 0 with nesterov=True"),
        ("EMA", {"method": SGD(), "decay": 1}, "0 <= decay < 1, found 1"),
        *(
            ("Accumulate", {"method": SGD(), "over": over}, "over to be a whole number of at")
            for over in (0, 1.5, True)
        ),
        *(
            ("ClipNorm", {"method": SGD(), "norm": norm}, f"norm > 0, found {norm}")
            for norm in (0.0, -1, float("nan"))
        ),
        ("ClipValue", {"method": SGD(), "value": -1}, "0 <= value < inf, found -1"),
        ("LBFGS", {"history": 0}, "history to be a whole number of at"),
        ("LARS", {"trust": -1}, "0 <= trust < inf, found -1"),
        ("LAMB", {"beta1": 1.0}, "0 <= beta1 < 1, found 1.0"),
    ],
)
def test_impossible_settings_are_refused(name, settings, sentence):
    with pytest.raises(SettingsError, match=re.escape(f"{name}: expected {sentence}")):
        getattr(optim, name)(**settings)


def test_first_step_has_the_length_of_the_rate():
    method, g = Adam(0.1), np.array([1e-3, -50, 7], np.float32)
    w, _ = method.update(np.zeros(3, np.float32), g, method.init(3), 0)
    np.testing.assert_allclose(w, -0.1 * np.sign(g), rtol=1e-4)


def test_rate_stays_without_a_schedule():
    assert {Adam(0.3).rate_at(i) for i in (0, 5, 10**6)} == {0.3}


@pytest.mark.parametrize(
    ("method", "names"),
    [
        (SGD(), []),
        (SGD(momentum=0.9), ["velocity"]),
        (Adam(), ["mean", "square"]),
        (RMSprop(), ["square"]),
        (RMSprop(momentum=0.5), ["square", "velocity"]),
        (RMSprop(momentum=0.5, centered=True), ["square", "mean", "velocity"]),
    ],
    ids=repr,
)
def test_state_is_what_the_settings_need(method, names):
    state = method.init(runs.SIZE)
    assert list(state) == names
    assert {(a.dtype, a.shape) for a in state.values()} <= {(np.dtype("f4"), (runs.SIZE,))}


def test_decay_stays_out_of_the_moments():
    method, w = AdamW(0.1, weight_decay=0.5), np.ones(2, np.float32)
    new, state = method.update(w, np.zeros(2, np.float32), method.init(2), 0)
    np.testing.assert_allclose(new, 0.95)
    assert not state["mean"].any()


@pytest.mark.parametrize("beta1", [0.0, 0.5, 0.9, 0.999])
def test_the_product_of_many_momenta_is_exact(beta1):
    method = Nadam(beta1=beta1)
    momenta = [beta1 * (1 - 0.5 * 0.96 ** (t * 4e-3)) for t in range(1, 50_001)]
    for t in (1, 2, 40, 1000, 50_000):
        expected = np.prod(momenta[:t])
        assert 1 - method._product(t) == pytest.approx(1 - expected, rel=1e-14)


def test_two_steps_by_hand():
    method = Adagrad(learning_rate=0.5, epsilon=0)
    w, g = np.array([1.0], np.float32), np.array([3.0], np.float32)
    w, state = method.update(w, g, method.init(1), 0)
    assert (w[0], state["square"][0]) == (0.5, 9)
    w, state = method.update(w, 4 * g / 3, state, 1)
    assert w[0] == pytest.approx(0.5 - 0.5 * 4 / 5)


def test_a_variance_that_rounds_below_zero_counts_as_zero():
    method, w, g = RMSprop(centered=True, smoothing=0.5), *np.ones((2, 64), np.float32)
    g *= np.linspace(0.9, 1.1, 64, dtype=np.float32)
    state = {"square": g * g * np.float32(1 - 1e-6), "mean": g}
    new, _ = method.update(w, g, state, 0)
    assert np.isfinite(new).all()


def paper(alpha, beta, l1, l2, initial):
    """Return the weights after the usual run of algorithm 1 of McMahan et al., weight by weight."""
    w = runs.start().astype(float)
    z, n = np.zeros_like(w), np.full_like(w, initial)
    for t in range(runs.STEPS):
        g = runs.gradients(w, t)
        for i in range(len(w)):
            sigma = ((n[i] + g[i] ** 2) ** 0.5 - n[i] ** 0.5) / alpha
            z[i] += g[i] - sigma * w[i]
            n[i] += g[i] ** 2
            if abs(z[i]) <= l1:
                w[i] = 0
            else:
                w[i] = -(((beta + n[i] ** 0.5) / alpha + l2) ** -1) * (z[i] - np.sign(z[i]) * l1)
    return w


@runs.few
@given(rate=st.floats(0.01, 0.5), options=st.fixed_dictionaries(FTRL), dtype=runs.dtypes)
def test_is_the_papers_algorithm(rate, options, dtype):
    end = runs.descend(Ftrl(rate, **options), dtype=np.dtype(dtype))
    expected = paper(rate, **options)
    if dtype == "f8":
        np.testing.assert_allclose(end, expected, rtol=1e-9, atol=1e-12)
    else:  # a rounding may decide whether a weight is zero
        np.testing.assert_allclose(end, expected, atol=1e-3)


def test_weights_that_nothing_pulls_are_exactly_zero():
    method = Ftrl(0.5, l1=1.0)
    g = np.array([0.5, -0.5, 3.0, np.nan], np.float32)
    w, _ = method.update(np.zeros(4, np.float32), g, method.init(4), 0)
    np.testing.assert_array_equal(w[:2], 0)
    assert w[2] < 0
    assert np.isnan(w[3])


def test_a_rate_that_falls_to_zero_is_refused():
    falling, w = Ftrl(Polynomial(0.1, over=2)), np.ones(2, np.float32)
    with pytest.raises(SettingsError, match=r"a learning rate > 0 in iteration 2, found 0\.0"):
        falling.update(w, w, falling.init(2), 2)
