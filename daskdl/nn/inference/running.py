"""Running: passes of one model in inference, by programs where what it does allows them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from daskdl.kernels.runtime.memory import block_of
from daskdl.kernels.runtime.precision import precision
from daskdl.kernels.runtime.threads import threads
from daskdl.nn.core.state import arrays
from daskdl.nn.core.structure import Structure
from daskdl.nn.inference.passes import optimized
from daskdl.nn.inference.prepared import Prepared
from daskdl.nn.inference.program import Layout, Program, Recorder, is_pure
from daskdl.tensor import Array

#: Shapes of input for which a program is kept.
SHAPES = 16


class Inference:
    """Prepared weights and a program for each shape of input, which all passes of a model share.

    Several threads may use it at a time. The weights must not change while they do. Copies of the
    model may run, too, whose parameters and buffers are the same arrays.
    """

    def __init__(self, model: Structure) -> None:
        arrays = [tensor.data for _, tensor in model.held()]
        arrays += [array for array in constants_of(model) if isinstance(array, np.ndarray)]
        self.prepared, self._pure = Prepared(arrays), is_pure(model)
        self._programs: dict[Any, Program | None] = {}
        self._local = threading.local()

    def run(self, model: Any, x: Array) -> Any:
        """Return the results of ``model(x)``, a tuple of arrays; the model is in inference.

        A mapping is returned as it is.
        """
        key = x.shape, x.dtype, precision()
        program = self._programs.get(key)
        if program is not None:
            return tuple(program(np.ascontiguousarray(x), self._layout(key, program.n_bytes)))
        if not self._pure or key in self._programs or x.dtype != np.float32:
            with optimized(self.prepared):
                return _flat(model(x))
        x = np.ascontiguousarray(x)
        recorder = Recorder(self.prepared, x)
        with optimized(self.prepared, recorder):
            results = _flat(model(x))
        if len(self._programs) < SHAPES:
            named = isinstance(results, Mapping)
            self._programs[key] = None if named else recorder.program(results)
        return results

    def _layout(self, key: Any, n_bytes: int) -> Layout:
        """Return a program's arrays in this thread's memory for results, which it keeps."""
        local, full_key = self._local, (key, threads())
        room: Array | None = getattr(local, "room", None)
        if room is None or room.size < n_bytes:
            local.layouts, local.room = {}, None  # let go of the old one first
            del room
            local.room = block_of(n_bytes)
        layout: Layout | None = local.layouts.get(full_key)
        if layout is None:
            layout = local.layouts[full_key] = Layout(local.room)
        return layout


def _flat(result: Any) -> Any:
    return result if isinstance(result, Mapping) else tuple(arrays(result))


def constants_of(model: Structure) -> list[Any]:
    """Return the arrays of a model that are neither parameters nor buffers, such as a graph's."""
    return [
        array
        for _, module in model.modules()
        for name in ("constants", "made")
        for array in getattr(module, name, {}).values()
    ]
