"""Programs: the recorded kernels of a pass, which run again without the model's Python code.

Python takes some hundred microseconds for each layer, as long as the kernels of a small network. A
program records a pass as calls of functions with arrays. Every array argument must be a part of the
input, of an earlier result or of the model's own memory. If one is not, or if a setting holds an
array, the model has computed numbers outside of these calls, and there is no program.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from daskdl.kernels.runtime.memory import ALIGNMENT, plan
from daskdl.nn.core.structure import Structure
from daskdl.nn.inference.prepared import Prepared
from daskdl.tensor import Array


def is_pure(model: Structure) -> bool:
    """Return whether the input's shape alone decides which operations a model computes.

    Each class declares it (:attr:`Module.pure`); a forward that was set on one object does not
    count.
    """
    return all(module.pure and "forward" not in vars(module) for _, module in model.modules())


class View(NamedTuple):
    """An array in the memory of a result: the result, the offset and the layout."""

    slot: int
    shape: tuple[int, ...]
    dtype: Any
    offset: int
    strides: tuple[int, ...]


class Step(NamedTuple):
    """One call: its function, arguments (Views or values), settings and results.

    ``orders`` has the order of each result's axes in memory, ``ended`` the slots of results that
    are no longer needed.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    settings: dict[str, Any]
    slot: int
    orders: tuple[tuple[int, ...] | None, ...]
    several: bool
    ended: tuple[int, ...] = ()


class Work(NamedTuple):
    """A step whose arguments and result are the same arrays in every run, bound once."""

    run: Callable[[], object]
    result: Array


class Layout:
    """Places of a program's arrays in one block of memory, learned in the first run.

    ``room``, uint8, has at least the program's ``n_bytes``; nothing else may use it during a run.
    ``works`` have the steps' numbers as keys; ``slots`` are results at their places in the room.
    """

    def __init__(self, room: Array) -> None:
        self.room, self.start, self.fresh = room, _address(room), True
        self.works: dict[int, Work] = {}
        self.slots: set[int] = set()

    def learn(self, i: int, step: Step, place: Any, arrays: list[Any], values: list[Any]) -> None:
        """Note the place of a step's result; bind the step if all its arrays stay in place."""
        result = values[step.slot]
        if place is None or _address(result) != self.start + place[0]:
            return
        self.slots.add(step.slot)
        made = getattr(step.function, "work_of", None)
        inputs = {argument.slot for argument in step.arguments if type(argument) is View}
        if made is not None and not step.settings and inputs <= self.slots:
            order = step.orders[0]
            back = result if order is None else result.transpose(np.argsort(order))
            self.works[i] = Work(made(back, *arrays), result)

    def holds(self, step: Step, place: Any, values: list[Any]) -> bool:
        """Return whether a result is at its place of the first run."""
        return step.slot not in self.slots or _address(values[step.slot]) == self.start + place[0]


class Program:
    """Steps for one shape of input, with a place for each result except the outputs.

    Results that are not needed at the same time share places, so that a pass writes to memory that
    is still in a cache; other memory takes twice as long. All places take ``n_bytes``.
    """

    def __init__(
        self, steps: Sequence[Step], outputs: Sequence[View], slots: int, sizes: Sequence[int]
    ) -> None:
        self.steps, self.outputs, self.slots = steps, outputs, slots
        output_slots = {view.slot for view in outputs}
        self.places, self.n_bytes = _places(steps, output_slots, sizes)

    def __call__(self, x: Array, layout: Layout) -> list[Array]:
        """Return the results for an input (C-contiguous), with the layout's number of threads."""
        slots: list[Any] = [None] * self.slots
        slots[0] = x
        fresh, works = layout.fresh, layout.works
        for i, (step, place) in enumerate(zip(self.steps, self.places, strict=True)):
            work = None if fresh else works.get(i)
            if work is not None:
                work.run()
                slots[step.slot] = work.result
                continue
            function, arguments, settings, slot, orders, several, ended = step
            actual = [_at(slots, a) if type(a) is View else a for a in arguments]
            plan(None if place is None else layout.room[place[0] : place[1]])
            result = function(*actual, **settings)
            for j, order in enumerate(orders):
                array = result[j] if several else result
                slots[slot + j] = array if order is None else array.transpose(order)
            if fresh:
                layout.learn(i, step, place, actual, slots)
            elif not layout.holds(step, place, slots):
                works = {}
            for old in ended:
                slots[old] = None
        plan(None)
        layout.fresh = False
        return [_at(slots, view) for view in self.outputs]


