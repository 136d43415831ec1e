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
from daskdl.ops.arithmetic import add, divide, matmul, multiply, subtract
from daskdl.ops.batchnorm import Statistics, batch_norm, batch_norm_inference
from daskdl.ops.bidirectional import bidirectional
from daskdl.ops.conv1d import conv1d
from daskdl.ops.conv2d import conv2d
from daskdl.ops.conv_transpose import conv_transpose2d
from daskdl.ops.convlstm import convlstm
from daskdl.ops.dropout import dropout
from daskdl.ops.embedding import embedding
from daskdl.ops.gru import gru
from daskdl.ops.l2norm import normalize
from daskdl.ops.layernorm import layer_norm
from daskdl.ops.linear import linear
from daskdl.ops.losses import cross_entropy, precipitation, squared_error
from daskdl.ops.lrn import local_response_norm
from daskdl.ops.lstm import lstm
from daskdl.ops.pooling import avg_pool2d, global_avg_pool2d, global_max_pool2d, max_pool2d
from daskdl.ops.reduce import mean, sum
from daskdl.ops.rnn import rnn
from daskdl.ops.shape import concatenate, depth_to_space, reshape, space_to_depth, take
from daskdl.ops.softmax import log_softmax, softmax
from daskdl.ops.trajgru import trajgru

__all__ = [
    "Statistics",
    "add",
    "avg_pool2d",
    "batch_norm",
    "batch_norm_inference",
    "bidirectional",
    "concatenate",
    "conv1d",
    "conv2d",
    "conv_transpose2d",
    "convlstm",
    "cross_entropy",
    "depth_to_space",
    "divide",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "global_avg_pool2d",
    "global_max_pool2d",
    "gru",
    "hard_sigmoid",
    "hard_swish",
    "hard_tanh",
    "layer_norm",
    "leaky_relu",
    "linear",
    "local_response_norm",
    "log_softmax",
    "lstm",
    "matmul",
    "max_pool2d",
    "mean",
    "multiply",
    "normalize",
    "precipitation",
    "prelu",
    "relu",
    "relu6",
    "reshape",
    "rnn",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "space_to_depth",
    "squared_error",
    "subtract",
    "sum",
    "take",
    "tanh",
    "trajgru",
]
