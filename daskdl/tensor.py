"""Tensor: an array that records how it was computed, for gradients."""

from __future__ import annotations

import functools
import itertools
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskdl.errors import ShapeError
from daskdl.kernels.vectors.arithmetic import add_into, added
from daskdl.kernels.vectors.embedding import add_to
from daskdl.masked import unmasked
from daskdl.rows import Rows

Array = NDArray[Any]
#: Maps gradients of an operation's results to gradients of its inputs. A gradient may be a function
#: without arguments, called only if the input needs it.
Backward = Callable[..., Any]
#: Receiver of a gradient: a leaf, or the node that made a tensor and the number of the result, or
#: None. Not the tensor itself, so that its array is freed when no other code needs it.
Source: TypeAlias = "Tensor | tuple[Node, int] | None"
#: Gradient of a result from its readers so far; two if its backward adds them.
Gathered: TypeAlias = "Array | tuple[Array, Array] | None"
#: Receives an operation's function, inputs, settings and results.
Watcher = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any], tuple[Any, ...]], None]
#: From an operation's function, inputs and settings to its value; None to compute it as usual.
Evaluator = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class _Mode(threading.local):
    recording = True
    watcher: Watcher | None = None
    evaluator: Evaluator | None = None


_mode = _Mode()
_clock = itertools.count()


@contextmanager
def no_grad() -> Iterator[None]:
    """Compute without recording, as in prediction: nothing is kept for gradients.

    >>> with no_grad(): print(wants_grad(Tensor([1.0], requires_grad=True) * 2))
    False
    """
    before, _mode.recording = recording(), False
    try:
        yield
    finally:
        _mode.recording = before


def recording() -> bool:
    """Return whether operations of this thread are recorded."""
    return _mode.recording


@contextmanager
def watched_operations(watcher: Watcher) -> Iterator[None]:
    """Call a function after each operation of this thread, for instance to record it."""
    before, _mode.watcher = _mode.watcher, watcher
    try:
        yield
    finally:
        _mode.watcher = before


@contextmanager
def evaluated_by(evaluator: Evaluator) -> Iterator[None]:
    """Compute without recording; a function may compute operations in its own way."""
    before, _mode.evaluator = _mode.evaluator, evaluator
    try:
        with no_grad():
            yield
    finally:
        _mode.evaluator = before


def evaluated(function: Callable[..., Any], inputs: tuple[Any, ...], settings: Any) -> Any:
    """Return the value of an operation by :func:`evaluated_by`'s function, or None."""
    if recording() or _mode.evaluator is None:
        return None
    return _mode.evaluator(function, inputs, settings)


def watcher_of_operations() -> Watcher | None:
    """Return the watcher of this thread's operations, or None."""
    return _mode.watcher


class InParts:
    """A backward of one result that adds two gradients of its readers in its own pass.

    It is called with the gradient, or with two gradients to add.
    """

    def __init__(self, backward: Backward) -> None:
        self.backward = backward

    def __call__(self, gradient: Array | tuple[Array, Array]) -> Any:
        """Return the gradients to the inputs."""
        return self.backward(*gradient) if isinstance(gradient, tuple) else self.backward(gradient)


class Node:
    """One recorded operation: receivers of its gradients, number of results, and backward."""

    __slots__ = ("backward", "order", "results", "sources")

    def __init__(self, sources: Sequence[Source], results: int, backward: Backward) -> None:
        self.sources = sources
        self.results = results
        self.backward = backward
        self.order = next(_clock)


