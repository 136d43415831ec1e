"""TorchLoss: a loss of torch, or any function of tensors, as a loss of daskdl."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, TrainingError
from daskdl.masked import unmasked
from daskdl.nn.core.arguments import each
from daskdl.tensor import Node, Tensor, recording, wants_grad
from daskdl.torch.library import as_array, as_tensor, budgeted, sources_of, torch


class TorchLoss:
    """A function of tensors that returns the mean over the samples of a batch.

    Parameters
    ----------
    function : callable
        ``function(prediction, target)`` of tensors, such as ``torch.nn.CrossEntropyLoss()``. It
        must be a mean over samples, as shards are weighted by their numbers of samples.

    Raises
    ------
    SettingsError
        For a loss of torch that is no mean over samples: one with another reduction, or with class
        weights, as it divides by their sum.

    Examples
    --------
    >>> loss = TorchLoss(torch.nn.MSELoss())
    >>> float(loss(np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)))
    1.0
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise SettingsError(
                f"TorchLoss: expected a function of tensors, found {function!r}; give one such as "
                "torch.nn.CrossEntropyLoss()"
            )
        reduction = getattr(function, "reduction", "mean")
        if reduction not in ("mean", "batchmean"):
            raise SettingsError(
                f"TorchLoss: expected reduction='mean', found {reduction!r}; shards are weighted "
                "by their numbers of samples"
            )
        divides = isinstance(function, (torch.nn.CrossEntropyLoss, torch.nn.NLLLoss))
        if divides and getattr(function, "weight", None) is not None:
            raise SettingsError(
                f"TorchLoss: expected a mean over samples, found {type(function).__name__} with "
                "class weights, which divides by the sum of those in a batch; give the samples a "
                "sample_weight and use daskdl.nn.CrossEntropyLoss"
            )
        self.function = function

    def __repr__(self) -> str:
        return f"TorchLoss({self.function!r})"

    def __call__(self, prediction: Any, target: Any) -> Tensor:
        """Return the loss as a scalar Tensor.

        Parameters
        ----------
        prediction : Tensor or array (N, ...), or a tuple of them
        target : array (N, ...), or a tuple or mapping of them
        """
        budgeted()
        several = isinstance(prediction, (tuple, list))
        predictions = list(prediction) if several else [prediction]
        wanted = recording() and any(map(wants_grad, predictions))
        arrays = [p.data if isinstance(p, Tensor) else p for p in predictions]
        tensors = [as_tensor(np.asarray(unmasked("TorchLoss", array))) for array in arrays]
        for tensor, p in zip(tensors, predictions, strict=True):
            if wanted and wants_grad(p):
                tensor.requires_grad_(True)
        with torch.set_grad_enabled(wanted):
            loss = self.function(tuple(tensors) if several else tensors[0], each(as_tensor, target))
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            shape = tuple(getattr(loss, "shape", ()))
            raise TrainingError(
                f"TorchLoss: expected one number, found {type(loss).__name__} of shape {shape}; "
                "take the mean over the samples"
            )
        result = Tensor(as_array(loss).reshape(()))
        if not wanted:
            return result
        _check_leaves(loss, tensors)
        sources = sources_of(predictions)

        def backward(gradient: Any) -> tuple[Any, ...]:
            loss.backward(torch.full_like(loss, float(gradient)))
            return tuple(
                None if source is None or tensor.grad is None else as_array(tensor.grad)
                for source, tensor in zip(sources, tensors, strict=True)
            )

        result._node, result._slot = Node(sources, 1, backward), 0
        return result


def _check_leaves(loss: Any, predictions: list[Any]) -> None:
    """Refuse a loss that has parameters, or reads a module's: no step would change them by it."""
    nodes = {loss.grad_fn}
    waiting = [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        leaf = node.variable if type(node).__name__ == "AccumulateGrad" else None
        if leaf is not None and all(leaf is not tensor for tensor in predictions):
            raise SettingsError(
                f"TorchLoss: expected a function of predictions and targets, found parameters of "
                f"shape {tuple(leaf.shape)} in it, which it would not train; return what it needs "
                "from forward, or set requires_grad_(False)"
            )
        before = {n for n, _ in getattr(node, "next_functions", ())} - nodes - {None}
        nodes |= before
        waiting += before
