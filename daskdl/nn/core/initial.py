"""Initial weights, drawn from a Generator that the caller seeds."""

from __future__ import annotations

import functools
import math
import os

import numpy as np
from numpy.typing import NDArray

from daskdl.nn.core.parameter import Parameter, check_room


def uniform(rng: np.random.Generator, shape: tuple[int, ...], fan_in: int) -> Parameter:
    """Draw from U(-b, b), b = 1 / sqrt(fan_in): what PyTorch gives linear and conv layers."""
    check_room(shape)
    bound = 1 / math.sqrt(max(1, fan_in))
    return Parameter(rng.uniform(-bound, bound, shape))


def glorot(rng: np.random.Generator, shape: tuple[int, ...], fans: tuple[int, int]) -> Parameter:
    """Draw from U(-b, b), b = sqrt(6 / (fan_in + fan_out)) (X. Glorot and Y. Bengio, 2010)."""
    check_room(shape)
    bound = math.sqrt(6 / sum(fans))
    return Parameter(rng.uniform(-bound, bound, shape))


def zeros(shape: tuple[int, ...]) -> Parameter:
    """Return zeros."""
    return Parameter(filled(shape, 0))


def filled(shape: int | tuple[int, ...], value: float) -> NDArray[np.float32]:
    """Return an array of one number."""
    check_room(shape)
    return np.full(shape, value, np.float32)


def generator(seed: int | None) -> np.random.Generator:
    """Return the Generator of a layer; without a seed every layer differs, run by run."""
    return _unseeded(os.getpid()) if seed is None else np.random.default_rng(seed)


@functools.cache
def _unseeded(process: int) -> np.random.Generator:
    """Return the Generator of all layers of a process that have no seed.

    To make a Generator takes longer than to draw a small layer's weights; a forked process, which
    would draw its parent's numbers again, has one of its own.
    """
    return np.random.default_rng()


def forget_bias(channels: int) -> NDArray[np.float32]:
    """Return the bias of an LSTM's gates: 1 for forget, so that it starts by remembering."""
    bias = filled(4 * channels, 0)
    bias[channels : 2 * channels] = 1
    return bias
