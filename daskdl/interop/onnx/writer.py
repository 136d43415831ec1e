"""Write models as ONNX files: graphs directly, other models by their operations in two runs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, needed
from daskdl.files import replacing
from daskdl.interop.building import Value
from daskdl.interop.onnx import images, int8, moving, zoo
from daskdl.interop.onnx.emitter import Emitter, Step, Trace, traces
from daskdl.interop.onnx.graphs import graph_model, model_of
from daskdl.interop.onnx.operations import WRITERS
from daskdl.nn.core.arguments import parts_of
from daskdl.nn.core.graph import Graph
from daskdl.nn.core.modelfile import checked_target
from daskdl.nn.core.module import Module
from daskdl.nn.quantized import Quantized
from daskdl.tensor import Tensor

#: Version of the operator set in written files.
OPSET = 18
#: Importing these fills the table of writers.
TABLES = (images, int8, moving)


def save(
    model: Module,
    path: str | Path,
    input_shape: Sequence[int] | Sequence[Sequence[int]] | Mapping[str, Sequence[int]] = (),
    dtype: str | Sequence[str] | Mapping[str, str] = "float32",
    *,
    channels_first: bool = False,
) -> None:
    """Write a model as ONNX, in inference, for batches of any size.

    A :class:`daskdl.nn.Graph` is written directly. Any other module is run twice, on random samples
    in batches of two sizes: its operations of daskdl become nodes. Lengths that grow with the batch
    are computed from the input's shape.

    Parameters
    ----------
    model : Module
    path : path
        An existing file is replaced only by a complete one.
    input_shape : sequence of int, or a sequence or mapping of them for several inputs
        Shape of one sample, without the batch axis; not needed for a Graph. The names of a mapping
        become the names of the inputs in the file.
    dtype : str, or one for each input
        Inputs that a mapping such as ``{"ids": "int64"}`` leaves out are float32.
    channels_first : bool
        Whether images are inputs (N, C, H, W) in the file; by default (N, H, W, C), as in daskdl.

    Raises
    ------
    SettingsError
        When an operation of the model cannot be written as ONNX, or its operations depend on the
        values of its inputs.
    MissingExtraError
        Without the package ``onnx``.
    """
    proto = to_proto(model, input_shape, dtype, channels_first=channels_first)
    path = checked_target(path, "model.onnx")
    with replacing(path) as temporary:
        temporary.write_bytes(proto.SerializeToString())


def to_proto(
    model: Module,
    input_shape: Sequence[int] | Sequence[Sequence[int]] | Mapping[str, Sequence[int]] = (),
    dtype: str | Sequence[str] | Mapping[str, str] = "float32",
    *,
    channels_first: bool = False,
) -> Any:
    """Return the ``onnx.ModelProto`` that :func:`save` writes."""
    with needed("ONNX files need the package onnx; pip install 'daskdl[onnx]'"):
        import onnx
    inner = model.model if isinstance(model, Quantized) else model
    if isinstance(inner, Graph):
        return graph_model(inner)
    if any(type(module).__name__ == "TorchModule" for _, module in model.modules()):
        raise SettingsError(
            f"{type(model).__name__}: expected layers of daskdl, found a module of PyTorch; "
            "torch.onnx.export(model.module, ...) writes it"
        )
    names = tuple(input_shape) if isinstance(input_shape, Mapping) else ()
    several = any(not isinstance(n, int) for n in parts_of(input_shape))
    shapes: list[Any] = parts_of(input_shape) if several else [input_shape]
    dtypes = _dtypes(dtype, names, len(shapes))
    emit = Emitter()
    writer = zoo.WRITERS.get(type(model).__name__)
    writing = _Writing(emit, model)
    if writer is not None and type(model).__module__.startswith("daskdl."):
        inputs, outputs = writer(emit, model, writing.names, shapes)
    else:
        inputs, outputs = writing.traced(
            traces(model, shapes, dtypes, names), dtypes, channels_first, names
        )
    int8.finish(emit)
    used = {name for node in emit.nodes for name in node.input} | {o.name for o in outputs}
    graph = onnx.helper.make_graph(
        emit.nodes,
        type(model).__name__,
        inputs,
        outputs,
        [onnx.numpy_helper.from_array(a, n) for n, a in emit.arrays.items() if n in used],
    )
    return model_of(graph, OPSET)


def _dtypes(dtype: Any, names: Sequence[str], count: int) -> list[str]:
    """Return the dtype of each input."""
    if isinstance(dtype, Mapping):
        if not dtype.keys() <= set(names):
            raise SettingsError(
                f"onnx, dtype: expected names of inputs, {list(names)}, found {list(dtype)}; "
                "give input_shape by the same names"
            )
        return [dtype.get(name, "float32") for name in names]
    dtypes = [dtype] * count if isinstance(dtype, str) else list(dtype)
    if len(dtypes) != count:
        raise SettingsError(
            f"onnx, dtype: expected one for each of {count} inputs, found {dtypes}; give as many"
        )
    return dtypes


class _Writing:
    """Values of one model, by the ids of tensors and arrays that hold them in each run."""

    def __init__(self, emit: Emitter, model: Module) -> None:
        self.emit, self.model = emit, model
        self.names: dict[str, Value] = {}
        self.known: tuple[dict[int, Value], dict[int, Value]] = ({}, {})
        for name, tensor in model.held():
            free = emit.free(name)
            emit.arrays[free] = tensor.data.copy()
            value = Value(free, tensor.ndim)
            self.names[name] = value
            for known in self.known:
                known[id(tensor)] = known[id(tensor.data)] = value

    def traced(
        self, runs: list[Trace], dtypes: Sequence[str], channels_first: bool, names: Sequence[str]
    ) -> tuple[list[Any], list[Any]]:
        """Write the operations of both runs; return the graph's inputs and outputs."""
        from onnx import helper

        emit, inputs = self.emit, []
        for i, (a, b) in enumerate(zip(*(run.inputs for run in runs), strict=True)):
            first = channels_first and a.ndim > 2
            name = emit.free(names[i] if names else "x" if len(dtypes) == 1 else f"x{i}")
            value = Value(name, a.ndim, first)
            for known, tensor in zip(self.known, (a, b), strict=True):
                known[id(tensor)] = known[id(tensor.data)] = value
            shape = np.moveaxis(a.data, -1, 1).shape if first else a.shape
            kind = helper.np_dtype_to_tensor_dtype(a.dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, ["N", *shape[1:]]))
            if emit.batch is None:
                emit.batch = emit.node("Shape", name, start=0, end=1)
        for one, other in zip(*(run.steps for run in runs), strict=True):
            self._step(one, other)
        outputs = []
        for i, (a, b) in enumerate(zip(*(run.outputs for run in runs), strict=True)):
            value = emit.last(self._value(a, b))
            called = runs[0].called
            name = emit.free(called[i] if called else "y" if len(runs[0].outputs) == 1 else f"y{i}")
            emit.nodes.append(helper.make_node("Identity", [value.name], [name]))
            shape = [n if n == m else "N" if n == runs[0].inputs[0].shape[0] else None
                     for n, m in zip(a.shape, b.shape, strict=True)]  # fmt: skip
            kind = helper.np_dtype_to_tensor_dtype(a.dtype)
            outputs.append(helper.make_tensor_value_info(name, kind, shape))
        return inputs, outputs

    def _step(self, one: Step, other: Step) -> None:
        write = WRITERS.get(one.name)
        if write is None:
            raise SettingsError(
                f"{type(self.model).__name__}: operation {one.name!r} cannot be written as ONNX; "
                f"those that can are {', '.join(sorted(WRITERS))}"
            )
        inputs = [
            None if a is None and b is None else self._value(a, b)
            for a, b in zip(one.inputs, other.inputs, strict=True)
        ]
        shapes = [(a.shape, b.shape) for a, b in zip(one.results, other.results, strict=True)]
        settings = dict(one.settings)
        if one.name != "reshape":
            for key, value in one.settings.items():
                if not _same(value, other.settings.get(key)):
                    raise SettingsError(
                        f"{type(self.model).__name__}: {key} of operation {one.name!r} depends on "
                        f"the samples: {value!r} and {other.settings[key]!r}; let forward make it "
                        "the same for all"
                    )
        if one.name in ("space_to_depth", "depth_to_space"):
            settings["given"] = tuple(np.shape(_data(s.inputs[0])) for s in (one, other))
        more = (one.name,) if len(inspect.signature(write).parameters) == 5 else ()
        written = write(self.emit, inputs, settings, shapes, *more)
        values = (
            written if isinstance(written, tuple) and not isinstance(written, Value) else (written,)
        )
        for known, step in zip(self.known, (one, other), strict=True):
            for tensor, value in zip(step.results, values, strict=True):
                known[id(tensor)] = value
                if value.rank:
                    known[id(tensor.data)] = value

    def _value(self, a: Any, b: Any) -> Value:
        """Return the value of an operation's input, ``a`` and ``b`` in the two runs."""
        first, second = self.known
        for key_a, key_b in ((id(a), id(b)), (id(_data(a)), id(_data(b)))):
            if key_a in first and key_b in second and first[key_a] == second[key_b]:
                return first[key_a]
        one, two = np.asarray(_data(a)), np.asarray(_data(b))
        one, two = (v.astype(np.float32) if v.dtype == np.float64 else v for v in (one, two))
        if _same(one, two):
            return Value(self.emit.constant(one), one.ndim)
        axes = tuple(
            i for i, (n, m) in enumerate(zip(one.shape, two.shape, strict=False)) if n != m
        )
        single = one[tuple(slice(0, 1) if i in axes else slice(None) for i in range(one.ndim))]
        if one.ndim == two.ndim and axes and all((v == single).all() for v in (one, two)):
            target = self.emit.shape((one.shape, two.shape))
            return Value(self.emit.node("Expand", single, target), one.ndim)
        raise SettingsError(
            f"{type(self.model).__name__}: an array of shape {one.shape} is computed of the "
            "samples by something else than operations of daskdl, which ONNX cannot have"
            "; use those of daskdl.ops"
        )


def _data(value: Any) -> Any:
    return value.data if isinstance(value, Tensor) else value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.shape(a) == np.shape(b) and bool(np.array_equal(a, b))
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and bool(a == b)
