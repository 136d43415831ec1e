"""Read Keras models as :class:`daskdl.nn.Graph`, and their weights as arrays."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from daskdl.errors import ModelFileError
from daskdl.interop.building import LastBuilder, Value
from daskdl.interop.guard import LIBRARIES, check_supported, damaged, existing, reading
from daskdl.interop.keras import composed, hdf5, learned, plain
from daskdl.interop.keras.hdf5 import Weights
from daskdl.interop.keras.layers import TABLE, Layer
from daskdl.interop.keras.topology import Place, Step, Topology, numbered, topology
from daskdl.nn.core.graph import Graph
from daskdl.tensor import Array

#: Importing these fills the table of layers.
FAMILIES = (composed, learned, plain)


def load(path: str | Path) -> Graph:
    """Read a Keras model as a graph; it predicts, trains and saves as any module does.

    Images are (N, H, W, C), as in Keras. Weights become parameters under the names of layers;
    running statistics of batch normalisation become buffers. Inputs keep the model's names if it
    has any; named results are sorted by name.

    Parameters
    ----------
    path : path
        ``.keras``, or an ``.h5`` with a whole model.

    Raises
    ------
    ModelFileError
        When the file is missing, damaged, has layers that are not supported or weights only.
    MissingExtraError
        Without the package ``h5py``, which ``pip install 'daskdl[keras]'`` brings.
    """
    path = existing(path, "file of Keras")
    return from_bytes(path.read_bytes(), str(path)).eval()


def read(path: str | Path) -> dict[str, Array]:
    """Read weights as arrays by "layer/weight", in Keras's layouts and the file's order.

    Raises
    ------
    ModelFileError, MissingExtraError
        As in :func:`load`.
    """
    path = existing(path, "file of Keras")
    weights = weights_of(path.read_bytes(), str(path))
    by_name = {}
    for layer, arrays in weights.layers.items():
        short = _flat(arrays)
        for name, array in arrays.items():
            last = name.rpartition("/")[2].removesuffix(":0") if short else name
            by_name[f"{layer}/{last}"] = array
    return by_name


def _flat(arrays: dict[str, Array]) -> bool:
    """Whether the last parts of the names are distinct."""
    return len({name.rpartition("/")[2] for name in arrays}) == len(arrays)


def weights_of(data: bytes, where: str) -> Weights:
    """Return the contents of an HDF5 or ``.keras`` file."""
    if not data.startswith(b"PK\x03\x04"):
        return hdf5.read(data, where)
    config, inner = _unzipped(data, where)
    weights = hdf5.read(inner, where)
    weights.config, weights.version = hdf5.parsed(config.decode("utf-8", "replace"), where), 3
    return weights


def _unzipped(data: bytes, where: str) -> tuple[bytes, bytes]:
    """Return the configuration and the weights of a ``.keras``."""
    budget = 2 * len(data) + 1_000_000
    members = []
    with reading(where, "zip file", damage=LIBRARIES), zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in ("config.json", "model.weights.h5"):
            if name not in archive.namelist():
                raise ModelFileError(
                    f"{where}: expected a .keras file, with {name} in it; give model.save's"
                )
            info = archive.getinfo(name)
            budget -= info.file_size
            if budget < 0 or info.flag_bits & 1:
                raise ModelFileError(f"{where}: {name} has {info.file_size} bytes, too many")
            members.append(archive.read(info))
    return members[0], members[1]


def from_bytes(data: bytes, where: str) -> Graph:
    """Read the bytes of a model; ``where`` names it in errors."""
    weights = weights_of(data, where)
    if weights.config is None:
        raise ModelFileError(
            f"{where}: it has weights only, not what the layers are; build these in daskdl, then "
            "interop.keras.load_weights(model, path)"
        )
    with reading(where):
        return _graph(topology(weights.config, where), weights, where)


def _graph(layout: Topology, weights: Weights, where: str) -> Graph:
    places = ((step.kind, f"layer {step.name!r}") for step in layout.steps)
    advice = "docs/interop.md lists those that are; export the model as ONNX"
    check_supported(where, "layers", places, TABLE.keys() | {"InputLayer"}, advice)
    build = LastBuilder()
    arrays = _by_layer(layout, weights, where)
    values: dict[tuple[str, int], list[Value]] = {}
    masks: dict[tuple[str, int], str | None] = {}
    shared: dict[str, str] = {}
    names = {place[0]: key for key, place in layout.inputs.items() if isinstance(key, str)}
    for step in layout.steps:
        if step.kind == "InputLayer":
            name = names.get(step.name, step.name)
            values[step.name, step.call] = [_input(build, step, name, where)]
            continue
        inputs = [_value(values, place, where) for place in step.reads]
        of_inputs = {masks.get(place[:2], "") for place in step.reads} or {""}
        if step.masked:
            of_inputs = {inputs.pop().name}
        layer = Layer(
            step, build, inputs, arrays.get(step.name, {}), weights.version, where, shared,
            of_inputs.pop() if len(of_inputs) == 1 else None,
        )  # fmt: skip
        result = TABLE[step.kind](layer)
        values[step.name, step.call] = result if isinstance(result, list) else [result]
        masks[step.name, step.call] = layer.mask
    outputs = [_value(values, place, where) for place in layout.outputs.values()]
    order = {_value(values, place, where).name: i for i, place in enumerate(layout.inputs.values())}
    build.inputs.sort(key=lambda parts: order.get(parts[0], len(order)))
    return build.graph(build.last(value).name for value in outputs)


def _value(values: dict[tuple[str, int], list[Value]], place: Place, where: str) -> Value:
    results = values[place[0], place[1]]
    if place[2] >= len(results):
        raise damaged(where, f"layer {place[0]!r} has no result {place[2]}")
    return results[place[2]]


def _input(build: LastBuilder, step: Step, name: str, where: str) -> Value:
    shape = step.config.get("batch_shape") or step.config.get("batch_input_shape")
    dtype = step.config.get("dtype", "float32")
    if shape is None:
        return Value(build.input(name, None), None)
    if not isinstance(shape, list) or not 1 <= len(shape) <= 8:
        raise ModelFileError(
            f"{where}: input {step.name!r}: expected a shape; save it with the shape of its input"
        )
    if not all(n is None or (type(n) is int and n >= 0) for n in shape):
        raise ModelFileError(
            f"{where}: input {step.name!r}: expected lengths, found {shape}"
            "; save it with the shape of its input"
        )
    # Many files declare ids of words as float32; integers are accepted, and converted to floats.
    kind = dtype if dtype in ("int32", "int64", "uint8") else "float32"
    return Value(build.input(name, (None, *shape[1:]), kind), len(shape))


def _by_layer(layout: Topology, weights: Weights, where: str) -> dict[str, dict[str, Array]]:
    """Return the arrays of each layer by name, by its name."""
    steps = {step.name: step for step in layout.steps}
    owners = dict.fromkeys(step.owner for step in layout.steps)
    # Keras 3 names groups by class and number, in the order of layers; a layer may have the same
    # name as another's group.
    groups = dict(zip(owners, numbered([layout.kinds[name] for name in owners]), strict=True))
    result = {}
    for name, step in steps.items():
        group = groups[step.owner]
        inside = weights.layers.get(group if group in weights.unnamed else step.owner, {})
        if step.group and inside and not any(key.startswith("layers/") for key in inside):
            # Keras 2 stores weights of nested models flat, under the names of the layers.
            short = name.removeprefix(f"{step.owner}/").rpartition("/")[2]
            same = [
                n for n, s in steps.items() if s.owner == step.owner and n.endswith(f"/{short}")
            ]
            if len(same) > 1:
                raise ModelFileError(
                    f"{where}: models in the model have several layers called {short!r}; save it "
                    "as .keras"
                )
            result[name] = {key: a for key, a in inside.items() if short in key.split("/")}
        else:
            lead = f"{step.group}/" if step.group else ""
            result[name] = {key: a for key, a in inside.items() if key.startswith(lead)}
    return result
