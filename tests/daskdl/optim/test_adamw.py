"""AdamW against PyTorch, and that slices can be stepped by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import AdamW
from tests.daskdl.optim import runs

options = st.fixed_dictionaries(
    {
        "beta1": runs.betas,
        "beta2": runs.betas,
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
        "amsgrad": st.booleans(),
    }
)


def theirs(options):
    """Return the settings under PyTorch's names."""
    named = {"eps": options["epsilon"], "betas": (options["beta1"], options["beta2"])}
    return named | {name: options[name] for name in ("weight_decay", "amsgrad")}


@runs.few
@given(rate=runs.rates, options=options, dtype=runs.dtypes)
def test_agrees_with_pytorch(rate, options, dtype, torch):
    expected = runs.torch_descends(
        lambda p: torch.optim.AdamW(p, lr=rate, **theirs(options)), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(AdamW(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(options, points):
    runs.check_pure(AdamW(0.01, **options))
    runs.check_slices(AdamW(0.01, **options), points)


def test_decay_stays_out_of_the_moments():
    method, w = AdamW(0.1, weight_decay=0.5), np.ones(2, np.float32)
    new, state = method.update(w, np.zeros(2, np.float32), method.init(2), 0)
    np.testing.assert_allclose(new, 0.95)
    assert not state["mean"].any()


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match="AdamW: expected 0 <= weight_decay < inf, found -1"):
        AdamW(weight_decay=-1)
