"""Pending: a result that is computed when its numbers are read, so that later steps can join."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from daskdl.kernels.int8.scale import Scale
from daskdl.tensor import Array, Tensor

#: Computes a result and the steps that have joined it.
Compute = Callable[["Joined"], Array]
#: Applies more joined steps to numbers.
Extend = Callable[["Array | Rounded", "Joined"], Array]


class Norm(NamedTuple):
    """A normalisation by fixed statistics, which may be folded into weights."""

    mean: Array
    variance: Array
    weight: Array | None
    bias: Array | None
    eps: float


class Rounded(NamedTuple):
    """A result that is kept as bytes, with their scale."""

    bytes: Array
    scale: Scale

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result in the order of its memory."""
        return self.bytes.shape

    def reshape(self, *shape: int) -> Rounded:
        """Return the result in another shape."""
        return self._replace(bytes=self.bytes.reshape(shape))


class Joined(NamedTuple):
    """Steps on a result before it is written, in this order."""

    norm: Norm | None = None
    bias: Array | None = None
    residual: Array | Rounded | None = None  # in the order of the result's memory
    low: float = -np.inf
    high: float = np.inf
    into: Scale | None = None  # scale of the bytes, if the result becomes bytes
    half: bool = False  # whether the result becomes bfloat16 numbers

    @property
    def limited(self) -> bool:
        """Whether limits apply, so that no other summand can join before them."""
        return self.low != -np.inf or self.high != np.inf

    @property
    def bare(self) -> bool:
        """Whether there are no steps."""
        parts = self.norm, self.bias, self.residual
        return all(part is None for part in parts) and not self.limited

    def beyond(self, before: Joined) -> Joined:
        """Return the steps that remain after the steps of ``before``."""
        return Joined(
            None if self.norm is before.norm else self.norm,
            None if self.bias is before.bias else self.bias,
            None if self.residual is before.residual else self.residual,
            self.low,
            self.high,
            self.into,
        )


