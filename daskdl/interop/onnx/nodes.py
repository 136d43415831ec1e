"""Check, sort and rename nodes of ONNX files; read tensors after a check of their sizes."""

from __future__ import annotations

import collections
import functools
import math
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import ModelFileError
from daskdl.interop.building import attribute_name, channels_second
from daskdl.interop.guard import check_keys, damaged
from daskdl.nn.core.nodes import Node, Subgraph, names_of
from daskdl.nn.operators import KEYS
from daskdl.nn.operators.shapes import DTYPES, REFUSED
from daskdl.tensor import Array

#: Attributes of old versions, with the only supported value.
_ONLY = {"BatchNormalization.spatial": 1, "Scan.directions": 0}


@functools.cache
def _standard() -> dict[str, frozenset[str]]:
    """Return the attributes of each standard operator in all versions."""
    import onnx

    attributes: dict[str, set[str]] = collections.defaultdict(set)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            attributes[schema.name].update(schema.attributes)
    return {name: frozenset(names) for name, names in attributes.items()}


def check_attributes(node: Any, operator: str, where: str) -> None:
    """Refuse attributes that the operator does not have, and unsupported values of old ones."""
    where = f"{where}: node {node.name or next(iter(node.output), '')!r}, {operator}"
    known = KEYS[operator] if operator in KEYS else _standard().get(operator, frozenset())
    check_keys(where, {a.name: a for a in node.attribute}, known)
    for attribute in node.attribute:
        wanted = _ONLY.get(f"{operator}.{attribute.name}")
        values = list(attribute.ints) or [attribute.i]
        if wanted is not None and any(value != wanted for value in values):
            raise ModelFileError(
                f"{where}: {attribute.name}: expected {wanted}, found {values}; export the "
                "model for a newer version of the operator set"
            )


def in_order(nodes: list[Node], known: set[str]) -> list[Node]:
    """Return nodes so that each follows its inputs' nodes, otherwise in the file's order.

    Nodes with a cycle stay as they are; the graph refuses them.
    """
    makers = {name: i for i, node in enumerate(nodes) for name in node.outputs if name}
    order: dict[int, None] = {}
    stack, waiting = list(range(len(nodes)))[::-1], set()
    while stack:
        i = stack[-1]
        names = (n for n in names_of(nodes[i]) if n in makers and n not in known)
        earlier = [makers[n] for n in names if makers[n] not in order]
        if earlier and i in waiting:  # for itself
            return nodes
        if earlier:
            waiting.add(i)
            stack += earlier
        else:
            order[stack.pop()] = None
    return [nodes[i] for i in order]


def add_uses(nodes: Any, uses: dict[str, list[tuple[str, int]]]) -> None:
    """Add to each name the operators that read it, and the number of the input."""
    for node in nodes:
        for i, name in enumerate(node.inputs):
            if name:
                uses[name].append((node.operator, i))
        for _, value in node.attributes:
            if isinstance(value, Subgraph):
                add_uses(value.nodes, uses)
                for name in value.outputs:
                    uses[name].append(("", 0))


def is_filters(shape: tuple[int, ...], uses: list[tuple[str, int]]) -> bool:
    """Whether weights are the filters of convolutions only."""
    return len(shape) > 2 and all(op in ("Conv", "ConvTranspose") and i == 1 for op, i in uses)


def free_names(state: dict[str, Any], taken: set[str]) -> dict[str, str]:
    """Return names for parameters and buffers that hide no attributes of a Graph."""
    names, taken = {}, set(taken)
    for name in state:
        names[name] = attribute_name(name, taken)
        taken.add(names[name])
    return names


def with_names(node: Node, names: dict[str, str]) -> Node:
    """Return a node that reads values under other names."""
    attributes = []
    for name, value in node.attributes:
        if isinstance(value, Subgraph):
            inner = {k: v for k, v in names.items() if k not in value.inputs}
            value = value._replace(
                outputs=tuple(inner.get(n, n) for n in value.outputs),
                nodes=tuple(with_names(n, inner) for n in value.nodes),
            )
        attributes.append((name, value))
    inputs = tuple(names.get(n, n) for n in node.inputs)
    return Node(node.operator, inputs, node.outputs, tuple(attributes))


def images_in(inputs: list[Any], nodes: list[Node]) -> tuple[list[Any], list[Node]]:
    """Return inputs and nodes that take inputs of more than two axes with channels last."""
    taken, lead, names = [], [], {}
    for name, dtype, shape in inputs:
        if shape is None or len(shape) < 3:
            taken.append((name, dtype, shape))
            continue
        ndim = len(shape)
        names[name] = f"{name}/first"
        lead.append(channels_second(name, names[name], ndim))
        taken.append((name, dtype, (shape[0], *shape[2:], shape[1])))
    return taken, [*lead, *(with_names(node, names) for node in nodes)]


