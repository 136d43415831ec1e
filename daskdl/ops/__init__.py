"""Differentiable operations: one plain function each, arrays in, arrays out."""

from daskdl.ops.activations import (
    elu,
    gelu,
    hard_sigmoid,
    hard_swish,
    hard_tanh,
    leaky_relu,
    prelu,
    relu,
    relu6,
    sigmoid,
    silu,
    softplus,
    tanh,
)
from daskdl.ops.arithmetic import add, divide, matmul, mean, multiply, subtract
from daskdl.ops.conv2d import conv2d
from daskdl.ops.convlstm import convlstm
from daskdl.ops.linear import linear
from daskdl.ops.losses import cross_entropy, precipitation, squared_error
from daskdl.ops.shape import concatenate, depth_to_space, reshape, space_to_depth, take

__all__ = [
    "add",
    "concatenate",
    "conv2d",
    "convlstm",
    "cross_entropy",
    "depth_to_space",
    "divide",
    "elu",
    "gelu",
    "hard_sigmoid",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "linear",
    "matmul",
    "mean",
    "multiply",
    "precipitation",
    "prelu",
    "relu",
    "relu6",
    "reshape",
    "sigmoid",
    "silu",
    "softplus",
    "space_to_depth",
    "squared_error",
    "subtract",
    "take",
    "tanh",
]
