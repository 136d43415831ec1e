"""Nadam against PyTorch, and that slices can be stepped by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import Nadam
from tests.daskdl.optim import runs

options = st.fixed_dictionaries(
    {
        "beta1": runs.betas,
        "beta2": runs.betas,
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
        "momentum_decay": st.floats(0, 0.5),
        "decoupled": st.booleans(),
    }
)


def theirs(options):
    """Return the settings under PyTorch's names."""
    named = {"eps": options["epsilon"], "betas": (options["beta1"], options["beta2"])}
    named |= {name: options[name] for name in ("weight_decay", "momentum_decay")}
    return named | {"decoupled_weight_decay": options["decoupled"]}


@runs.few
@given(rate=runs.rates, options=options, dtype=runs.dtypes)
def test_agrees_with_pytorch(rate, options, dtype, torch):
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # in which it keeps the product of the momenta
    try:
        expected = runs.torch_descends(
            lambda p: torch.optim.NAdam(p, lr=rate, **theirs(options)), torch, np.dtype(dtype)
        )
    finally:
        torch.set_default_dtype(default)
    runs.assert_close(runs.descend(Nadam(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(options, points):
    runs.check_pure(Nadam(0.01, **options))
    runs.check_slices(Nadam(0.01, **options), points)


@pytest.mark.parametrize("beta1", [0.0, 0.5, 0.9, 0.999])
def test_momenta_that_are_too_many_to_multiply_count_for_nothing(beta1):
    method = Nadam(beta1=beta1)
    momenta = [beta1 * (1 - 0.5 * 0.96 ** (t * 4e-3)) for t in range(1, 50_001)]
    for t in (1, 2, 40, 1000, 50_000):
        expected = np.prod(momenta[:t])
        assert 1 - method._product(t) == pytest.approx(1 - expected, rel=1e-14)


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match="Nadam: expected 0 <= momentum_decay < inf, found -1"):
        Nadam(momentum_decay=-1)
