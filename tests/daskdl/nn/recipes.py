"""Arguments and inputs for each layer of the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl import nn
from daskdl.nn.quantized import int8_of
from tests.daskdl.gradients import normal

SEQUENCE, IMAGE, VOLUME = (2, 6, 4), (2, 6, 5, 4), (2, 4, 5, 4, 2)

#: Layers that are for inference alone.
NOT_TRAINED = {"Int8Conv2d", "Int8Linear", "Quantized"}
#: Layer -> (how it is made, shapes of its inputs).
FLOATS: dict[str, tuple[Callable[[], nn.Module], list[tuple[int, ...]]]] = {
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((2, 3)), [IMAGE]),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d((2, 3)), [IMAGE]),
    "Affine": (lambda: nn.Affine(2.0, 1.0), [SEQUENCE]),
    "Adapted": (
        lambda: nn.Adapted(nn.FeedForward(4, 6, seed=0), 2, 1.0, ("widen",), ("narrow",)),
        [SEQUENCE],
    ),
    "AvgPool1d": (lambda: nn.AvgPool1d(3, 2, (1, 0)), [SEQUENCE]),
    "AvgPool2d": (lambda: nn.AvgPool2d(2, count_include_pad=False, padding=1), [IMAGE]),
    "AvgPool3d": (
        lambda: nn.AvgPool3d((2, 3, 1), (1, 2, 2), (0, 1, 1, 0, 0, 0), True), [VOLUME],
    ),
    "BatchNorm": (lambda: nn.BatchNorm(4), [IMAGE]),
    "Bidirectional": (
        lambda: nn.Bidirectional(nn.GRU(4, 3, seed=0), nn.GRU(4, 3, seed=1), merge="mean"),
        [SEQUENCE],
    ),
    "Bilinear": (lambda: nn.Bilinear(3, 4, 5, seed=0), [(2, 3), (2, 4)]),
    "Branches": (lambda: nn.Branches(nn.Linear(4, 3, seed=0), nn.Tanh()), [SEQUENCE]),
    "Clip": (lambda: nn.Clip(-0.5, 0.5), [SEQUENCE]),
    "Concat": (lambda: nn.Concat(nn.Linear(4, 3, seed=0), nn.Tanh()), [SEQUENCE]),
    "Conv1d": (lambda: nn.Conv1d(4, 8, 3, padding="causal", dilation=2, seed=0), [SEQUENCE]),
    "Conv2d": (lambda: nn.Conv2d(4, 8, 3, 2, "same", groups=2, seed=0), [IMAGE]),
    "Conv3d": (lambda: nn.Conv3d(2, 4, (2, 3, 3), padding=1, seed=0), [VOLUME]),
    "ConvLSTM": (lambda: nn.ConvLSTM(2, 3, seed=0), [VOLUME]),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 3, 4, 2, 1, seed=0), [SEQUENCE]),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 3, 4, 2, 1, seed=0), [IMAGE]),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(2, 3, 3, 2, 1, 1, seed=0), [VOLUME]),
    "Cosine": (lambda: nn.Cosine(4, 3, seed=0), [SEQUENCE]),
    "Euclidean": (lambda: nn.Euclidean(4, 3, seed=0), [SEQUENCE]),
    "Crop": (lambda: nn.Crop((1, 2, 0, 1)), [IMAGE]),
    "DepthToSpace": (lambda: nn.DepthToSpace(2), [IMAGE]),
    "FeedForward": (lambda: nn.FeedForward(4, 6, activation="gelu", seed=0), [SEQUENCE]),
    "Flip": (lambda: nn.Flip(1), [SEQUENCE]),
    "GaussianSampler": (nn.GaussianSampler, [(2, 3), (2, 3)]),
    "GRU": (lambda: nn.GRU(4, 3, layers=2, returns="sequence", seed=0), [SEQUENCE]),
    "Graph": (
        lambda: nn.Graph(
            [("Mul", ("x", "c"), ("y",)), ("Tanh", ("y",), ("z",))],
            [("x", "float32", (None, 6, 4))], ["z"], constants=[("c", "float32", (1,), (2.0,))],
        ),
        [SEQUENCE],
    ),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), [IMAGE]),
    "Highway": (lambda: nn.Highway(4, nn.ReLU(), seed=0), [SEQUENCE]),
    "Int8Conv2d": (
        lambda: int8_of(nn.Conv2d(4, 8, 3, 2, "same", dilation=1, seed=0), 0.02, 100), [IMAGE],
    ),
    "Int8Linear": (lambda: int8_of(nn.Linear(4, 3, seed=0), 0.02, 128), [SEQUENCE]),
    "LayerNorm": (lambda: nn.LayerNorm((5, 4)), [IMAGE]),
    "Linear": (lambda: nn.Linear(4, 3, seed=0), [SEQUENCE]),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3, alpha=0.5), [IMAGE]),
    "LoRA": (lambda: nn.LoRA(nn.Linear(4, 3, seed=0), 2, seed=1), [SEQUENCE]),
    "LocallyConnected1d": (lambda: nn.LocallyConnected1d(6, 4, 3, 2, 2, 1, seed=0), [SEQUENCE]),
    "LocallyConnected2d": (
        lambda: nn.LocallyConnected2d((6, 5), 4, 3, (3, 2), (2, 1), 1, seed=0), [IMAGE],
    ),
    "LSTM": (
        lambda: nn.LSTM(4, 3, bidirectional=True, returns="last", peepholes=True, seed=0),
        [SEQUENCE],
    ),
    "Map": (lambda: nn.Map(nn.Linear(4, 3, seed=0)), [SEQUENCE, (3, 4)]),
    "MatMul": (nn.MatMul, [(2, 3, 4), (2, 4, 5)]),
    "Max": (lambda: nn.Max(1, keepdims=True), [SEQUENCE]),
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2, (1, 0)), [SEQUENCE]),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2, 1, True), [IMAGE]),
    "MaxPool3d": (
        lambda: nn.MaxPool3d((2, 3, 1), (1, 2, 2), (0, 1, 1, 0, 0, 0), True), [VOLUME],
    ),
    "Maxout": (lambda: nn.Maxout(4, 3, 2, seed=0), [SEQUENCE]),
    "Mean": (lambda: nn.Mean((1, 2)), [SEQUENCE]),
    "Min": (lambda: nn.Min(-1), [SEQUENCE]),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(4, 2, seed=0), [SEQUENCE, SEQUENCE]),
    "Narrow": (lambda: nn.Narrow(1, 2, 3), [SEQUENCE]),
    "Normalize": (lambda: nn.Normalize(4, scale=20), [IMAGE]),
    "PReLU": (lambda: nn.PReLU(4), [IMAGE]),
    "Pad": (lambda: nn.Pad((1, 2, 0, 1), mode="reflect"), [IMAGE]),
    "Parallel": (lambda: nn.Parallel(nn.Linear(4, 3, seed=0), nn.Tanh()), [SEQUENCE, (2, 2)]),
    "Permute": (lambda: nn.Permute((2, 1)), [SEQUENCE]),
    "Pick": (lambda: nn.Pick(-1), [SEQUENCE]),
    "PositionalEncoding": (lambda: nn.PositionalEncoding(4), [SEQUENCE]),
    "Quantized": (
        lambda: nn.Quantized(
            nn.Sequential(nn.Linear(4, 6, seed=0), nn.Tanh(), nn.Linear(6, 3, seed=1)),
            (("layers.2", 0.01, 128),), (("layers.2", True, -1.0, 1.0, 1e-4, ""),),
        ),
        [SEQUENCE],
    ),
    "RNN": (lambda: nn.RNN(4, 3, nonlinearity="tanh", seed=0), [SEQUENCE]),
    "RecurrentDecoder": (
        lambda: nn.RecurrentDecoder(nn.LSTM(4, 3, seed=0), 3, nn.Linear(3, 4, seed=1)), [(2, 4)],
    ),
    "Repeat": (lambda: nn.Repeat(3), [(2, 4)]),
    "Reshape": (lambda: nn.Reshape((-1, 2)), [SEQUENCE]),
    "Residual": (
        lambda: nn.Residual(nn.Linear(4, 3, seed=0), nn.Linear(4, 3, seed=1), nn.Tanh()),
        [SEQUENCE],
    ),
    "Resize": (lambda: nn.Resize((3, 9), align_corners=True), [IMAGE]),
    "SReLU": (lambda: nn.SReLU(4), [IMAGE]),
    "Scale": (lambda: nn.Scale(4), [IMAGE]),
    "Select": (lambda: nn.Select(1, -1), [SEQUENCE]),
    "SeparableConv2d": (lambda: nn.SeparableConv2d(4, 6, 3, multiplier=2, seed=0), [IMAGE]),
    "Sequential": (lambda: nn.Sequential(nn.Linear(4, 3, seed=0)).add(nn.Tanh()), [SEQUENCE]),
    "SpaceToDepth": (lambda: nn.SpaceToDepth(2), [(2, 4, 6, 3)]),
    "Split": (lambda: nn.Split((1, 3)), [SEQUENCE]),
    "Squeeze": (lambda: nn.Squeeze(1), [(2, 1, 3)]),
    "Sum": (lambda: nn.Sum(-1), [SEQUENCE]),
    "TimeDistributed": (lambda: nn.TimeDistributed(nn.Linear(4, 3, seed=0)), [SEQUENCE]),
    "TrajGRU": (
        lambda: nn.TrajGRU(2, 3, links=2, flow_channels=4, flow_kernel=3, seed=0), [VOLUME],
    ),
    "TransformerBlock": (
        lambda: nn.TransformerBlock(4, 2, 6, norm_first=True, causal=True, cross=True, seed=0),
        [SEQUENCE, (2, 3, 4)],
    ),
    "Unsqueeze": (lambda: nn.Unsqueeze(1), [SEQUENCE]),
    "Upsample": (lambda: nn.Upsample((2, 3), mode="bilinear"), [IMAGE]),
    "WithinChannelLRN": (lambda: nn.WithinChannelLRN(3), [IMAGE]),
}  # fmt: skip
for name in ("Log", "Sqrt"):
    FLOATS[name] = (getattr(nn, name), [])
FLOATS["Power"] = (lambda: nn.Power(3.0, 0.5, 1.0), [SEQUENCE])
for name in (
    "Abs", "ActivityRegularization", "AlphaDropout", "BinaryThreshold", "Dropout", "ELU", "Exp",
    "GELU", "GaussianDropout", "GaussianNoise", "GlobalAvgPool", "GlobalMaxPool",
    "GradientReversal", "HardShrink", "HardSigmoid", "HardSwish", "HardTanh", "Identity",
    "LeakyReLU", "LogSigmoid", "LogSoftmax", "Masking", "Mish", "RReLU", "ReLU", "ReLU6", "SELU",
    "SiLU", "Sigmoid", "SoftShrink", "Softmax", "Softmin", "Softplus", "Softsign", "SpatialDropout",
    "Square", "Tanh", "TanhShrink", "Threshold", "Flatten", "NegativeEntropyPenalty",
):  # fmt: skip
    FLOATS[name] = (getattr(nn, name), [SEQUENCE])
for name in (
    "Add", "Average", "CosineSimilarity", "Divide", "Dot", "Join", "Maximum", "Minimum", "Multiply",
    "PairwiseDistance", "Stack", "Subtract",
):  # fmt: skip
    FLOATS[name] = (getattr(nn, name), [(2, 3, 4), (2, 3, 4)])

#: Layers whose inputs are not all floats: how each is made, and its inputs.
REGIONS = np.array([[0, 0.3, 0.6, 3.2, 4.1], [1, 1, 0, 4.5, 5]], np.float32)
OTHERS: dict[str, tuple[Callable[[], nn.Module], list[Any]]] = {
    "RoIAlign": (lambda: nn.RoIAlign((2, 3), 0.9, 2), [normal(*IMAGE), REGIONS]),
    "RoIPool": (lambda: nn.RoIPool((2, 3), 0.9), [normal(*IMAGE), REGIONS]),
    "Embedding": (lambda: nn.Embedding(7, 3, 0, 1.0, seed=0), [np.array([[0, 3, 6], [1, 1, 2]])]),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(7, 3, 0, seed=0), [np.array([[0, 3, 6], [1, 1, 2]])]),
}


def inputs_of(name: str) -> list[np.ndarray]:
    """Return inputs of a layer, floats in float64 and away from kinks at 0."""
    if name in OTHERS:
        return OTHERS[name][1]
    if name in ("Log", "Sqrt"):
        return [np.abs(normal(*SEQUENCE)) + 0.1]
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(FLOATS[name][1])]
    return [x + np.sign(x) * 1e-2 for x in arrays]
