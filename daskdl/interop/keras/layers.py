"""The table of Keras layers, and the Layer that its functions translate."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from daskdl.interop.building import LastBuilder, Value
from daskdl.interop.guard import check_keys
from daskdl.interop.keras.topology import MASKED, Step
from daskdl.interop.layer import Layer as Base
from daskdl.tensor import Array

#: Settings of any layer that change no result in inference.
_IGNORED = {
    "name", "trainable", "dtype", "batch_input_shape", "batch_shape", "input_shape", "input_dtype",
    "seed", "noise_shape", "build_config",
}  # fmt: skip
#: Endings of names of settings that change no result in inference.
_TRAINED = ("_initializer", "_regularizer", "_constraint")
#: Accepted dtypes of layers; formats with fewer bits are computed in float32 here.
_FLOATS = {"float16", "bfloat16", "float32", "float64", "mixed_float16", "mixed_bfloat16"}
_ACTIVATIONS = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softplus": "Softplus",
    "softsign": "Softsign", "selu": "Selu", "elu": "Elu", "exponential": "Exp", "mish": "Mish",
    "swish": "Swish", "silu": "Swish", "hard_sigmoid": "HardSigmoid", "hard_swish": "HardSwish",
    "hard_silu": "HardSwish", "gelu": "Gelu", "relu6": "Clip", "leaky_relu": "LeakyRelu",
    "softmax": "Softmax", "log_softmax": "LogSoftmax",
}  # fmt: skip


class Layer(Base):
    """One call of a layer, with its weights by name, in the order of Keras ``version``.

    ``mask`` is the mask of its input and becomes the mask of its result, see ``keras.masks``: ""
    without one, None if it is not known which of several it is.
    """

    def __init__(
        self, step: Step, build: LastBuilder, inputs: list[Value], named: dict[str, Array],
        version: int, where: str, shared: dict[str, str], mask: str | None,
    ) -> None:  # fmt: skip
        place = f"{where}: layer {step.name!r}, {step.kind}"
        super().__init__(place, step.name, step.kind, build, inputs, step.config, shared)
        self.named, self.arrays, self.version = named, list(named.values()), version
        self.mask = mask

    def check(self, config: dict[str, Any], keys: Collection[str], off: Collection[str]) -> None:
        """Refuse unknown settings, and dtypes other than floats."""
        policy = config.get("dtype")
        if isinstance(policy, dict):
            inner = policy.get("config")
            policy = (inner or {}).get("name", (inner or {}).get("mode", str(inner)))
        if policy is not None and policy not in _FLOATS:
            self.fail(
                f"dtype: expected floats, found {str(policy)[:60]}; quantised layers are not "
                "read, save the model before quantize()"
            )
        settings_made = {
            name: value for name, value in config.items()
            if not name.endswith(_TRAINED) and not (name in off and not value)
        }  # fmt: skip
        check_keys(self.place, settings_made, keys, _IGNORED)

    def integers(self, name: str, count: int, default: Any = None, least: int = 1) -> list[int]:
        """Return a whole number for each axis; the setting may be one for all."""
        value = self.settings.get(name, default)
        value = [value] * count if type(value) is int else value
        if (
            not isinstance(value, (list, tuple))
            or len(value) != count
            or not all(type(n) is int and least <= n <= 4096 for n in value)
        ):
            self.fail(
                f"{name}: expected {count} whole numbers from {least}, found {str(value)[:60]}"
            )
        return list(value)

    def pairs(self, name: str, axes: int) -> list[tuple[int, int]]:
        """Return widths (before, behind) for each axis; given once, per axis or per side."""
        value = self.settings.get(name, 1)
        value = [value] * axes if type(value) is int else value
        if axes == 1 and isinstance(value, (list, tuple)) and len(value) == 2:
            value = [value] if all(type(n) is int for n in value) else value
        widths = []
        for part in value if isinstance(value, (list, tuple)) else ():
            part = (part, part) if type(part) is int else part
            if len(part) != 2 or not all(type(n) is int and 0 <= n <= 1 << 16 for n in part):
                self.fail(f"{name}: expected widths, found {str(value)[:60]}")
            widths.append((part[0], part[1]))
        if len(widths) != axes:
            self.fail(f"{name}: expected widths of {axes} axes, found {str(value)[:60]}")
        return widths

    def last_channels(self) -> None:
        """Raise a ModelFileError unless images have their channels last."""
        if self.settings.get("data_format") == "channels_first":
            self.fail("data_format: expected channels_last, found channels_first")

    def padding(self) -> str:
        """Return the padding, "same" or "valid"."""
        padding = self.settings.get("padding", "valid")
        if padding not in ("same", "valid"):
            self.fail(f"padding: expected same or valid, found {str(padding)[:60]}")
        return str(padding)

    def array(self, i: int, role: str, rank: int | None = None) -> Array:
        """Return an array of the layer as float32."""
        if i >= len(self.arrays):
            self.fail(f"expected its {role}, found {len(self.arrays)} arrays")
        array = self.arrays[i]
        if rank is not None and array.ndim != rank:
            self.fail(f"expected {role} of {rank} axes, found {array.shape}")
        if array.dtype.kind != "f":
            self.fail(
                f"expected {role} of floats, found {array.dtype}; quantised layers are not read, "
                "save the model before quantize()"
            )
        return array.astype(np.float32, copy=False)

    def weight(
        self, role: str, array: Array, add: Callable[[str, Array], str] | None = None
    ) -> str:
        """Add weights to the graph, once for all calls of the layer; return their name."""
        key = f"{self.name}/{role}"
        return self.added(key, key, array, add)

    def bias(self, i: int) -> str:
        """Add the bias; return its name, "" if the layer has none."""
        if not self.flag("use_bias", True):
            return ""
        return self.weight("bias", self.array(i, "bias", 1))

    def node(self, like: Value, operator: str, *inputs: str, **attributes: Any) -> Value:
        """Add the layer's last node; its result has the layout of ``like``."""
        return self.result(operator, *inputs, like=like, **attributes)

    def activated(self, value: Value, name: str = "activation") -> Value:
        """Add the layer's activation setting to a value."""
        return activation(self, value, self.settings.get(name))


