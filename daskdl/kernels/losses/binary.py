"""Binary cross entropy of logits: its sums in one pass, its slope in another.

To be summed up by :func:`daskdl.kernels.losses.regression.sums`; as there, nothing is kept in
between.
"""

from __future__ import annotations

import numpy as np

from daskdl.kernels.losses.regression import CHUNK, block
from daskdl.kernels.runtime.elementary import logistic, softplus
from daskdl.kernels.runtime.jit import fastjit, fusedjit
from daskdl.kernels.runtime.nontemporal import drain, put


@fusedjit
def _costs(x, t, first, last, excess, results):
    """Write (1 - t) x + (1 + excess t) log(1 + exp(-x)) of the numbers ``first`` to ``last``."""
    one = x.dtype.type(1)
    for k in range(last - first):
        logit, yes = x[np.uintp(first + k)], t[np.uintp(first + k)]
        results[k] = (one - yes) * logit + (one + excess * yes) * softplus(-logit)


@fastjit
def cross_entropy(x, t, settings, length, sums, which, start, stop):
    """Cross entropy of targets from 0 to 1; setting: by how much the weight of yes exceeds 1."""
    costs = np.empty(CHUNK, x.dtype)
    for item in range(start, stop):
        first, last = block(item, length)
        total = 0.0
        for low in range(first, last, CHUNK):
            high = min(low + CHUNK, last)
            _costs(x, t, low, high, settings[0], costs)
            for k in range(high - low):
                total += np.float64(costs[k])
        sums[item] = total


@fusedjit
def cross_entropy_back(x, t, dx, settings, past):
    """Write its slope times a factor; settings: as its own, and the factor."""
    excess, factor, one = settings[0], settings[1], x.dtype.type(1)
    for k in range(x.size):
        tilt = (one - t[k]) - (one + excess * t[k]) * logistic(-x[k])
        put(dx, k, factor * tilt, past)
    drain(past)
