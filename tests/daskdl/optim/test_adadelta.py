"""Adadelta against PyTorch, and that slices can be stepped by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import Adadelta
from tests.daskdl.optim import runs

options = st.fixed_dictionaries(
    {
        "smoothing": runs.betas,
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
    }
)


def theirs(options):
    """Return the settings under PyTorch's names."""
    names = {"smoothing": "rho", "epsilon": "eps"}
    return {names.get(name, name): value for name, value in options.items()}


@runs.few
@given(rate=runs.rates, options=options, dtype=runs.dtypes)
def test_agrees_with_pytorch(rate, options, dtype, torch):
    expected = runs.torch_descends(
        lambda p: torch.optim.Adadelta(p, lr=rate, **theirs(options)), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(Adadelta(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(options, points):
    runs.check_pure(Adadelta(0.01, **options))
    runs.check_slices(Adadelta(0.01, **options), points)


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match=r"Adadelta: expected 0 <= smoothing < 1, found -0\.1"):
        Adadelta(smoothing=-0.1)