def _places(
    steps: Sequence[Step], output_slots: set[int], sizes: Sequence[int]
) -> tuple[list[tuple[int, int] | None], int]:
    """Return the offset of each step's result (the lowest free one) and the number of bytes."""
    live: dict[int, tuple[int, int]] = {}
    offsets: list[tuple[int, int] | None] = []
    for step in steps:
        place = None
        if step.slot not in output_slots and not step.several:
            start, need = 0, sizes[step.slot]
            for begin, end in sorted(live.values()):
                if start + need <= begin:
                    break
                start = max(start, -(-end // ALIGNMENT) * ALIGNMENT)
            place = live[step.slot] = start, start + need
        offsets.append(place)
        for slot in step.ended:
            live.pop(slot, None)
    return offsets, max((place[1] for place in offsets if place is not None), default=0)


def _at(values: list[Any], view: View) -> Array:
    slot, shape, dtype, offset, strides = view
    array: Array = values[slot]
    if strides == array.strides and shape == array.shape and not offset:
        return array
    return np.ndarray(shape, dtype, array, offset, strides)


class Recorder:
    """Records a program during a pass over x, C-contiguous.

    ``prepared`` knows the model's own memory.
    """

    def __init__(self, prepared: Prepared, x: Array) -> None:
        self.prepared, self.failed = prepared, False
        self._steps: list[Step] = []
        #: Address, bytes and owner of the memory, which is used again once the owner is deleted.
        self._places: list[tuple[int, int, weakref.ref[Array]]] = []
        self._put(x)

    def call(self, function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        """Call a function of arrays, and record it."""
        result = function(*arguments, **settings)
        several = isinstance(result, tuple)
        results = result if several else (result,)
        if self.failed or all(self._is_view(array) for array in results):
            return result  # a view is found by its address
        placed = tuple(self._place(a) for a in arguments)
        orders = [memory_order(array) for array in results]
        self.failed |= any(map(_holds_array, settings.values())) or None in orders
        if self.failed:
            return result
        reordered = tuple(None if o == tuple(range(len(o))) else o for o in orders if o is not None)
        self._steps.append(Step(function, placed, settings, len(self._places), reordered, several))
        for array in results:
            self._put(array)
        return result

    def program(self, outputs: Sequence[Array]) -> Program | None:
        """Return the program; None if the pass cannot be recorded."""
        views = [self._place(array) for array in outputs]
        if self.failed or not all(isinstance(view, View) for view in views):
            return None
        last = {
            argument.slot: i
            for i, step in enumerate(self._steps)
            for argument in step.arguments
            if isinstance(argument, View)
        }
        output_slots = {0, *(view.slot for view in views)}
        ended: list[list[int]] = [[] for _ in self._steps]
        for slot, i in last.items():
            if slot not in output_slots:
                ended[i].append(slot)
        steps = [step._replace(ended=tuple(e)) for step, e in zip(self._steps, ended, strict=True)]
        sizes = [size for _, size, _ in self._places]
        return Program(steps, views, len(self._places), sizes)

    def _put(self, array: Array) -> None:
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        self._places.append((_address(array), array.nbytes, weakref.ref(owner)))

    def _find(self, array: Array) -> tuple[int, int] | None:
        """Return the slot of the result whose memory holds an array, and its offset in bytes."""
        # The whole array must lie there: the last step of a sequence is a result too, and a
        # reversed array starts there and extends beyond it.
        low, high = np.lib.array_utils.byte_bounds(array)
        for slot in range(len(self._places) - 1, -1, -1):
            begin, size, owner = self._places[slot]
            if begin <= low and high <= begin + size and owner() is not None:
                return slot, _address(array) - begin
        return None

    def _is_view(self, array: Any) -> bool:
        if not isinstance(array, np.ndarray) or not array.size:
            return False
        return self._find(array) is not None or self.prepared.key(array) is not None

    def _place(self, argument: Any) -> Any:
        if not isinstance(argument, np.ndarray):
            self.failed |= _holds_array(argument)
            return argument
        address = self._find(argument) if argument.size else None
        if address is not None:
            slot, offset = address
            return View(slot, argument.shape, argument.dtype, offset, argument.strides)
        # In a pure model, integers and bools follow from shapes alone.
        self.failed |= argument.dtype.kind == "f" and self.prepared.key(argument) is None
        return argument


def _address(array: Array) -> int:
    return array.__array_interface__["data"][0]


def _holds_array(value: Any) -> bool:
    if type(value) in (tuple, list):
        return any(map(_holds_array, value))
    return isinstance(value, np.ndarray)


def memory_order(array: Any) -> tuple[int, ...] | None:
    """Return the order of axes in which an array is contiguous; None without one."""
    if not isinstance(array, np.ndarray) or not array.size:
        return None
    if array.flags.c_contiguous:
        return tuple(range(array.ndim))
    order = tuple(sorted(range(array.ndim), key=lambda i: -array.strides[i]))
    return order if array.transpose(order).flags.c_contiguous else None
