"""Models of Keras as :class:`daskdl.nn.Graph`, and their weights as arrays."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

from daskdl.errors import ModelFileError
from daskdl.interop.channels import LastBuilder, Value
from daskdl.interop.guard import reading
from daskdl.interop.keras import hdf5, learned, plain, recurrent
from daskdl.interop.keras.hdf5 import Weights
from daskdl.interop.keras.layers import TABLE, Layer
from daskdl.interop.keras.topology import Step, Topology, topology
from daskdl.nn.graph import Graph
from daskdl.tensor import Array

#: They put their layers into the table when they are imported.
FAMILIES = (learned, plain, recurrent)


def load(path: str | Path) -> Graph:
    """Read a model of Keras as a graph that predicts, trains and is saved as any module.

    Images are (N, H, W, C), as in Keras. Weights become parameters under the names of layers,
    running statistics of batch normalisation buffers.

    Parameters
    ----------
    path : path
        ``.keras``, or an ``.h5`` that a whole model was saved as.

    Raises
    ------
    ModelFileError
        When the file is missing, damaged, has layers that are not supported or weights only.
    MissingExtraError
        Without the package ``h5py``, which ``pip install 'daskdl[keras]'`` brings.
    """
    path = _there(path)
    return from_bytes(path.read_bytes(), str(path))


def read(path: str | Path) -> dict[str, Array]:
    """Read weights as arrays by "layer/weight", in Keras' layouts and in the order of the file.

    Raises
    ------
    ModelFileError, MissingExtraError
        As of :func:`load`.
    """
    path = _there(path)
    weights = weights_of(path.read_bytes(), str(path))
    found = {}
    for layer, arrays in weights.layers.items():
        short = _flat(arrays)
        for name, array in arrays.items():
            last = name.rpartition("/")[2].removesuffix(":0") if short else name
            found[f"{layer}/{last}"] = array
    return found


def _flat(arrays: dict[str, Array]) -> bool:
    """Whether the last parts of the names are different ones."""
    return len({name.rpartition("/")[2] for name in arrays}) == len(arrays)


def _there(path: str | Path) -> Path:
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"{path}: there is no such file of Keras; check the path")
    return path


def weights_of(data: bytes, where: str) -> Weights:
    """Return what a file of either format holds, the layers in the model's order if it is known."""
    if not data.startswith(b"PK\x03\x04"):
        return hdf5.read(data, where)
    config, inner = _unzipped(data, where)
    weights = hdf5.read(inner, where)
    weights.config, weights.version = hdf5.parsed(config.decode("utf-8", "replace"), where), 3
    return weights


def _unzipped(data: bytes, where: str) -> tuple[bytes, bytes]:
    """Return the configuration and the weights of a ``.keras``."""
    left = 2 * len(data) + 1_000_000
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = []
            for name in ("config.json", "model.weights.h5"):
                info = archive.getinfo(name)
                left -= info.file_size
                if left < 0 or info.flag_bits & 1:
                    raise ModelFileError(f"{where}: {name} has {info.file_size} bytes, too many")
                found.append(archive.read(info))
    except ModelFileError:
        raise
    except KeyError as error:
        raise ModelFileError(
            f"{where}: expected a .keras file ({error.args[0]}); give what model.save wrote"
        ) from error
    except (
        EOFError, NotImplementedError, OSError, OverflowError, RuntimeError, ValueError,
        zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error,
    ) as error:  # fmt: skip
        sentence = " ".join(str(error).split())[:100]
        raise ModelFileError(
            f"{where}: a damaged zip file ({sentence}); copy or save it again"
        ) from error
    return found[0], found[1]


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


def _graph(found: Topology, weights: Weights, where: str) -> Graph:
    unknown = {
        s.kind: s.name for s in found.steps if s.kind not in TABLE and s.kind != "InputLayer"
    }
    if unknown:
        listed = "; ".join(f"{kind} (layer {name!r})" for kind, name in sorted(unknown.items()))
        raise ModelFileError(
            f"{where}: layers that are not supported: {listed}; functions and classes of one's own "
            "are not run"
        )
    build = LastBuilder()
    arrays = _by_layer(found, weights)
    values: dict[tuple[str, int], list[Value]] = {}
    held: dict[str, str] = {}
    for step in found.steps:
        if step.kind == "InputLayer":
            values[step.name, step.call] = [_input(build, step, where)]
            continue
        given = [_value(values, place, where) for place in step.given]
        layer = Layer(
            step.name, step.kind, step.config, build, given, arrays.get(step.name, []),
            weights.version, where, held,
        )  # fmt: skip
        result = TABLE[step.kind](layer)
        values[step.name, step.call] = result if isinstance(result, list) else [result]
    order = {_value(values, place, where).name: i for i, place in enumerate(found.inputs)}
    build.inputs.sort(key=lambda parts: order.get(parts[0], len(order)))
    return build.graph(build.last(_value(values, place, where)).name for place in found.outputs)


def _value(
    values: dict[tuple[str, int], list[Value]], place: tuple[str, int, int], where: str
) -> Value:
    results = values[place[0], place[1]]
    if place[2] >= len(results):
        raise ModelFileError(
            f"{where}: layer {place[0]!r} has no result {place[2]}; copy or save it again"
        )
    return results[place[2]]


def _input(build: LastBuilder, step: Step, where: str) -> Value:
    shape = step.config.get("batch_shape") or step.config.get("batch_input_shape")
    dtype = step.config.get("dtype", "float32")
    if shape is None:
        return Value(build.input(step.name, None), None)
    if not isinstance(shape, list) or not 1 <= len(shape) <= 8:
        raise ModelFileError(
            f"{where}: input {step.name!r}: expected a shape; save it with the shape of its input"
        )
    if not all(n is None or (type(n) is int and n >= 0) for n in shape):
        raise ModelFileError(
            f"{where}: input {step.name!r}: expected lengths, found {shape}"
            "; save it with the shape of its input"
        )
    # Numbers of words are float32 in many files; any integers are taken, and made floats.
    kind = dtype if dtype in ("int32", "int64", "uint8") else "float32"
    return Value(build.input(step.name, (None, *shape[1:]), kind), len(shape))


def _by_layer(found: Topology, weights: Weights) -> dict[str, list[Array]]:
    """Return the arrays of each layer, by its name."""
    names = list(dict.fromkeys(step.name for step in found.steps))
    if weights.version < 3 or all(n in names for n, a in weights.layers.items() if a):
        return {name: weights.named(name) for name in names}
    # Groups of Keras 3 that have no names are called by their classes, with a number.
    counts: dict[str, int] = {}
    result = {}
    kinds = {step.name: step.kind for step in found.steps}
    for name in names:
        base = _snake(kinds[name])
        n = counts.get(base, 0)
        counts[base] = n + 1
        group = f"{base}_{n}" if n else base
        result[name] = weights.named(name) or weights.named(group)
    return result


def _snake(name: Any) -> str:
    """Return a class's name as Keras calls its groups: "Conv2DTranspose" is "conv2d_transpose"."""
    name = re.sub(r"\W+", "", str(name))
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
