"""Adagrad against PyTorch and by hand, and that it changes none of its inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import Adagrad
from tests.daskdl.optim import runs

options = st.fixed_dictionaries(
    {
        "rate_decay": runs.decays,
        "weight_decay": runs.decays,
        "initial": st.sampled_from([0.0, 0.5, 2.0]),
        "epsilon": runs.epsilons,
    }
)
NAMES = {
    "rate_decay": "lr_decay",
    "weight_decay": "weight_decay",
    "initial": "initial_accumulator_value",
    "epsilon": "eps",
}


@runs.few
@given(rate=runs.rates, options=options, dtype=runs.dtypes)
def test_agrees_with_pytorch(rate, options, dtype, torch):
    theirs = {NAMES[name]: value for name, value in options.items()}
    expected = runs.torch_descends(
        lambda p: torch.optim.Adagrad(p, lr=rate, **theirs), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(Adagrad(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(options, points):
    runs.check_pure(Adagrad(0.1, **options))
    runs.check_slices(Adagrad(0.1, **options), points)


def test_two_steps_by_hand():
    method = Adagrad(learning_rate=0.5, epsilon=0)
    w, g = np.array([1.0], np.float32), np.array([3.0], np.float32)
    w, state = method.update(w, g, method.init(1), 0)
    assert (w[0], state["square"][0]) == (0.5, 9)
    w, state = method.update(w, 4 * g / 3, state, 1)
    assert w[0] == pytest.approx(0.5 - 0.5 * 4 / 5)


@pytest.mark.parametrize(
    "name", ["learning_rate", "rate_decay", "weight_decay", "initial", "epsilon"]
)
def test_impossible_settings_are_refused(name):
    with pytest.raises(SettingsError, match=f"Adagrad: expected 0 <= {name} < inf, found -1"):
        Adagrad(**{name: -1})
