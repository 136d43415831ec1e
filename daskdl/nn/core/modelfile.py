"""The model file: one safetensors file, its configuration in the metadata; loading runs no code."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import DaskdlError, ModelFileError
from daskdl.files import replacing
from daskdl.names import nearest
from daskdl.nn.core.module import Module, take_over
from daskdl.nn.core.parameter import at_most
from daskdl.upper import UPPER
from daskdl.version import __version__

__all__ = ["load", "read_metadata", "save"]

FORMAT = "daskdl-1"
#: Key of the only metadata entry: safetensors writes several in a random order, but the same
#: model should give the same bytes.
KEY = "daskdl"
#: Prefix of the names of arrays that are arguments of modules, such as int8 weights of a graph.
ARRAY = "#array "
#: Errors of constructors for a header that is damaged or unknown.
_UNBUILDABLE = AttributeError, DaskdlError, MemoryError, RecursionError, TypeError, ValueError


class UnknownModuleError(ModelFileError):
    """A model file names a module whose code is not imported."""


def configuration(module: Module, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the name of the module's class and its constructor arguments as plain data.

    Arrays among the arguments are moved to ``arrays``; the plain data refers to them by name.
    """
    arguments, keywords = module._arguments
    return {
        "module": type(module).registered,
        "arguments": [_plain(module, value, arrays) for value in arguments],
        "keywords": {name: _plain(module, value, arrays) for name, value in keywords.items()},
    }


def _plain(owner: Module, value: Any, arrays: dict[str, Any]) -> Any:
    if isinstance(value, Module):
        return configuration(value, arrays)
    if isinstance(value, (list, tuple)):
        return [_plain(owner, item, arrays) for item in value]
    if isinstance(value, np.ndarray):
        arrays[f"{ARRAY}{len(arrays)}"] = np.ascontiguousarray(value)
        return {"array": f"{ARRAY}{len(arrays) - 1}"}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ModelFileError(
        f"{type(owner).__name__}: expected plain data or modules as arguments, found {value!r}; "
        "a model file can keep nothing else"
    )


def build(
    config: Any, path: str, arrays: Mapping[str, Any], unsaved: tuple[Any, ...] = ()
) -> Any:  # fmt: skip
    """Build the module that a :func:`configuration` describes, with new weights.

    ``unsaved`` are arguments of the outermost module that no file keeps.
    """
    if isinstance(config, list):
        return tuple(build(item, path, arrays) for item in config)
    if not isinstance(config, dict):
        return config
    if "array" in config:
        return arrays[config["array"]]
    name = config.get("module")
    made = _class_of(str(name))
    if made is None:
        raise UnknownModuleError(
            f"{path or 'model'}: no module named {name!r} is known; import the code that defines "
            f"it, or use one such as {', '.join(nearest(name, Module.registry))}"
        )
    arguments = [*unsaved, *(build(item, path, arrays) for item in config["arguments"])]
    keywords = {key: build(item, path, arrays) for key, item in config["keywords"].items()}
    try:
        return made(*arguments, **keywords)
    except DaskdlError:
        raise
    except Exception as error:  # constructors raise any error for wrong arguments
        raise ValueError(f"{name}: {error}") from error


def _class_of(name: str) -> type[Module] | None:
    """Return the class of a name in a file; None if it is not known.

    A user's class whose module has changed, or is missing in an older file, is found by its own
    name; of several classes the last one counts.
    """
    short = name.rpartition(".")[2]
    users = [c for key, c in Module.registry.items() if "." in key and c.__name__ == short]
    return Module.registry.get(name) or (users[-1] if users else None)


def save(model: Module, path: str | Path, metadata: dict[str, Any] | None = None) -> None:
    """Write a model; an existing file is replaced only by a complete one.

    Parameters
    ----------
    model : Module
        The classes of the model and of all its modules must be importable where it is loaded.
    path : path or URL
        By convention with the suffix ``.safetensors``; a URL is one of fsspec's, ``s3://...``.
    metadata : dict, optional
        Any JSON data; :func:`read_metadata` returns it.

    Raises
    ------
    ModelFileError
        When the folder does not exist or cannot be written, or an argument of a module is not plain
        data.

    Examples
    --------
    >>> save(nn.Linear(3, 2, seed=0), "layer.safetensors", {"by": "me"})
    >>> load("layer.safetensors")
    Linear(3, 2, seed=0)
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    if is_url(path):
        with sent(str(path)) as local:
            save(model, local, metadata)
        return
    path = checked_target(path, "model.safetensors")
    arrays = dict[str, Any]()
    header = {
        "format": FORMAT,
        "version": __version__,
        "model": configuration(model, arrays),
        "metadata": metadata or {},
    }
    try:
        take_over(model)
        with replacing(path) as temporary:
            temporary.touch()
            permissions = temporary.stat().st_mode  # safetensors lets nobody else read its file
            save_file({**model.state_dict(), **arrays}, temporary, {KEY: json.dumps(header)})
            temporary.chmod(permissions)
    except (SafetensorError, OSError) as error:
        raise ModelFileError(
            f"{path}: expected a place that can be written, found {error}; give another path, or "
            "see the folder's permissions and the space on its disk"
        ) from error


def checked_target(path: str | Path, example: str) -> Path:
    """Return the path of a file to write; raise a ModelFileError if it cannot be written."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ModelFileError(
            f"{path}: expected an existing folder, found no {path.parent}; make it first"
        )
    if path.is_dir():
        raise ModelFileError(
            f"{path}: expected the name of a file, found a folder; give one such as "
            f"{path / example}"
        )
    return path


