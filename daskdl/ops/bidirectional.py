"""A recurrent operation run in both directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from daskdl.ops.shape import concatenate
from daskdl.tensor import Array, Tensor

__all__ = ["bidirectional"]


def bidirectional(
    operation: Callable[..., tuple[Tensor, ...]],
    x: Array | Tensor,
    forward: Sequence[Any],
    backward: Sequence[Any],
    **settings: Any,
) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Run a sequence from its first step to its last and, with other weights, back.

    Parameters
    ----------
    operation : callable
        ``ops.lstm``, ``ops.gru`` or ``ops.rnn``.
    x : array (N, T, in)
    forward, backward : sequences
        All arguments of the operation behind ``x``, for each direction: PyTorch's weights of a
        layer, and those whose names end in ``_reverse``.
    settings
        For both, such as ``lengths``.

    Returns
    -------
    outputs : array (N, T, 2 * C)
        The forward direction's, then the other's, at each step.
    last, first : tuples of arrays (N, C)
        The final states of the forward direction and of the other, which ends at the first step.

    References
    ----------
    M. Schuster and K. Paliwal, Bidirectional Recurrent Neural Networks, IEEE Transactions on Signal
    Processing 45 (1997).

    Examples
    --------
    >>> x, h = np.ones((2, 5, 3), np.float32), np.zeros((2, 4), np.float32)
    >>> weights = np.ones((4, 3), np.float32), np.ones((4, 4), np.float32), np.zeros(4, np.float32)
    >>> outputs, last, first = bidirectional(ops.rnn, x, (h, *weights), (h, *weights))
    >>> outputs.shape, last[0].shape, first[0].shape
    ((2, 5, 8), (2, 4), (2, 4))
    """
    ahead, *last = operation(x, *forward, **settings)
    back, *first = operation(x, *backward, reverse=True, **settings)
    return concatenate(ahead, back), tuple(last), tuple(first)
