"""Kernels of activations: each has a way back, and both write past the caches what they write."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.runtime.memory import SMALL, empty
from daskdl.kernels.vectors import activations

FORWARD = [name[:-5] for name in vars(activations) if name.endswith("_back")]


@pytest.mark.parametrize("name", ["relu", "clip", "gelu", "softplus"])
def test_near_and_past_the_caches_are_the_same(name):
    settings = np.array([-0.5, 0.5], "f4")
    x = np.random.default_rng(0).normal(size=1003).astype("f4")
    x.flags.writeable = False
    for kernel, inputs in (
        (getattr(activations, name), (x,)),
        (getattr(activations, f"{name}_back"), (x, x)),
    ):
        near, past = empty(SMALL, "f4")[:1003], empty(SMALL, "f4")[:1003]
        kernel(*inputs, near, settings, None)
        kernel(*inputs, past, settings, True)
        np.testing.assert_array_equal(near, past)


def test_there_is_a_kernel_for_each_way_back():
    assert len(FORWARD) == 12
    assert all(hasattr(activations, name) for name in FORWARD)
