"""Read modules of Torch7's ``nn`` as :class:`daskdl.nn.Graph`."""

from __future__ import annotations

from pathlib import Path

from daskdl.errors import ModelFileError
from daskdl.interop.building import Builder, Value
from daskdl.interop.guard import check_supported, damaged, existing, reading
from daskdl.interop.torch7 import layers
from daskdl.interop.torch7.net import TABLE, Module
from daskdl.interop.torch7.reader import Object, from_bytes
from daskdl.nn.core.graph import Graph

#: Importing these fills the table of modules.
FAMILIES = (layers,)


def load(path: str | Path, *, channels_last: bool = False) -> Graph:
    """Read a network of Torch7 as a graph; it predicts, trains and saves as any module does.

    Parameters
    ----------
    path : path
        A ``.t7`` of a module, or of a table that has one as ``model`` or ``net``.
    channels_last : bool
        Whether inputs and outputs are images (N, H, W, C), as in the rest of daskdl; by default
        (N, C, H, W), as in Torch7.

    Raises
    ------
    ModelFileError
        When the file is missing, damaged, or has functions or modules that are not supported.
    """
    path = existing(path, "file of Torch7")
    return graph_of(path.read_bytes(), str(path), channels_last).eval()


def graph_of(data: bytes, where: str, channels_last: bool = False) -> Graph:
    """Read the bytes of a network; ``where`` names it in errors."""
    content = from_bytes(data, where)
    if isinstance(content, dict):
        content = next(
            (content[k] for k in ("model", "net", "network", 1) if k in content), content
        )
    if not isinstance(content, Object):
        raise ModelFileError(
            f"{where}: expected a module, found {type(content).__name__}; interop.torch7.read "
            "gives plain data"
        )
    with reading(where):
        return _graph(content, where, channels_last)


def _graph(root: Object, where: str, channels_last: bool) -> Graph:
    module = Module(root, Builder(), where)
    places = ((m.kind, f"at {m.path!r}") for m in module.walk())
    advice = "take them out of the network before it is saved"
    check_supported(where, "modules", places, TABLE, advice)
    shape = module.input_shape()
    build = module.build
    images = shape is None or len(shape) == 4
    x = build.input("x", shape, turned=channels_last and images)
    values = module.run(Value(x, 4 if shape is None else len(shape)))
    listed_values = values if isinstance(values, list) else [values]
    if not all(isinstance(v, Value) for v in listed_values):
        raise ModelFileError(f"{where}: its results are tables in tables")
    outputs = build.results(listed_values, channels_last)
    if any(name == "x" for name in outputs):
        raise damaged(where, "the network computes nothing")
    return build.graph(outputs)
