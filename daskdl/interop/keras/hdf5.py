"""Read HDF5 files of Keras as arrays by layer; nothing outside the file is read."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from daskdl.errors import ModelFileError, needed
from daskdl.interop.guard import LIBRARIES, damaged, reading
from daskdl.interop.torch_weights.tensors import widened
from daskdl.tensor import Array

#: Largest number of groups and datasets in a file, and depth of groups.
_MOST, _DEEPEST = 20_000, 20


class Weights:
    """Contents of a file: by layer name, its arrays by name, in the file's order.

    ``config`` describes the layers, if known; ``version`` is the major version of Keras.
    ``unnamed`` has the layers that are known by their group's name only: class and number.
    """

    def __init__(self) -> None:
        self.layers: dict[str, dict[str, Array]] = {}
        self.unnamed: set[str] = set()
        self.config: dict[str, Any] | None = None
        self.version = 2

    def named(self, name: str) -> list[Array]:
        """Return a layer's arrays in the file's order."""
        return list(self.layers.get(name, {}).values())


class _Reading:
    def __init__(self, size: int, where: str) -> None:
        self.where, self.remaining, self.seen = where, 2 * size + 1_000_000, 0

    def fail(self, sentence: str) -> ModelFileError:
        return ModelFileError(f"{self.where}: {sentence}")

    def child(self, group: Any, name: str) -> Any:
        """Return a member of a group; links to other places or files are refused."""
        import h5py

        self.seen += 1
        if self.seen > _MOST:
            raise self.fail(f"expected up to {_MOST} groups and datasets, found more")
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise self.fail(
                f"{name!r} is a link out of its place, which is not followed; save it as one file"
            )
        return group[name]

    def array(self, dataset: Any) -> Array:
        """Return a dataset's numbers; a ModelFileError if they are larger than the file allows."""
        kind, shape = dataset.dtype, dataset.shape
        brain = kind.itemsize == 2 and _text(dataset.attrs.get("dtype", "")) == "bfloat16"
        kind = np.dtype("<u2") if brain else kind
        if kind.kind not in "fiu" or shape is None or kind.itemsize > 8:
            raise damaged(
                self.where, f"{dataset.name}: expected numbers, found {kind} of shape {shape}"
            )
        if dataset.is_virtual or dataset.external:
            raise self.fail(
                f"{dataset.name}: its numbers lie in other files, which are not read"
                "; save it as one file"
            )
        self.remaining -= math.prod(shape) * kind.itemsize
        if self.remaining < 0 or len(shape) > 32:
            raise damaged(
                self.where, f"{dataset.name}: shape {shape} takes more than the file holds"
            )
        numbers = np.asarray(dataset[()])
        if brain:
            return widened(numbers.tobytes(), "BF16").reshape(shape)
        return numbers.astype(np.float32) if kind.itemsize == 2 and kind.kind == "f" else numbers

    def texts(self, attributes: Any, name: str) -> list[str]:
        """Return a list of texts; Keras splits long lists into several attributes."""
        if name in attributes:
            parts = [attributes[name]]
        else:
            parts = []
            while f"{name}{len(parts)}" in attributes and len(parts) < 1000:
                parts.append(attributes[f"{name}{len(parts)}"])
        return [_text(value) for part in parts for value in np.asarray(part).reshape(-1)]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


@contextmanager
def _opened(data: bytes, where: str) -> Iterator[Any]:
    with needed("Keras' files need the package h5py; pip install 'daskdl[keras]'"):
        import h5py
    with reading(where, "HDF5", damage=LIBRARIES), h5py.File(io.BytesIO(data), "r") as file:
        yield file


def read(data: bytes, where: str) -> Weights:
    """Return the contents of an HDF5 file of Keras; a ModelFileError if it is damaged."""
    weights, limits = Weights(), _Reading(len(data), where)
    with _opened(data, where) as file:
        if "model_config" in file.attrs:
            weights.config = parsed(_text(file.attrs["model_config"]), where)
        if "layer_names" in file.attrs or "layer_names0" in file.attrs:
            _old(limits, file, weights)
        elif "model_weights" in file:
            _old(limits, limits.child(file, "model_weights"), weights)
        elif "layers" in file:
            _new(limits, limits.child(file, "layers"), weights)
        else:
            raise ModelFileError(
                f"{where}: there are no layers of a Sequential or functional model of Keras in it; "
                "give what model.save wrote, as .h5 if the model is of another class"
            )
    return weights


def parsed(text: str, where: str) -> dict[str, Any]:
    """Return a JSON object as a dict."""
    with reading(where, "JSON"):
        content = json.loads(text)
    if not isinstance(content, dict):
        raise damaged(where, "its configuration is damaged: it is no object")
    return content


def _old(reading: _Reading, group: Any, weights: Weights) -> None:
    """Read the layout of Keras 1 and 2: attributes list the layers and their arrays in order."""
    version = str(_text(group.attrs.get("keras_version", "2"))).partition(".")[0]
    weights.version = int(version) if version.isdigit() else 2
    for name in reading.texts(group.attrs, "layer_names"):
        layer = reading.child(group, name)
        arrays = {}
        for key in reading.texts(layer.attrs, "weight_names"):
            member = layer
            for part in key.split("/"):
                member = reading.child(member, part)
            arrays[key] = reading.array(member)
        if arrays:
            weights.layers[name] = arrays


def _new(reading: _Reading, group: Any, weights: Weights) -> None:
    """Read the layout of Keras 3: a group per layer, named by class; an attribute has its name."""
    weights.version = 3
    for name in group:
        layer = reading.child(group, name)
        arrays: dict[str, Array] = {}
        _collect(reading, layer, "", arrays, 0)
        attrs = layer.get("vars", layer).attrs
        if "name" in attrs:
            weights.layers[_text(attrs["name"])] = arrays
        elif arrays:
            weights.layers.setdefault(name, arrays)
            weights.unnamed.add(name)


def _collect(
    reading: _Reading, group: Any, path: str, arrays: dict[str, Array], depth: int
) -> None:
    import h5py

    if depth > _DEEPEST:
        raise damaged(reading.where, f"groups lie in each other deeper than {_DEEPEST} times")
    names = sorted(group, key=lambda n: (n not in ("forward_layer", "vars"), n))
    if path.endswith("vars/"):
        names = sorted(names, key=lambda n: (int(n) if n.isdigit() else 1 << 30, n))
    for name in names:
        member = reading.child(group, name)
        if isinstance(member, h5py.Group):
            if not name.startswith("seed_generator"):
                _collect(reading, member, f"{path}{name}/", arrays, depth + 1)
        else:
            arrays[f"{path}{name}"] = reading.array(member)