def function_of(layer: Layer, value: Any) -> str:
    """Return the name of an activation setting."""
    if isinstance(value, dict):
        value = (
            value.get("config")
            if value.get("class_name") == "function"
            else value.get("class_name")
        )
    value = "linear" if value is None else value
    if value != "linear" and value not in _ACTIVATIONS:
        layer.fail(f"activation {str(value)[:60]!r} is not supported; functions are not read")
    return str(value)


def activation(layer: Layer, x: Value, value: Any) -> Value:
    """Add an activation by its name."""
    name = function_of(layer, value)
    if name == "linear":
        return x
    operator, inputs = _ACTIVATIONS[name], [x.name]
    settings: dict[str, Any] = {}
    if name in ("softmax", "log_softmax"):
        settings = {"axis": 1 if x.second else -1}
    elif name == "hard_sigmoid":
        settings = {"alpha": 1 / 6 if layer.version >= 3 else 0.2, "beta": 0.5}
    elif name == "relu6":
        inputs += [layer.build.constant(0), layer.build.constant(6)]
    elif name == "leaky_relu":
        settings = {"alpha": 0.2}
    return layer.build.made(x, operator, *inputs, name=f"{layer.name}/{name}", **settings)


Convert = Callable[[Layer], Value | list[Value]]


class Translator(NamedTuple):
    """A function that makes a layer's nodes, and the settings that it reads; others are refused.

    Settings in ``off`` must be switched off; ``several``: the layer takes several inputs. A layer
    "keeps" a mask of its input for the next one without using it, "uses" it, "drops" it, or
    "refuses" it.
    """

    function: Convert
    keys: frozenset[str]
    off: frozenset[str]
    several: bool
    mask: str

    def __call__(self, of: Layer) -> Value | list[Value]:
        """Add the nodes of a call, after a check of its settings."""
        of.check(of.settings, self.keys, self.off)
        if not self.several and len(of.inputs) != 1:
            of.fail(f"expected one input, found {len(of.inputs)}")
        unknown = self.mask == "uses" and of.mask is None
        if unknown or (self.mask == "refuses" and of.mask != ""):
            of.fail(f"it is called with {MASKED}, which is not supported; export the model as ONNX")
        if self.mask == "drops":
            of.mask = ""
        return self.function(of)


TABLE: dict[str, Translator] = {}


def layer(
    *kinds: str, keys: str = "", off: str = "", several: bool = False, mask: str = "drops"
) -> Callable[[Convert], Convert]:
    """Register a function that makes the nodes of these kinds of layers.

    Other arguments as in :class:`Translator`, with names separated by spaces.
    """

    def register(function: Convert) -> Convert:
        known = frozenset(keys.split()), frozenset(off.split())
        for kind in kinds:
            TABLE[kind] = Translator(function, *known, several, mask)
        return function

    return register


def axes_of(layer: Layer) -> int:
    """Return the number of axes of images for a layer such as Conv2D."""
    axes = next((int(c) for c in layer.kind if c in "123"), 2)
    if layer.rank != axes + 2:
        layer.fail(f"expected {axes + 2} axes, found {layer.rank}")
    return axes
