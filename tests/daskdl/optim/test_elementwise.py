"""A method of one's own by a kernel, and what all such methods do with odd input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from daskdl.kernels import descent
from daskdl.optim import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Elementwise,
    Ftrl,
    Nadam,
    RMSprop,
)
from tests.daskdl.optim import runs

METHODS = [
    SGD(0.1, 0.9, dampening=0.1),
    Adam(amsgrad=True),
    AdamW(),
    Adagrad(),
    RMSprop(centered=True, momentum=0.9),
    Adadelta(),
    Adamax(),
    Nadam(),
    Ftrl(),
]
each = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)


@dataclass(frozen=True)
class Halved(Elementwise):
    """Descent at half the rate."""

    learning_rate: float = 0.1
    weight_decay: float = 0.0

    def kernel(self):
        return descent.sgd

    def starts(self):
        return {}

    def factors(self, iteration, rate, decay):
        return decay, rate / 2


def test_a_method_of_ones_own_is_a_kernel_and_its_factors():
    np.testing.assert_array_equal(runs.descend(Halved(0.2)), runs.descend(SGD(0.1)))
    assert Halved().by_element


@each
def test_float32_follows_float64(method):
    """With usual settings, whose roundings stay what they are."""
    single, double = (runs.descend(method, dtype=np.dtype(t)) for t in ("f4", "f8"))
    np.testing.assert_allclose(single, double, rtol=3e-6, atol=3e-6)


@each
def test_long_slices_have_the_bits_of_the_whole(method):
    runs.check_slices(method, [3, 50, 77], large=True)


@each
def test_no_numbers_are_no_trouble(method):
    nothing = np.zeros(0, np.float32)
    new, state = method.update(nothing, nothing, method.init(0), 0)
    assert new.shape == (0,)
    assert all(a.shape == (0,) for a in state.values())


@each
def test_a_million_iterations_later_it_still_steps(method):
    w = runs.start()
    new, _ = method.update(w, runs.gradients(w, 0), method.init(runs.SIZE), 10**6)
    assert np.isfinite(new).all()