class Tensor:
    """A numpy array on the tape.

    Parameters
    ----------
    data : array_like
        Any shape; an array is not copied.
    requires_grad : bool
        Whether :meth:`backward` adds into :attr:`grad`.
    """

    __slots__ = ("_node", "_slot", "data", "grad", "requires_grad")
    __array_priority__ = 1000  # so that numpy leaves `array * tensor` to us

    def __init__(self, data: ArrayLike, requires_grad: bool = False) -> None:
        self.data: Array = np.asarray(unmasked("Tensor", data))
        self.grad: Any = None  # an array of this shape; Rows if keeps_rows
        self.requires_grad = requires_grad
        self._node: Node | None = None
        self._slot = 0

    if TYPE_CHECKING:  # daskdl.ops.pointwise.operators defines these

        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __pow__(self, exponent: float) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def reshape(self, *shape: Any) -> Tensor:
            """Return the elements in another shape, given as a tuple or as integers."""

        def transpose(self, *axes: Any) -> Tensor:
            """Return the tensor with permuted axes, by default reversed."""

        def sum(self, axis: Any = None, keepdims: bool = False) -> Tensor:
            """Return the sum over some axes, by default all."""

        def mean(self, axis: Any = None, keepdims: bool = False) -> Tensor:
            """Return the mean over some axes, by default all."""

    @property
    def keeps_rows(self) -> bool:
        """Whether ``grad`` is :class:`~daskdl.rows.Rows`, not an array; some parameters set it."""
        return False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the array."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.data.ndim

    def numpy(self) -> Array:
        """Return the array itself."""
        return self.data

    def item(self) -> Any:
        """Return the tensor's only number."""
        return self.data.item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is None and (dtype is None or self.data.dtype == dtype):
            return self.data  # itself, without a copy
        return np.array(self.data, dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.data.__dlpack_device__()

    def __len__(self) -> int:
        return len(self.data)

    def __float__(self) -> float:
        return float(self.data)

    def __repr__(self) -> str:
        kind = f"{self.data.dtype.kind}{8 * self.data.dtype.itemsize}"
        return f"{type(self).__name__}({kind}{list(self.shape)})"

    def backward(
        self, gradient: ArrayLike | None = None, passed: Callable[[int], object] | None = None
    ) -> None:
        """Add the gradient of this tensor to ``grad`` of every tensor that it depends on.

        Parameters
        ----------
        gradient : array of this tensor's shape, optional
            Gradient to start from; by default 1, for a scalar.
        passed : callable, optional
            Called with each operation's order after its backward; remaining ones have lower orders.

        Raises
        ------
        ShapeError
            Without ``gradient`` if this tensor is not a scalar; when a gradient's shape is wrong.
        RuntimeError
            When the gradients of this graph were already taken.
        """
        if gradient is not None:
            start = np.asarray(gradient, self.data.dtype)
            _check_shape(self, start)
        elif self.data.size == 1:
            start = np.ones_like(self.data)
        else:
            raise ShapeError(
                f"backward: expected a scalar (a loss), found shape {self.shape}; "
                "give the gradient to start from"
            )
        if self._node is None:
            _accumulate(self, start)
            return
        pending: dict[Node, list[Gathered]] = {self._node: [None] * self._node.results}
        pending[self._node][self._slot] = start
        while pending:
            # Operations have higher orders than their inputs: the latest node's gradient is ready.
            node = max(pending, key=_order) if len(pending) > 1 else next(iter(pending))
            _pass_on(node, pending.pop(node), pending)
            if passed is not None:
                passed(node.order)


_order = operator.attrgetter("order")


def _pass_on(node: Node, gradients: list[Gathered], pending: dict[Node, list[Gathered]]) -> None:
    # Free the node's arrays: gradients of earlier layers reuse the memory of later ones.
    backward, node.backward = node.backward, _spent
    results = backward(*gradients)
    results = results if isinstance(results, tuple) else (results,)
    sources, node.sources = node.sources, []
    if len(results) != len(sources):
        raise ShapeError(
            f"{getattr(backward, '__qualname__', 'backward')}: expected "
            f"{len(sources)} gradients, one for each input, found {len(results)}"
            "; return as many from backward as the operation has positional arguments"
        )
    for source, gradient in zip(sources, results, strict=True):
        if source is None or gradient is None:
            continue
        value = gradient() if callable(gradient) else gradient
        if not isinstance(source, tuple):
            _accumulate(source, value)
            continue
        if isinstance(value, Rows):
            value = value.dense()
        maker, slot = source
        slots = pending.setdefault(maker, [None] * maker.results)
        waiting = slots[slot]
        if isinstance(waiting, tuple):
            waiting = added(*waiting)
        if waiting is None:
            slots[slot] = value
        elif isinstance(maker.backward, InParts):
            slots[slot] = waiting, value
        else:
            slots[slot] = added(waiting, value)


def _spent(*_: Any) -> Any:
    raise RuntimeError(
        "backward: this graph's gradients were taken before and what they need is gone; "
        "compute the result again"
    )


def _accumulate(tensor: Tensor, gradient: Array | Rows) -> None:
    if not tensor.requires_grad:
        return
    _check_shape(tensor, gradient)
    if type(gradient) is type(tensor.grad) is np.ndarray:  # the usual case
        add_into(tensor.grad, gradient)
        return
    if tensor.keeps_rows:
        rows = gradient if isinstance(gradient, Rows) else Rows.all_of(gradient)
        tensor.grad = rows if tensor.grad is None else tensor.grad + rows
        return
    if isinstance(gradient, Rows) and tensor.grad is not None:
        add_to(tensor.grad, gradient.ids, gradient.values)
        return
    if isinstance(gradient, Rows):
        gradient = gradient.dense()
    if tensor.grad is None:
        tensor.grad = np.array(gradient, tensor.data.dtype)
    else:
        tensor.grad += gradient


def _check_shape(tensor: Tensor, gradient: Array | Rows) -> None:
    if gradient.shape != tensor.data.shape:
        raise ShapeError(
            f"backward: expected a gradient of shape {tensor.shape}, found {gradient.shape}"
        )


def wants_grad(value: Any) -> bool:
    """Return whether an input needs a gradient."""
    return isinstance(value, Tensor) and (value.requires_grad or value._node is not None)


def op(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function from arrays to (result, backward) into a differentiable operation.

    The function's positional arguments are arrays or None; settings are keyword-only. It returns
    its result, one array or a tuple of arrays, and a backward function. This maps the gradient of
    each result, which it must not change, to a tuple with the gradient of each positional argument.
    If one of several results does not reach the loss, its gradient is None. A returned gradient may
    be None, or a function without arguments, which is called only if the gradient is needed; the
    gradient of a table may be :class:`~daskdl.rows.Rows`.

    Examples
    --------
    >>> @op
    ... def square(x):
    ...     return x * x, lambda dy: (2 * x * dy,)
    >>> x = Tensor([1.0, 3.0], requires_grad=True)
    >>> square(x).backward([1.0, 1.0])
    >>> x.grad
    array([2., 6.])
    """

    # Operations of a notebook are pickled by value with the globals that they name: so name
    # functions of this module here, not its state.
    @functools.wraps(function)
    def operation(*inputs: Any, **settings: Any) -> Any:
        recorded, wanted = recording(), False
        evaluation = None if recorded else evaluated(function, inputs, settings)
        if evaluation is not None:
            return evaluation
        arrays: list[Any] = []
        sources: list[Source] = []
        for value in inputs:
            source: Source = None
            if isinstance(value, Tensor):
                arrays.append(value.data)
                if recorded and value._node is not None:
                    source = value._node, value._slot
                elif recorded and value.requires_grad:
                    source = value
                wanted = wanted or source is not None
            else:
                arrays.append(value)
            sources.append(source)
        result, backward = function(*arrays, **settings)
        if isinstance(result, tuple):
            node = Node(sources, len(result), backward) if wanted else None
            results = tuple(_result(array, node, slot) for slot, array in enumerate(result))
        else:
            results = (_result(result, Node(sources, 1, backward) if wanted else None, 0),)
        watcher = watcher_of_operations()
        if watcher is not None:
            watcher(function, inputs, settings, results)
        return results if isinstance(result, tuple) else results[0]

    return operation


def _result(array: Array, node: Node | None, slot: int) -> Tensor:
    tensor = Tensor(array)
    tensor._node, tensor._slot = node, slot
    return tensor
