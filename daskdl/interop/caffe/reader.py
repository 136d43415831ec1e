"""Read Caffe's networks as :class:`daskdl.nn.Graph`: a prototxt, and a caffemodel with weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daskdl.errors import ModelFileError
from daskdl.interop.building import Builder, Value
from daskdl.interop.caffe import layers, plain, shaping
from daskdl.interop.caffe.files import Message, parse, read_blobs
from daskdl.interop.caffe.layers import TABLE, Layer
from daskdl.interop.guard import check_supported, existing, reading
from daskdl.nn.core.graph import Graph
from daskdl.tensor import Array

#: Importing these fills the table of layers.
FAMILIES = (layers, plain, shaping)
#: Kinds of the first version whose names in the second are not just in title case.
_OLD = {
    "ABSVAL": "AbsVal", "ARGMAX": "ArgMax", "BNLL": "BNLL", "INNER_PRODUCT": "InnerProduct",
    "LRN": "LRN", "MVN": "MVN", "RELU": "ReLU", "PRELU": "PReLU", "TANH": "TanH",
    "SOFTMAX_LOSS": "SoftmaxWithLoss", "HDF5_DATA": "HDF5Data", "HDF5_OUTPUT": "HDF5Output",
}  # fmt: skip
_DATA = {
    "Data", "ImageData", "MemoryData", "HDF5Data", "DummyData", "WindowData", "AnnotatedData",
    "VideoData",
}  # fmt: skip
_DROPPED = {"Accuracy", "Silence", "HDF5Output", "DetectionEvaluate"}
#: Largest size of a prototxt, in bytes.
_LARGEST = 20_000_000


def load(
    path: str | Path, *, weights: str | Path | None = None, channels_last: bool = False
) -> Graph:
    """Read a network of Caffe as a graph; it predicts, trains and saves as any module does.

    Data layers become inputs; losses, accuracies and layers of the training phase are left out.
    Filters have channels last, as in :class:`daskdl.nn.Conv2d`. The first axis of inputs is free,
    and so is the size of images unless an InnerProduct or Reshape fixes it.

    Parameters
    ----------
    path : path
        The ``.prototxt``, which describes the layers.
    weights : path, optional
        The ``.caffemodel``; by default the one of the same name in the prototxt's folder.
    channels_last : bool
        Whether inputs and outputs are images (N, H, W, C), as in the rest of daskdl; by default
        (N, C, H, W), as in Caffe.

    Returns
    -------
    Graph
        Its outputs are the blobs that no layer reads. A DetectionOutput returns (N, most, 6):
        label, score, and the edges left, top, right and bottom; label -1 means no object.

    Raises
    ------
    ModelFileError
        When a file is missing, damaged or has layers that are not supported.
    """
    path = Path(path)
    caffemodel = path.with_suffix(".caffemodel") if weights is None else Path(weights)
    if path.suffix == ".caffemodel":
        raise ModelFileError(
            f"{path}: expected the prototxt that says what the layers are; daskdl.load("
            f"'NAME.prototxt', weights='{path.name}')"
        )
    path = existing(path, "prototxt")
    if weights is None and not caffemodel.is_file():
        raise ModelFileError(f"{caffemodel}: there is no such caffemodel; give it as weights=")
    caffemodel = existing(caffemodel, "caffemodel")
    if path.stat().st_size > _LARGEST:
        raise ModelFileError(
            f"{path}: expected a text of up to {_LARGEST} bytes, found more"
            "; give the prototxt first, and the caffemodel as weights="
        )
    network = read(
        path.read_bytes(), caffemodel.read_bytes(), str(path), str(caffemodel), channels_last
    )
    return network.eval()


def read(
    text: bytes, weights: bytes, where: str, weights_where: str, channels_last: bool = False
) -> Graph:
    """Read the bytes of both files; ``where`` and ``weights_where`` name them in errors."""
    network = parse(text.decode("utf-8", "replace"), where)
    blobs = read_blobs(weights, weights_where)
    with reading(where):
        return _Network(network, blobs, where, channels_last).graph()


class _Network:
    """The layers in order, and the current value of each blob."""

    def __init__(
        self, network: Message, blobs: dict[str, list[Array]], where: str, channels_last: bool
    ) -> None:
        self.network, self.blobs, self.where = network, blobs, where
        self.channels_last = channels_last
        self.old = network.has("layers")
        self.layers = [m for m in network.parts("layers" if self.old else "layer") if _used(m)]
        if not self.layers:
            raise ModelFileError(f"{where}: there are no layers in it; is it a prototxt?")
        self.kinds = [self._kind(message) for message in self.layers]
        check_supported(
            where, "layers",
            (
                (kind, f"layer {message.word('name')!r}")
                for kind, message in zip(self.kinds, self.layers, strict=True)
                if not kind.endswith("Loss")
            ),
            TABLE.keys() | _DATA | _DROPPED | {"Input", "Split"},
            "take them out of the prototxt, or convert the model to ONNX",
        )  # fmt: skip
        self.fixed = any(map(_fixes_size, self.kinds, self.layers))
        self.build = Builder()
        self.shared: dict[Any, str] = {}
        self.values: dict[str, Value] = {}
        self.last = {t: i for i, m in enumerate(self.layers) for t in m.words("top")}

    def graph(self) -> Graph:
        """Return the graph."""
        self._old_inputs()
        absent: set[str] = set()
        unread: dict[str, None] = dict.fromkeys(self.values)
        merged: dict[int, list[Value]] = {}
        for i, (message, kind) in enumerate(zip(self.layers, self.kinds, strict=True)):
            bottoms, tops = message.words("bottom"), message.words("top")
            if kind == "Input" or kind in _DATA:
                self._inputs(message, kind)
                absent.update(set(tops) - self.values.keys())
                unread.update(dict.fromkeys(t for t in tops if t in self.values))
                continue
            if kind in _DROPPED or kind.endswith("Loss") or absent & set(bottoms):
                absent.update(tops)
                continue
            for name in bottoms:
                if name not in self.values:
                    raise ModelFileError(
                        f"{self.where}: layer {message.word('name')!r}: nothing computes {name!r}"
                        "; correct the prototxt"
                    )
                unread.pop(name, None)
            results = merged.get(i) or self._converted(i, message, kind, merged)
            if len(results) != len(tops):
                raise ModelFileError(
                    f"{self.where}: layer {message.word('name')!r}, {kind}: expected "
                    f"{len(results)} tops, found {len(tops)}; correct the prototxt"
                )
            for name, value in zip(tops, results, strict=True):
                self.values[name] = value
                unread[name] = None
        inputs = {name for name, *_ in self.build.inputs}
        outputs = [v for n in unread if (v := self.values[n]).name not in inputs]
        if not outputs:
            raise ModelFileError(f"{self.where}: no layer computes anything; is it a network?")
        return self.build.graph(self.build.results(outputs, self.channels_last))

    def _kind(self, message: Message) -> str:
        if self.old and message.has("layer"):
            raise ModelFileError(
                f"{self.where}: it is of Caffe's version 0; upgrade_net_proto_text brings it up to "
                "date"
            )
        kind = message.word("type")
        return _OLD.get(kind, kind.title().replace("_", "")) if self.old else kind

    def _converted(
        self, i: int, message: Message, kind: str, merged: dict[int, list[Value]]
    ) -> list[Value]:
        if kind == "Split":
            return [self.values[message.words("bottom")[0]]] * len(message.words("top"))
        layer = self._layer(i, message, kind)
        follower = self._scale_of(i) if kind == "BatchNorm" else None
        if follower is not None:
            layer.scale = self._layer(follower, self.layers[follower], "Scale")
            layer.output = layer.scale.output
        result = TABLE[kind](layer)
        for one in filter(None, (layer, layer.scale)):
            one.check_read()
        values = result if isinstance(result, list) else [result]
        if follower is not None:
            merged[follower] = values
        return values

    def _layer(self, i: int, message: Message, kind: str) -> Layer:
        name = message.word("name")
        tops = message.words("top")
        inside = [name if len(tops) == 1 else f"{name}/{top}" for top in tops]
        names = [
            top if self.last[top] == i else other for top, other in zip(tops, inside, strict=True)
        ]
        bottoms = [self.values[b] for b in message.words("bottom") if b in self.values]
        return Layer(
            kind, self.build, bottoms, names or [name], message,
            list(self.blobs.get(name, [])), self.shared,
        )  # fmt: skip

    def _scale_of(self, i: int) -> int | None:
        """Return the number of a BatchNorm's only reader if it is a Scale of channels."""
        (top,) = self.layers[i].words("top") or [""]
        readers = []
        for j in range(i + 1, len(self.layers)):
            if top in self.layers[j].words("bottom"):
                readers.append(j)
            if top in self.layers[j].words("top"):  # from here on the name means another result
                break
        if len(readers) != 1 or self.kinds[readers[0]] != "Scale":
            return None
        settings = self.layers[readers[0]].part("scale_param")
        alone = len(self.layers[readers[0]].words("bottom")) == 1
        axes = settings.integer("axis", 1, -9, 9), settings.integer("num_axes", 1, -1, 9)
        return readers[0] if alone and axes == (1, 1) else None

    def _old_inputs(self) -> None:
        """Add inputs that old files declare outside layers."""
        names = self.network.words("input")
        shapes = [m.integers("dim") for m in self.network.parts("input_shape")]
        dims = self.network.integers("input_dim")
        shapes = shapes or [dims[i : i + 4] for i in range(0, len(dims), 4)]
        for i, name in enumerate(names):
            self._input(name, shapes[i] if i < len(shapes) else None)

    def _inputs(self, message: Message, kind: str) -> None:
        tops = message.words("top")
        if kind == "Input":
            shapes = [m.integers("dim") for m in message.part("input_param").parts("shape")]
            for i, name in enumerate(tops):
                self._input(name, shapes[min(i, len(shapes) - 1)] if shapes else None)
            return
        for name in tops[:1]:  # the others are labels
            if name in self.values:
                continue
            size = message.part("transform_param").integer("crop_size")
            settings = message.part("memory_data_param")
            shape = [settings.integer(k) for k in ("batch_size", "channels", "height", "width")]
            self._input(name, shape if all(shape) else [1, 3, size, size] if size else None)

    def _input(self, name: str, shape: list[int] | None) -> None:
        lengths: list[int | None] = list(shape) if shape else [None] * 4
        if not 1 <= len(lengths) <= 8:
            raise ModelFileError(f"{self.where}: input {name!r}: found {len(lengths)} axes")
        lengths[0] = None
        if len(lengths) == 4 and not self.fixed:
            lengths[2:] = [None, None]
        turned = self.channels_last and len(lengths) == 4
        first = self.build.input(name, tuple(lengths), turned=turned)
        self.values[name] = Value(first, len(lengths))


def _fixes_size(kind: str, message: Message) -> bool:
    """Whether a layer requires images of one size."""
    if kind == "Reshape":
        return -1 not in message.part("reshape_param").part("shape").integers("dim", -1)
    return kind == "InnerProduct"


def _used(message: Message) -> bool:
    """Whether a layer belongs to the TEST phase."""

    def met(rule: Any) -> bool:
        level = rule.integer("min_level") <= 0 <= rule.integer("max_level", 0)
        return rule.word("phase", "TEST") == "TEST" and not rule.has("stage") and level

    include, exclude = message.parts("include"), message.parts("exclude")
    if include:
        return any(met(rule) for rule in include)
    return not any(met(rule) for rule in exclude)