def load(path: str | Path, module: Any = None) -> Module:
    """Read a model that :func:`save` wrote, from a path or a URL.

    Parameters
    ----------
    path : path or URL
    module : torch.nn.Module, optional
        For a file with the weights of a :class:`daskdl.torch.TorchModule`: your module, which gets
        the weights. The file does not contain it.

    Raises
    ------
    ModelFileError
        When the file is missing, damaged or of an unknown module; when a torch module is given for
        another kind of file, or missing for this kind.

    Examples
    --------
    >>> save(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), "net.safetensors")
    >>> load("net.safetensors").predict(np.zeros((4, 3), np.float32)).shape
    (4, 2)
    """
    header, tensors = _read(path, with_tensors=True)
    if module is not None:
        UPPER["torch"]()  # registers TorchModule
    description = header.get("model")
    of_torch = isinstance(description, dict) and description.get("module") == "TorchModule"
    if of_torch is (module is None):
        expected = "module=, the torch module of its weights," if of_torch else "no module="
        raise ModelFileError(
            f"{path}: expected {expected} found {type(module).__name__}; a file of a TorchModule "
            "holds weights only, and is loaded by daskdl.load(path, module=net)"
        )
    arguments = {name: tensors.pop(name) for name in list(tensors) if name.startswith(ARRAY)}
    for name, tensor in tensors.items():
        if tensor.dtype != np.float32 and not of_torch:  # torch's counters are integers
            raise ModelFileError(
                f"{path}: expected float32 numbers, as daskdl.save writes them, found {name!r} of "
                f"{tensor.dtype}; save the model again"
            )
    numbers = sum(tensor.size for tensor in tensors.values())
    if '"Quantized"' in json.dumps(header["model"]):
        numbers *= 5  # four int8 in each, and the float32 layers that they replace
    with at_most(numbers):
        model = _built(header, path, arguments, () if module is None else (module,))
    try:
        model.load_state_dict(tensors)
    except DaskdlError as error:
        raise ModelFileError(f"{path}: {error}") from error
    return model


def _built(
    header: dict[str, Any], path: str | Path, arrays: Mapping[str, Any], unsaved: tuple[Any, ...]
) -> Module:
    """Return the module of a header; raise a ModelFileError if this version does not know it."""
    try:
        model = build(header["model"], str(path), arrays, unsaved)
        if isinstance(model, Module):
            return model
        problem = f"expected a module, found {model!r}"
    except ModelFileError:
        raise
    except KeyError as error:
        problem = f"there is no {error} in it"
    except _UNBUILDABLE as error:
        problem = str(error)
    writer = f"daskdl {header['version']}" if "version" in header else "an earlier daskdl"
    raise ModelFileError(
        f"{path}: its modules cannot be built here ({problem}); it was written by {writer}, and "
        f"this is {__version__}"
    )


def read_metadata(path: str | Path) -> dict[str, Any]:
    """Return the metadata of a model file without reading its weights.

    Examples
    --------
    >>> save(nn.Linear(3, 2), "layer.safetensors", {"epochs": 3})
    >>> read_metadata("layer.safetensors")
    {'epochs': 3}
    """
    return _read(path, with_tensors=False)[0]["metadata"]


def _read(path: str | Path, with_tensors: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    if is_url(path):
        with fetched(str(path)) as local:
            try:
                return _read(local, with_tensors)
            except ModelFileError as error:
                raise ModelFileError(str(error).replace(str(local), str(path))) from error
    if not Path(path).is_file():
        raise ModelFileError(
            f"{path}: there is no such model file; see the path, daskdl.save writes one"
        )
    try:
        with safe_open(path, "numpy") as file:
            header = json.loads((file.metadata() or {}).get(KEY, "{}"))
            names = list(file.keys()) if with_tensors else []
            tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{path}: not a whole safetensors file ({error}); copy or save it again"
        ) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        format_of = header.get("format") if isinstance(header, dict) else header
        raise ModelFileError(
            f"{path}: expected a model of format {FORMAT}, found {format_of!r}; it is of another "
            "program or of another version of daskdl"
        )
    return header, tensors


def is_url(path: str | Path) -> bool:
    """Return whether a name has a protocol, as in ``s3://bucket/model.safetensors``."""
    return "://" in str(path)


def store_of(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the file's name there."""
    import fsspec

    try:
        file_system, name = fsspec.url_to_fs(url)
    except (ImportError, ValueError) as error:  # missing package, unknown protocol
        raise ModelFileError(
            f"{url}: the store cannot be reached ({error})"
            "; install the package of this protocol, such as s3fs"
        ) from error
    return file_system, name


@contextmanager
def fetched(url: str) -> Iterator[Path]:
    """Yield a local copy of a file for the duration of the block."""
    file_system, name = store_of(url)
    with tempfile.TemporaryDirectory(prefix="daskdl-") as folder:
        copy = Path(folder) / "model.safetensors"
        try:
            file_system.get_file(name, str(copy))
        except FileNotFoundError:
            raise ModelFileError(
                f"{url}: there is no such model file; see the bucket and the name"
            ) from None
        except OSError as error:
            raise ModelFileError(f"{url}: cannot be read ({error})") from error
        yield copy


@contextmanager
def sent(url: str) -> Iterator[Path]:
    """Yield the name of a local file; it is sent to a URL when the block succeeds."""
    file_system, name = store_of(url)
    with tempfile.TemporaryDirectory(prefix="daskdl-") as folder:
        local = Path(folder) / "model.safetensors"
        yield local
        try:
            file_system.put_file(str(local), name)
        except OSError as error:
            raise ModelFileError(
                f"{url}: cannot be written ({error}); see the rights to that store"
            ) from error
