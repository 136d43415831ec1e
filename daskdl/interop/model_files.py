"""Load model files: a reader for each ending, and an error with advice for other files."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from daskdl import models
from daskdl.errors import ModelFileError
from daskdl.interop.guard import existing
from daskdl.nn.core.modelfile import is_url
from daskdl.nn.core.module import Module

_READERS = {
    "onnx": "onnx", "prototxt": "caffe", "caffemodel": "caffe", "pb": "tensorflow",
    "keras": "keras", "h5": "keras", "hdf5": "keras", "t7": "torch7",
}  # fmt: skip
_WEIGHTS = (
    "daskdl.interop.read(path) gives its weights, which model.load_state_dict(weights, "
    "names='torch') takes"
)
_TO_ONNX = "convert it to ONNX by the program that wrote it"
_TORCH = ("a file of PyTorch, which does not say what the layers are", _WEIGHTS)
_SCRIPT = (
    "a program of TorchScript, which is not run",
    "torch.onnx.export(model, ...) writes one that is read",
)
_TFLITE = (
    "a model of TFLite",
    "python -m tf2onnx.convert --tflite FILE --output x.onnx makes ONNX",
)
_GGUF = (
    "a language model of llama.cpp (GGUF), which is not read",
    "daskdl.interop.read reads the weights that it was made of, as safetensors",
)
_JAVA = (
    "a serialized object of Java, such as BigDL's or DL4J's",
    "BigDL's saveCaffe, saveTF and saveTorch write files that are read",
)
_COREML = ("a model of Core ML", _TO_ONNX)
_HDF5 = ("a file of HDF5", "call it .h5 if Keras wrote it")
_SHARDS = ("an index of files of weights", _WEIGHTS)
_PICKLE = ("a pickle, which may run anything", _TO_ONNX)
_ZIP = ("a zip file", "give the model file in it, or call it .keras if Keras wrote it")
#: Kinds of files by their first bytes: (place, bytes, (kind, advice)).
_BEGINNINGS = (
    (4, b"TFL3", _TFLITE), (0, b"GGUF", _GGUF), (0, b"\xac\xed\x00\x05", _JAVA),
    (0, b"\x89HDF\r\n\x1a\n", _HDF5), (0, b"PK\x03\x04", _ZIP), (0, b"\x80\x02", _PICKLE),
    (0, b"\x80\x03", _PICKLE), (0, b"\x80\x04", _PICKLE), (0, b"\x80\x05", _PICKLE),
    (0, b"\x93NUMPY", ("an array of numpy", "np.load(path) reads it")),
    (0, b"\x1f\x8b", ("packed by gzip", "unpack it first")),
    (0, b"\x89PNG", ("a picture", "give the model file")),
    (0, b"%PDF", ("a document of PDF", "give the model file")),
    (5, b"\0\0\0{\"", ("a file of safetensors", "call it .safetensors")),
)  # fmt: skip
_TEXT = ("a text", "give the model file itself")
#: Kinds of files by their endings.
_ENDINGS = {
    **dict.fromkeys(("pt", "pth", "ckpt", "bin"), _TORCH),
    **dict.fromkeys(("jit", "ts", "torchscript", "ptl"), _SCRIPT),
    **dict.fromkeys(("mlmodel", "mlpackage"), _COREML),
    "tflite": _TFLITE, "gguf": _GGUF, "index.json": _SHARDS,
    "npz": ("arrays of numpy", "model.load_state_dict(dict(np.load(path))) takes them"),
    "npy": ("an array of numpy", "np.load(path) reads it"),
    **dict.fromkeys(("pkl", "pickle", "joblib"), _PICKLE),
    "pbtxt": ("a graph of TensorFlow as text", "a frozen graph (.pb) is read"),
    "xml": ("a model of OpenVINO", "the model that it was made of is read as ONNX"),
    **dict.fromkeys(("engine", "plan", "trt"), ("a program for one GPU (TensorRT)", _TO_ONNX)),
    **dict.fromkeys(("pdmodel", "pdiparams"), ("a model of Paddle", "paddle2onnx makes it ONNX")),
    "bigdl": _JAVA,
    "msgpack": ("a file of weights of Flax, which is not read", "save them as safetensors"),
}  # fmt: skip


def load(path: str | Path, **options: Any) -> Module:
    """Read a model: a file of :func:`daskdl.save`, or of another program, by its ending.

    The model is in evaluation mode, as after :meth:`~daskdl.nn.Module.eval`.

    Parameters
    ----------
    path : path or URL
        ``.onnx`` is read by :func:`daskdl.interop.onnx.load`, ``.prototxt`` by
        :func:`daskdl.interop.caffe.load`, ``.pb`` by :func:`daskdl.interop.tensorflow.load`,
        ``.keras`` and ``.h5`` by :func:`daskdl.interop.keras.load`,
        ``.t7`` by :func:`daskdl.interop.torch7.load`.
    **options :
        Options of these functions, such as ``weights="x.caffemodel"``.

    Raises
    ------
    ModelFileError
        When the file is missing, damaged or of a kind that is not read.

    Examples
    --------
    >>> import daskdl
    >>> daskdl.save(nn.Linear(3, 2), "small.safetensors")
    >>> load("small.safetensors")
    Linear(3, 2)
    """
    reader = _READERS.get(str(path).rsplit(".", 1)[-1].lower())
    if reader is None and not is_url(path):
        _check_ours(Path(path))
    if reader is None:
        model = models.load(path, **options)
        return model if "module" in options else model.eval()  # a module of torch keeps its mode
    if not is_url(path):
        _check_theirs(Path(path), reader)
    loaded: Module = importlib.import_module(f"daskdl.interop.{reader}").load(path, **options)
    return loaded


def _check_folder(path: Path) -> None:
    if (path / "saved_model.pb").is_file():
        raise ModelFileError(
            f"{path}: it is a SavedModel of TensorFlow; python -m tf2onnx.convert --saved-model "
            "FOLDER --output x.onnx makes a file that is read"
        )
    if path.is_dir() and not path.name.endswith(".mlpackage"):
        raise ModelFileError(f"{path}: expected a model file, found a folder; give a file in it")


def _check_theirs(path: Path, reader: str) -> None:
    """Raise a ModelFileError for a whole file whose kind is not the one of its name."""
    _check_folder(path)
    if path.is_file():
        beginning = _beginning(path)
        kind = _kind_of(beginning)
        if reader == "keras" and kind in (_HDF5, _ZIP):
            return
        if kind is None and reader not in ("caffe", "torch7") and _is_text(beginning):
            kind = _TEXT
        if kind is not None:
            raise ModelFileError(f"{path}: it is {kind[0]}; {kind[1]} (docs/interop.md)")


def _beginning(path: Path) -> bytes:
    with existing(path, "model file").open("rb") as file:
        return file.read(4096)  # a binary graph may begin with hundreds of printable bytes


def _kind_of(beginning: bytes) -> tuple[str, str] | None:
    """Return the kind of a file by its first bytes, with advice; None if it is unknown."""
    starts = (kind for at, sign, kind in _BEGINNINGS if beginning[at:].startswith(sign))
    return next(starts, None)


def _is_text(beginning: bytes) -> bool:
    return bool(beginning) and all(32 <= byte < 127 or byte in b"\t\n\r" for byte in beginning)


def _check_ours(path: Path) -> None:
    """Raise a ModelFileError for a file that cannot be one of :func:`daskdl.save`."""
    _check_folder(path)
    name = path.name.lower()
    by_ending = next((kind for end, kind in _ENDINGS.items() if name.endswith(f".{end}")), None)
    if not path.is_file() and (by_ending is None or not path.is_dir()):
        return  # opening it raises the error
    beginning = b"" if path.is_dir() else _beginning(path)
    if beginning[8:9] == b"{":  # safetensors, whatever its name
        return
    kind = _kind_of(beginning)
    other = by_ending if kind in (None, _ZIP, _PICKLE) and by_ending else kind
    if kind is _ZIP and other in (_ZIP, _TORCH):
        other = _kind_of_zip(path) or other
    if other is None and name.endswith(".safetensors") and _is_text(beginning):
        other = _TEXT
    if other is not None:
        raise ModelFileError(f"{path}: it is {other[0]}; {other[1]} (docs/interop.md)")
    if name.endswith(".safetensors"):
        return
    raise ModelFileError(
        f"{path}: expected a model file, found one that begins with {beginning[:8]!r}"
        "; docs/interop.md lists the formats that are read, each by its ending"
    )


def _kind_of_zip(path: Path) -> tuple[str, str] | None:
    """Return the kind of a zip file of PyTorch, a program or weights; None for other zips."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return None
    if any(name.endswith("/constants.pkl") or "/code/" in name for name in names):
        return _SCRIPT
    return _TORCH if any(name.endswith("/data.pkl") for name in names) else None
