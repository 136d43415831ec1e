"""Checks of a loss, against PyTorch's, on shards, and as a module; and of a metric, by batches."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from daskdl import nn
from daskdl.metrics import Metric
from daskdl.nn.core.modelfile import build, configuration
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient


def sample_weights(n: int) -> np.ndarray:
    """Return a weight for each sample, one of them 0."""
    weights = np.random.default_rng(n).uniform(0, 3, n)
    weights[n // 2] = 0
    return weights


def check_loss(
    torch: Any,
    ours: Callable[..., Tensor],
    theirs: Callable[..., Any],
    *arrays: np.ndarray,
    wanted: tuple[bool, ...] = (True,),
    dtype: str = "f8",
    weighted: bool = True,
) -> None:
    """Compare values and gradients of a loss with PyTorch's without reduction.

    Parameters
    ----------
    ours
        Our loss, a function of tensors and ``sample_weight``.
    theirs
        PyTorch's loss of tensors, (N, ...), whose mean over each sample is taken here.
    *arrays
        Floats are converted to ``dtype``.
    wanted
        Whether to compare each array's gradient; False for the arrays after the last one.
    """
    arrays = tuple(a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays)
    wanted = (*wanted, *(False,) * (len(arrays) - len(wanted)))
    n = len(arrays[0])
    weights = sample_weights(n) if weighted else None
    inputs = [Tensor(a, requires_grad=w) for a, w in zip(arrays, wanted, strict=True)]
    value = ours(*inputs, sample_weight=weights)
    assert value.shape == ()
    assert value.dtype == np.dtype(dtype)
    value.backward()

    torch_inputs = [torch.tensor(a, requires_grad=w) for a, w in zip(arrays, wanted, strict=True)]
    losses = theirs(*torch_inputs).reshape(n, -1).mean(1)
    expected = (losses * torch.tensor(np.ones(n) if weights is None else weights)).mean()
    expected.backward()
    tolerance = 2e-5 if dtype == "f4" else 1e-10
    scale = losses.detach().abs().max().item() + 1e-3
    np.testing.assert_allclose(float(value), expected.item(), rtol=0, atol=tolerance * scale)
    for mine, other in zip(inputs, torch_inputs, strict=True):
        if mine.requires_grad:
            gradient = other.grad.numpy()
            assert mine.grad.dtype == np.dtype(dtype)
            largest = np.abs(gradient).max(initial=1e-3)
            np.testing.assert_allclose(mine.grad, gradient, rtol=0, atol=tolerance * largest)


def check_cut(ours: Callable[..., Tensor], *arrays: np.ndarray) -> None:
    """Check that shards' losses and gradients, weighted by their samples, add up to the batch's."""
    n = len(arrays[0])
    weights = sample_weights(n)

    def run(part: slice) -> tuple[float, np.ndarray]:
        first = Tensor(arrays[0][part], requires_grad=True)
        value = ours(first, *(a[part] for a in arrays[1:]), sample_weight=weights[part])
        value.backward()
        return float(value), first.grad

    whole, gradient = run(slice(None))
    shards = [slice(0, 1), slice(1, n)] if n > 1 else [slice(None)]
    parts = [(*run(shard), len(weights[shard])) for shard in shards]
    assert np.isclose(sum(value * count for value, _, count in parts) / n, whole, atol=1e-12)
    joined = np.concatenate([part * count / n for _, part, count in parts])
    np.testing.assert_allclose(joined, gradient, rtol=1e-9, atol=1e-12)


def check_slopes(ours: Callable[..., Tensor], *arrays: np.ndarray, constants: Any = ()) -> None:
    """Check the gradient to ``arrays`` in float64, with weights of samples and without."""
    for weights in (None, sample_weights(len(arrays[0]))):
        check_gradient(lambda *a, w=weights: ours(*a, *constants, sample_weight=w), *arrays)


def check_module(
    loss: nn.Loss, operation: Callable[..., Tensor], prediction: Any, *target: Any
) -> None:
    """Check that a loss is an operation with its settings, also after it was kept in a file.

    Its settings have to matter: without them the value differs.
    """
    n = len(prediction[0] if isinstance(prediction, tuple) else prediction)
    weights = sample_weights(n)
    inputs = (*(prediction if isinstance(prediction, tuple) else (prediction,)), *target)
    expected = float(operation(*inputs, sample_weight=weights))
    arrays: dict[str, Any] = {}
    rebuilt = build(json.loads(json.dumps(configuration(loss, arrays))), "loss", arrays)
    for same in (loss, rebuilt, pickle.loads(pickle.dumps(loss))):
        assert repr(same).replace("(", "[").replace(")", "]") == repr(loss).replace(
            "(", "["
        ).replace(")", "]")
        assert float(same(prediction, *target, sample_weight=weights)) == expected
    assert float(loss(prediction, *target)) == float(operation(*inputs))
    arguments, keywords = loss._arguments
    if (arguments or keywords) and not isinstance(loss, nn.MultiLoss):
        assert float(type(loss)()(prediction, *target, sample_weight=weights)) != expected


def check_cuts(
    metric: Metric, prediction: Any, target: Any, data: st.DataObject, weight: Any = None
) -> float:
    """Check that drawn cuts, orders and merges of batches give the same value; return it."""
    n = len(target)
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5), label="cuts"))
    bounds = list(zip([0, *cuts], [*cuts, n], strict=True))
    batches = data.draw(st.permutations(bounds), label="order")

    def statistics(i: int, j: int) -> dict[str, Any]:
        more = () if weight is None else (weight[i:j],)
        return metric.statistics(prediction[i:j], target[i:j], *more)

    merged = [statistics(i, j) for i, j in batches]
    together = metric.value(metric.merge(*merged))
    while len(merged) > 1:
        at = data.draw(st.integers(0, len(merged) - 2), label="merge")
        copies = {name: array.copy() for name, array in merged[at].items()}
        both = metric.merge(merged[at], merged[at + 1])
        for name, array in copies.items():
            np.testing.assert_array_equal(merged[at][name], array)
        merged[at : at + 2] = [both]
    value, whole = metric.value(merged[0]), metric.value(statistics(0, n))
    np.testing.assert_equal(together, value)
    assert isinstance(value, float)
    assert value == whole or (np.isnan(value) and np.isnan(whole)), (value, whole)
    return whole
