"""Adamax against PyTorch, and that slices can be stepped by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import Adamax
from tests.daskdl.optim import runs

options = st.fixed_dictionaries(
    {
        "beta1": runs.betas,
        "beta2": runs.betas,
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
    }
)


def theirs(options):
    """Return the settings under PyTorch's names."""
    named = {"eps": options["epsilon"], "betas": (options["beta1"], options["beta2"])}
    return named | {"weight_decay": options["weight_decay"]}


@runs.few
@given(rate=runs.rates, options=options, dtype=runs.dtypes)
def test_agrees_with_pytorch(rate, options, dtype, torch):
    expected = runs.torch_descends(
        lambda p: torch.optim.Adamax(p, lr=rate, **theirs(options)), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(Adamax(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(options, points):
    runs.check_pure(Adamax(0.01, **options))
    runs.check_slices(Adamax(0.01, **options), points)


def test_a_gradient_that_is_not_a_number_shows():
    method, w = Adamax(), np.ones(2, np.float32)
    new, _ = method.update(w, np.array([np.nan, 1], np.float32), method.init(2), 0)
    assert np.isnan(new[0])
    assert np.isfinite(new[1])


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match=r"Adamax: expected 0 <= beta2 < 1, found 1\.0"):
        Adamax(beta2=1.0)
