"""The table of Caffe's layers, and what a function that makes nodes of one knows of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.interop.building import Builder, Table, Value
from daskdl.interop.caffe.files import Message
from daskdl.interop.guard import check_keys
from daskdl.interop.layer import Layer as Base
from daskdl.tensor import Array

#: Settings of kinds that are not called by the kind in small letters.
_SETTINGS = {
    "InnerProduct": "inner_product", "BatchNorm": "batch_norm", "Normalize": "norm",
    "ReLU6": "clip", "ShuffleChannel": "shuffle_channel", "PriorBox": "prior_box",
    "DetectionOutput": "detection_output", "ConvolutionDepthwise": "convolution",
    "DepthwiseConvolution": "convolution", "Deconvolution": "convolution",
}  # fmt: skip

#: What any layer may have.
_ANY = {
    "name", "type", "bottom", "top", "param", "blobs_lr", "weight_decay", "loss_weight", "include",
    "exclude", "phase", "propagate_down", "blob_share_mode",
}  # fmt: skip
#: Settings that change no result, or that shapes of weights and bottoms say.
_PLAIN = {
    "engine", "force_nd_im2col", "scale_train", "stable_prod_grad", "num_axes", "channel_shared",
    "input_dim", "frozen", "save_output_param", "visualize", "visualize_threshold",
}  # fmt: skip


class Layer(Base):
    """One layer of a network: its kind is that of Caffe's second version.

    ``names`` are those of its results, ``settings`` those of its kind, such as convolution_param,
    ``blobs`` its weights; ``scale`` is the Scale behind a BatchNorm.
    """

    def __init__(
        self, kind: str, build: Builder, bottoms: list[Value], names: list[str], message: Message,
        blobs: list[Array], shared: dict[Any, str],
    ) -> None:  # fmt: skip
        name = message.word("name")
        settings = message.part(f"{_SETTINGS.get(kind, kind.lower())}_param")
        place = f"{message.where}: layer {name!r}, {kind}"
        super().__init__(place, name, kind, build, bottoms, settings, shared)
        self.names, self.output, self.message, self.blobs = names, names[0], message, blobs
        self.scale: Layer | None = None

    @property
    def x(self) -> Value:
        """The first bottom."""
        return self.bottom(0)

    def bottom(self, i: int) -> Value:
        """Return an input."""
        if i >= len(self.inputs):
            self.fail(f"expected {i + 1} bottoms, found {len(self.inputs)}")
        return self.inputs[i]

    def number(self, name: str, default: float | None = None) -> float:
        """Return a setting that is a number, 0 by default."""
        value: float = self.settings.number(name, default or 0.0)
        return value

    def check_read(self) -> None:
        """Refuse settings of the layer and its kind that nobody has asked for."""
        others = {n: v for n, v in self.message.fields.items() if not n.endswith("_param")}
        check_keys(self.place, others, _ANY)
        made = {n: v for n, v in self.settings.fields.items() if not n.endswith("filler")}
        check_keys(self.place, made, self.settings.asked, _PLAIN)

    def blob(self, i: int, what: str) -> Array:
        """Return weights as float32."""
        if i >= len(self.blobs):
            self.fail(
                f"expected its {what}, found {len(self.blobs)} blobs under this name; are the "
                "weights those of this network?"
            )
        return self.blobs[i].astype(np.float32, copy=False)

    def vector(self, i: int, what: str, count: int) -> Array:
        """Return weights of which there is one for each channel; old files give them four axes."""
        blob = self.blob(i, what)
        if blob.size != count:
            self.fail(f"expected {count} numbers as {what}, found {blob.size}")
        return blob.reshape(count)

    def bias(self, count: int) -> str:
        """Add the bias; return its name, "" if the layer has none."""
        if not self.settings.flag("bias_term", True):
            return ""
        return self.weight(1, "bias", self.vector(1, "bias", count))

    def weight(self, i: int, what: str, array: Array, filters: bool = False) -> str:
        """Add weights to the graph, once where layers have them in common."""
        specs = self.message.values("param")
        spec = specs[i] if i < len(specs) else ""
        key = spec.word("name") if isinstance(spec, Message) else spec
        add = self.build.filters if filters else self.build.parameter
        name = f"{self.name}.{what}"
        return (
            self.added(key, name, array, add) if key and isinstance(key, str) else add(name, array)
        )


TABLE = Table()
#: Decorator of a function that makes nodes of a layer: puts it into the table, for its kinds.
layer = TABLE.of
