"""Adam, AdamW, Adamax and Nadam beside PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import Adam, Adamax, AdamW, Nadam
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
    names = {"epsilon": "eps", "weight_decay": "weight_decay", "amsgrad": "amsgrad"}
    named = {new: options[old] for old, new in names.items() if old in options}
    return named | {"betas": (options["beta1"], options["beta2"])}


@runs.few
@given(rate=runs.rates, options=options, dtype=runs.dtypes)
def test_agrees_with_pytorch(rate, options, dtype, torch):
    expected = runs.torch_descends(
        lambda p: torch.optim.Adam(p, lr=rate, **theirs(options)), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(Adam(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(options, points):
    runs.check_pure(Adam(0.01, **options))
    runs.check_slices(Adam(0.01, **options), points)


def test_changes_none_of_its_inputs():
    runs.check_pure(Adam(0.01))


def test_first_step_has_the_length_of_the_rate():
    method, g = Adam(0.1), np.array([1e-3, -50, 7], np.float32)
    w, _ = method.update(np.zeros(3, np.float32), g, method.init(3), 0)
    np.testing.assert_allclose(w, -0.1 * np.sign(g), rtol=1e-4)


def test_rate_stays_without_a_schedule():
    assert {Adam(0.3).rate_at(i) for i in (0, 5, 10**6)} == {0.3}


def test_state_is_two_moments_of_float32():
    state = Adam().init(runs.SIZE)
    assert {name: (a.dtype, a.shape) for name, a in state.items()} == {
        "mean": (np.float32, (runs.SIZE,)),
        "square": (np.float32, (runs.SIZE,)),
    }


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"learning_rate": -1}, "Adam: expected 0 <= learning_rate < inf, found -1"),
        ({"beta1": 1.0}, "Adam: expected 0 <= beta1 < 1, found 1.0"),
        ({"beta2": -0.1}, "Adam: expected 0 <= beta2 < 1, found -0.1"),
        ({"epsilon": -1e-8}, "Adam: expected 0 <= epsilon"),
        ({"weight_decay": -1}, "Adam: expected 0 <= weight_decay"),
    ],
)
def test_impossible_settings_are_refused(settings, sentence):
    with pytest.raises(SettingsError, match=sentence):
        Adam(**settings)


options_adamw = st.fixed_dictionaries(
    {
        "beta1": runs.betas,
        "beta2": runs.betas,
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
        "amsgrad": st.booleans(),
    }
)


def theirs_adamw(options):
    """Return the settings under PyTorch's names."""
    named = {"eps": options["epsilon"], "betas": (options["beta1"], options["beta2"])}
    return named | {name: options[name] for name in ("weight_decay", "amsgrad")}


@runs.few
@given(rate=runs.rates, options=options_adamw, dtype=runs.dtypes)
def test_agrees_with_pytorch_adamw(rate, options, dtype, torch):
    expected = runs.torch_descends(
        lambda p: torch.optim.AdamW(p, lr=rate, **theirs_adamw(options)), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(AdamW(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options_adamw, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole_adamw(options, points):
    runs.check_pure(AdamW(0.01, **options))
    runs.check_slices(AdamW(0.01, **options), points)


def test_decay_stays_out_of_the_moments():
    method, w = AdamW(0.1, weight_decay=0.5), np.ones(2, np.float32)
    new, state = method.update(w, np.zeros(2, np.float32), method.init(2), 0)
    np.testing.assert_allclose(new, 0.95)
    assert not state["mean"].any()


def test_impossible_settings_are_refused_adamw():
    with pytest.raises(SettingsError, match="AdamW: expected 0 <= weight_decay < inf, found -1"):
        AdamW(weight_decay=-1)


options_adamax = st.fixed_dictionaries(
    {
        "beta1": runs.betas,
        "beta2": runs.betas,
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
    }
)


def theirs_adamax(options):
    """Return the settings under PyTorch's names."""
    named = {"eps": options["epsilon"], "betas": (options["beta1"], options["beta2"])}
    return named | {"weight_decay": options["weight_decay"]}


@runs.few
@given(rate=runs.rates, options=options_adamax, dtype=runs.dtypes)
def test_agrees_with_pytorch_adamax(rate, options, dtype, torch):
    expected = runs.torch_descends(
        lambda p: torch.optim.Adamax(p, lr=rate, **theirs_adamax(options)), torch, np.dtype(dtype)
    )
    runs.assert_close(runs.descend(Adamax(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options_adamax, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole_adamax(options, points):
    runs.check_pure(Adamax(0.01, **options))
    runs.check_slices(Adamax(0.01, **options), points)


def test_a_gradient_that_is_not_a_number_shows():
    method, w = Adamax(), np.ones(2, np.float32)
    new, _ = method.update(w, np.array([np.nan, 1], np.float32), method.init(2), 0)
    assert np.isnan(new[0])
    assert np.isfinite(new[1])


def test_impossible_settings_are_refused_adamax():
    with pytest.raises(SettingsError, match=r"Adamax: expected 0 <= beta2 < 1, found 1\.0"):
        Adamax(beta2=1.0)


options_nadam = st.fixed_dictionaries(
    {
        "beta1": runs.betas,
        "beta2": runs.betas,
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
        "momentum_decay": st.floats(0, 0.5),
        "decoupled": st.booleans(),
    }
)


def theirs_nadam(options):
    """Return the settings under PyTorch's names."""
    named = {"eps": options["epsilon"], "betas": (options["beta1"], options["beta2"])}
    named |= {name: options[name] for name in ("weight_decay", "momentum_decay")}
    return named | {"decoupled_weight_decay": options["decoupled"]}


@runs.few
@given(rate=runs.rates, options=options_nadam, dtype=runs.dtypes)
def test_agrees_with_pytorch_nadam(rate, options, dtype, torch):
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # in which it keeps the product of the momenta
    try:
        expected = runs.torch_descends(
            lambda p: torch.optim.NAdam(p, lr=rate, **theirs_nadam(options)), torch, np.dtype(dtype)
        )
    finally:
        torch.set_default_dtype(default)
    runs.assert_close(runs.descend(Nadam(rate, **options), dtype=np.dtype(dtype)), expected)


@runs.few
@given(options=options_nadam, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole_nadam(options, points):
    runs.check_pure(Nadam(0.01, **options))
    runs.check_slices(Nadam(0.01, **options), points)


@pytest.mark.parametrize("beta1", [0.0, 0.5, 0.9, 0.999])
def test_momenta_that_are_too_many_to_multiply_count_for_nothing(beta1):
    method = Nadam(beta1=beta1)
    momenta = [beta1 * (1 - 0.5 * 0.96 ** (t * 4e-3)) for t in range(1, 50_001)]
    for t in (1, 2, 40, 1000, 50_000):
        expected = np.prod(momenta[:t])
        assert 1 - method._product(t) == pytest.approx(1 - expected, rel=1e-14)


def test_impossible_settings_are_refused_nadam():
    with pytest.raises(SettingsError, match="Nadam: expected 0 <= momentum_decay < inf, found -1"):
        Nadam(momentum_decay=-1)