class Pending(Tensor):
    """A tensor whose shape is known and whose numbers are not computed yet.

    A layer adds steps by :meth:`with_`: the new tensor replaces this one, and one kernel computes
    both. If another layer reads this one too, it is computed by itself, once, and the new tensor is
    computed from its numbers.

    ``compute`` takes the ``joined`` steps and returns the array of ``shape`` in memory's order,
    channels last; it is called once, or twice if a reader that rounds the numbers to bfloat16 is
    computed before one that does not. ``extend`` adds steps to a computed array. The tensor
    shows the axes of its memory in the order ``axes``. ``origin`` is the same result with another
    order of axes, computed once for both; ``before`` is the result that this one replaces.
    """

    __slots__ = (
        "_array", "_before", "_compute", "_extend", "_half", "_into", "_kind", "_origin",
        "_rounded", "_rounding", "_uses", "axes", "gives_bytes", "gives_half", "joined",
        "memory_shape", "source", "takes_bias",
    )  # fmt: skip

    def __init__(
        self,
        compute: Compute,
        extend: Extend,
        shape: tuple[int, ...],
        dtype: Any,
        joined: Joined = Joined(),  # noqa: B008
        axes: tuple[int, ...] | None = None,
        origin: Pending | None = None,
        before: Pending | None = None,
    ) -> None:
        self._compute: Compute | None = compute
        self._extend, self._origin, self._before, self._uses = extend, origin, before, 0
        self._array: Array | None = None
        self._into: Scale | None = None
        self._rounded: Rounded | None = None
        self._half: Array | None = None
        self._rounding = 0  # uses by readers that round the numbers to bfloat16
        self._kind = np.dtype(dtype)
        self.memory_shape, self.joined, self.axes = shape, joined, axes
        self.takes_bias = False  # whether a vector may join as Joined.bias
        self.gives_bytes = False  # whether Joined.into, and residuals of bytes, may join
        self.gives_half = False  # whether Joined.half may join
        self.source: Any = None  # the parts that it is made of, if rules need them
        self.grad, self.requires_grad, self._node, self._slot = None, False, None, 0

    @property
    def waiting(self) -> bool:
        """Whether it is not computed yet."""
        return self._compute is not None and (self._origin is None or self._origin.waiting)

    @property
    def data(self) -> Array:  # type: ignore[override]
        """The numbers, computed when they are first asked for."""
        self._work()
        if self._array is None:
            if self._origin is not None:
                numbers, self._origin = self._origin._memory(), None
            else:
                assert self._rounded is not None
                numbers = self._extend(self._rounded, Joined())
            self._array = numbers if self.axes is None else numbers.transpose(self.axes)
        return self._array

    def _work(self) -> None:
        """Compute the result if it is not computed yet."""
        if self._compute is None:
            return
        compute, self._compute = self._compute, None
        if self._origin is not None:
            self._origin._work()
            return
        numbers = self._numbers(compute)
        if self._into is not None:
            self._rounded = Rounded(numbers, self._into)
        else:
            self._array = numbers if self.axes is None else numbers.transpose(self.axes)

    def _numbers(self, compute: Compute) -> Array:
        """Return the numbers in memory's order, from an earlier result if others use that one."""
        before, self._before = self._replaced(), None
        joined, into = self.joined._replace(into=self._into), self._into
        if before is not None:
            return self._extend(before.numbers, joined.beyond(before.joined))
        if into is None or self.gives_bytes:
            return compute(joined)
        return self._extend(compute(self.joined), Joined(into=into))

    def round(self, scale: Scale) -> None:
        """Round the result to bytes when it is computed, unless it is computed or has a scale."""
        owner = self if self._origin is None else self._origin
        if owner.waiting and owner._into is None:
            owner._into = scale

    @property
    def scale(self) -> Scale | None:
        """The scale of the bytes that it is or will be kept as; None if it has none yet."""
        owner = self if self._origin is None else self._origin
        return owner._into if owner._rounded is None else owner._rounded.scale

    @property
    def rounded(self) -> Rounded | None:
        """The bytes in the memory's order, computed when first needed; None without them.

        They are kept, as :attr:`data` is.
        """
        if self._origin is not None:
            return self._origin.rounded
        if self._into is not None:
            self._work()
        return self._rounded

    def use_half(self) -> Pending:
        """Note one more use, by a reader that rounds the numbers to bfloat16; return the result."""
        (self if self._origin is None else self._origin)._rounding += 1
        return self.use()

    @property
    def half(self) -> Array | None:
        """The numbers in bfloat16, in the memory's order; None if some reader needs others.

        They are rounded when they are written: each reader would round them to the same bits.
        """
        owner = self if self._origin is None else self._origin
        fits = owner.gives_half and owner._rounding == owner._uses and owner._replaced() is None
        if fits and owner._half is None and owner._compute is not None:
            owner._keep(owner._compute(owner.joined._replace(half=True)))
        return owner._half

    def _keep(self, numbers: Array) -> None:
        if numbers.dtype == np.uint16:
            self._half = numbers  # and the way to compute others, which a later reader may need
            return
        self._compute = None
        self._array = numbers if self.axes is None else numbers.transpose(self.axes)

    @property
    def numbers(self) -> Array | Rounded:
        """The bytes if there are any, else the numbers, in the memory's order."""
        rounded = self.rounded
        return self._memory() if rounded is None else rounded

    def _replaced(self) -> Pending | None:
        """Return the last result that this one replaces and others use; None without one."""
        before = self._before
        # The successor is one use. A second use means that its own numbers are needed.
        while before is not None and before.waiting and before._uses < 2:
            before = before._before
        return before

    def alone(self) -> Pending | None:
        """Return the underlying result, if it is pending and has one reader at most."""
        origin = self if self._origin is None else self._origin
        mine = origin.waiting and origin._uses < 2 and origin._replaced() is None
        return origin if mine else None

    def use(self) -> Pending:
        """Note one more use of this result; return it."""
        (self if self._origin is None else self._origin)._uses += 1
        return self

    def _memory(self) -> Array:
        """Return the numbers in the memory's order, computed when first needed."""
        array = self.data
        if self.axes is not None:
            array = array.transpose(tuple(int(i) for i in np.argsort(self.axes)))
        return array

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        if self.axes is None:
            return self.memory_shape
        return tuple(self.memory_shape[i] for i in self.axes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the array."""
        return self._kind

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.memory_shape)

    def __len__(self) -> int:
        return self.shape[0]

    def with_(self, joined: Joined) -> Pending:
        """Return a tensor with more joined steps, which replaces this one."""
        before = self if self._origin is None else self._origin
        return self._like(joined, self.axes, before=before)

    def turned(self, axes: tuple[int, ...]) -> Pending:
        """Return this result with its axes in another order."""
        before = self.axes or tuple(range(self.ndim))
        order: tuple[int, ...] | None = tuple(before[i] for i in axes)
        if order == tuple(range(self.ndim)):
            order = None
        origin = self if self._origin is None else self._origin
        return self._like(self.joined, order, origin=origin)

    def _like(self, joined: Joined, axes: tuple[int, ...] | None, **more: Any) -> Pending:
        made = self._compute or _computed, self._extend, self.memory_shape, self._kind
        like = Pending(*made, joined, axes, **more)
        like.source, like.gives_bytes = self.source, self.gives_bytes
        like.gives_half = self.gives_half
        return like

    def in_memory_order(self, array: Array) -> Array | None:
        """Return an array of this tensor's shape in its memory's order.

        None if the array is not contiguous in that order.
        """
        if array.shape != self.shape or array.dtype != self._kind:
            return None
        if self.axes is not None:
            array = array.transpose(tuple(int(i) for i in np.argsort(self.axes)))
        return array if array.flags.carray else None


def kept(rounded: Rounded, extend: Extend, axes: tuple[int, ...] | None) -> Pending:
    """Return a result that is computed and kept as bytes."""
    axes = None if axes == tuple(range(len(rounded.shape))) else axes
    y = Pending(_computed, extend, rounded.shape, np.float32, axes=axes)
    y._compute, y._rounded, y.gives_bytes = None, rounded, True
    return y


def _computed(joined: Joined) -> Array:
    raise AssertionError("a view of a computed array is never computed itself")


def half_of(value: Any) -> Array | None:
    """Return the numbers of a pending result as they are in memory, in bfloat16, if it has them."""
    return value.half if isinstance(value, Pending) and value.axes is None else None


def used(value: Any) -> Any:
    """Return the value; mark it as needed if it is still pending."""
    return value.use() if isinstance(value, Pending) else value


def used_half(value: Any) -> Any:
    """Do :func:`used` for a reader that rounds the numbers to bfloat16."""
    return value.use_half() if isinstance(value, Pending) else value