def dtype_of(number: int, where: str) -> np.dtype[Any]:
    """Return the dtype for ONNX's number; a ModelFileError for unsupported ones."""
    if number not in DTYPES:
        raise ModelFileError(
            f"{where}: numbers of type {REFUSED.get(number, number)} are not supported, "
            "but float32, float64, float16, integers of 8 to 64 bits and bool"
        )
    return np.dtype(DTYPES[number])


def shape_of(tensor: Any, where: str) -> tuple[int, ...]:
    """Return a tensor's shape; a ModelFileError for negative lengths and too large sizes."""
    shape = tuple(tensor.dims)
    if any(n < 0 for n in shape) or math.prod(shape) >= 1 << 48 or len(shape) > 32:
        raise damaged(where, f"expected lengths of 0 or more, found {shape[:32]}")
    return shape


def to_array(tensor: Any, folder: Path | None, where: str) -> Array:
    """Return a TensorProto's numbers, float16 as float32.

    External data must be in the file's ``folder``. Raises ModelFileError when type, shape and
    bytes do not match.
    """
    from onnx import numpy_helper

    where = f"{where}: tensor {tensor.name!r}"
    dtype, shape = _checked(tensor, folder, where)
    if tensor.data_location == 1:
        path, offset = _place(tensor, dtype, math.prod(shape), folder, where)
        with path.open("rb") as file:
            file.seek(offset)
            flat = np.fromfile(file, dtype.newbyteorder("<"), math.prod(shape))
    else:
        flat = numpy_helper.to_array(tensor).reshape(-1)
    if dtype == np.bool_ and flat.dtype == np.bool_:
        flat = flat.view(np.uint8) != 0
    wanted = np.dtype(np.float32) if dtype == np.float16 else dtype
    return flat.reshape(shape).astype(wanted, copy=False)


def checked_shape(tensor: Any, folder: Path | None, where: str) -> tuple[int, ...]:
    """Return a tensor's shape, after a check that the file has all its numbers.

    Without this check, a file could ask for arrays of any size. Arguments as in `to_array`.
    """
    return _checked(tensor, folder, f"{where}: tensor {tensor.name!r}")[1]


def _checked(tensor: Any, folder: Path | None, where: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return dtype and shape; a ModelFileError if the number of bytes differs."""
    from onnx.helper import tensor_dtype_to_field

    dtype, shape = dtype_of(tensor.data_type, where), shape_of(tensor, where)
    count = math.prod(shape)
    if tensor.data_location == 1:
        _place(tensor, dtype, count, folder, where)
    elif tensor.HasField("raw_data"):
        if len(tensor.raw_data) != count * dtype.itemsize:
            raise damaged(
                where,
                f"expected {count * dtype.itemsize} bytes for shape {shape} of {dtype}, "
                f"found {len(tensor.raw_data)}",
            )
    elif len(numbers := getattr(tensor, tensor_dtype_to_field(tensor.data_type))) != count:
        raise damaged(where, f"expected {count} numbers for shape {shape}, found {len(numbers)}")
    return dtype, shape


def _place(
    tensor: Any, dtype: np.dtype[Any], count: int, folder: Path | None, where: str
) -> tuple[Path, int]:
    """Return the path and offset of external data.

    Raises ModelFileError for a path outside the model's folder, or too few bytes.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None or not location:
        raise ModelFileError(
            f"{where}: its numbers are in another file, which is not given"
            "; load the model by its path, with that file beside it"
        )
    home = folder.resolve()
    path = (home / location).resolve()
    if not path.is_relative_to(home) or path == home:
        raise ModelFileError(
            f"{where}: expected a file in the model's own folder, found {location!r}"
            "; move it there, and export the model again"
        )
    try:
        offset, length = int(entries.get("offset", 0)), count * dtype.itemsize
        stated = int(entries.get("length", length))
    except ValueError:
        raise damaged(where, "expected numbers as offset and length") from None
    if not path.is_file():
        raise ModelFileError(
            f"{where}: there is no file {location!r} beside the model; copy it there"
        )
    if stated != length or offset < 0 or offset + length > path.stat().st_size:
        raise ModelFileError(
            f"{where}: expected {length} bytes at {offset} of {location!r}, which has "
            f"{path.stat().st_size}; the file says {stated}"
        )
    return path, offset
