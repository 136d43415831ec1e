"""Every optim method beside PyTorch's, by a table: its steps, its slices, and what it refuses."""

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
from tests.daskdl.optim import runs


@dataclass(frozen=True)
class Case:
    """A method, the settings that are drawn for it, and PyTorch's names of them."""

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
        given = {self.names.get(n, n): v for n, v in settings.items() if n[:4] != "beta"}
        if self.betas:
            given["betas"] = settings["beta1"], settings["beta2"]
        return lambda p: getattr(torch.optim, self.peer or self.name)(p, lr=rate, **given)


EPSILON, DECAY = {"epsilon": runs.epsilons}, {"weight_decay": runs.decays}
EPS, RHO = {"epsilon": "eps"}, {"epsilon": "eps", "smoothing": "rho"}
MOMENTUM = {"momentum": st.just(0.0) | runs.betas}
AMSGRAD = {"amsgrad": st.booleans()}
INITIAL = {"rate_decay": runs.decays, "initial": st.sampled_from([0.0, 0.5, 2.0])}
NADAM = {"momentum_decay": st.floats(0, 0.5), "decoupled": st.booleans()}
RMSPROP = {"smoothing": st.floats(0.5, 0.99), "centered": st.booleans()}
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
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@each
@runs.few
@given(data=st.data(), rate=runs.rates, dtype=runs.dtypes)
def test_agrees_with_pytorch(case, data, rate, dtype, torch):
    settings = data.draw(case.settings)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # in which NAdam keeps the product of the momenta
    try:
        peer = case.torchs(torch, rate, settings)
        expected = runs.torch_descends(peer, torch, np.dtype(dtype))
    finally:
        torch.set_default_dtype(default)
    found = runs.descend(case.method(rate, settings), dtype=np.dtype(dtype))
    runs.assert_close(found, expected)


@each
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
        ("LBFGS", {"history": 0}, "history to be a whole number of at"),
        ("LARS", {"trust": -1}, "0 <= trust < inf, found -1"),
        ("LAMB", {"beta1": 1.0}, "0 <= beta1 < 1, found 1.0"),
    ],
)
def test_impossible_settings_are_refused(name, settings, sentence):
    with pytest.raises(SettingsError, match=re.escape(f"{name}: expected {sentence}")):
        getattr(optim, name)(**settings)
