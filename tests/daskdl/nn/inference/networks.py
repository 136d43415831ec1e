"""Networks in inference, with statistics of some training, and samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.models import (
    VGG16,
    ConvLSTMForecaster,
    InceptionV1,
    LeNet5,
    MobileSSD,
    ResNet,
    TextClassifier,
)
from daskdl.models.googlenet import NormedInception
from daskdl.nn import BatchNorm, Graph, Linear, Module, Pick, ReLU, Sequential, TransformerBlock

Array = np.ndarray[Any, Any]


def images(n: int, side: int = 32, channels: int = 3) -> Array:
    return np.random.default_rng(1).standard_normal((n, side, side, channels), np.float32)


def settled(model: Module) -> Module:
    """Give batch norms statistics and weights other than their initial ones."""
    rng = np.random.default_rng(0)
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if "norm" in name or "last." in name or name.startswith("bn"):
            low, high = (0.5, 2) if name.endswith(("variance", "weight", "scale")) else (-0.2, 0.2)
            tensor.data[:] = rng.uniform(low, high, tensor.shape)
    return model


def normed(model: Module) -> Module:
    """Run some samples through a model in training."""
    model(images(20, 3, 1).reshape(20, 9))
    return model


def mobile() -> Graph:
    """Return a graph like mobile networks, with limits, groups, shuffles and a residual sum."""
    conv = ("Conv", ("x", "w0", "b0"), ("a",), (("pads", (1, 1, 1, 1)), ("strides", (2, 2))))
    nodes = [
        conv,
        ("Clip", ("a", "zero", "six"), ("b",), ()),
        ("Conv", ("b", "w1"), ("c",), (("group", 8), ("pads", (1, 1, 1, 1)))),
        ("BatchNormalization", ("c", "bn_scale", "bn_bias", "bn_mean", "bn_variance"), ("d",), ()),
        ("Relu", ("d",), ("e",), ()),
        ("Conv", ("e", "w2", "b0"), ("f",), ()),
        ("Add", ("f", "b"), ("g",), ()),
        ("Concat", ("g", "e"), ("h",), (("axis", 1),)),
        ("Reshape", ("h", "five"), ("i",), ()),
        ("Transpose", ("i",), ("j",), (("perm", (0, 2, 1, 3, 4)),)),
        ("Reshape", ("j", "four"), ("k",), ()),
        ("MaxPool", ("k",), ("m",), (("kernel_shape", (2, 2)), ("strides", (2, 2)))),
        ("GlobalAveragePool", ("m",), ("n",), ()),
        ("Flatten", ("n",), ("o",), ()),
        ("Gemm", ("o", "w3", "b3"), ("y",), (("transB", 1),)),
    ]
    shapes = {
        "w0": (8, 3, 3, 3), "b0": (8,), "w1": (8, 1, 3, 3), "bn_scale": (8,), "bn_bias": (8,),
        "w2": (8, 8, 1, 1), "w3": (5, 16), "b3": (5,),
    }  # fmt: skip
    graph = Graph(
        nodes,
        [("x", "float32", (None, 3, 32, 32))],
        ["y"],
        list(shapes.items()),
        [("bn_mean", (8,)), ("bn_variance", (8,))],
        [
            ("zero", np.zeros((), np.float32)),
            ("six", np.full((), 6, np.float32)),
            ("five", np.array([-1, 2, 8, 16, 16])),
            ("four", np.array([-1, 16, 16, 16])),
        ],
    )
    rng = np.random.default_rng(3)
    for parameter in graph.parameters():
        parameter.data[:] = rng.standard_normal(parameter.shape)
    return graph


#: By name: the model, its samples, and whether a pass can be recorded as a program.
NETWORKS: dict[str, tuple[Callable[[], Module], Callable[[int], Array], bool]] = {
    "residual": (lambda: settled(ResNet(18, 5, "small", 8, zero_last=False)), images, True),
    "bottleneck": (
        lambda: settled(ResNet(50, 5, "imagenet", 8, zero_last=False)),
        lambda n: images(n, 64),
        True,
    ),
    "inception": (lambda: InceptionV1(7), lambda n: images(n, 64), True),
    "normed inception": (
        lambda: settled(NormedInception(3, 8, (4, 8), (4, 8), 8)),
        images,
        True,
    ),
    "lenet": (LeNet5, lambda n: images(n, 28, 1), True),
    "vgg": (lambda: VGG16(3, width=0.0625, hidden=8), lambda n: images(n, 224), True),
    "ssd": (
        lambda: Sequential(settled(MobileSSD(2, 96, 0.125)), Pick(1)),
        lambda n: images(n, 96),
        True,
    ),
    "graph": (
        lambda: settled(mobile()),
        lambda n: np.ascontiguousarray(images(n).transpose(0, 3, 1, 2)),
        True,
    ),
    "affine": (
        lambda: normed(
            Sequential(Linear(9, 20, seed=0), BatchNorm(20), ReLU(), Linear(20, 3, seed=1))
        ),
        lambda n: images(n, 3, 1).reshape(n, 9),
        True,
    ),
    "transformer": (
        lambda: Sequential(
            TransformerBlock(32, 4, 64, activation="gelu", seed=0),
            TransformerBlock(32, 4, 64, norm_first=True, seed=1),
        ),
        lambda n: images(n, 16, 2).reshape(n, 16, 32),
        True,
    ),
    "convlstm": (
        lambda: ConvLSTMForecaster(3, 2, (8, 8), block=2),
        lambda n: np.random.default_rng(2).random((n, 3, 12, 12, 1), np.float32),
        False,
    ),
    "text": (
        lambda: TextClassifier(50, 4, 12, channels=16, hidden=16),
        lambda n: np.random.default_rng(2).integers(0, 50, (n, 9)),
        False,
    ),
}
