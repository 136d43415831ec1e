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
from daskdl.ops.attention import attention
from daskdl.ops.batchnorm import Statistics, batch_norm, batch_norm_inference
from daskdl.ops.bidirectional import bidirectional
from daskdl.ops.conv1d import conv1d
from daskdl.ops.conv2d import conv2d
from daskdl.ops.conv3d import conv3d, conv_transpose3d
from daskdl.ops.conv_transpose import conv_transpose2d
from daskdl.ops.convlstm import convlstm
from daskdl.ops.dropout import dropout
from daskdl.ops.elementwise import abs, clip, exp, log, maximum, minimum, power, sqrt, square, where
from daskdl.ops.embedding import embedding
from daskdl.ops.extremes import amax, amin
from daskdl.ops.groupnorm import group_norm
from daskdl.ops.gru import gru
from daskdl.ops.l2norm import normalize
from daskdl.ops.layernorm import layer_norm
from daskdl.ops.linear import linear
from daskdl.ops.losses import cross_entropy, precipitation, squared_error
from daskdl.ops.lrn import local_response_norm
from daskdl.ops.lstm import lstm
from daskdl.ops.operators import negative
from daskdl.ops.pooling import avg_pool2d, global_avg_pool2d, global_max_pool2d, max_pool2d
from daskdl.ops.reduce import mean, sum
from daskdl.ops.regions import adaptive_max_pool2d, roi_align, roi_pool
from daskdl.ops.resample import adaptive_avg_pool2d, along, resize_bilinear, upsample_nearest
from daskdl.ops.rnn import rnn
from daskdl.ops.shape import (
    concatenate,
    depth_to_space,
    flip,
    pad,
    repeat,
    reshape,
    space_to_depth,
    split,
    stack,
    take,
    transpose,
)
from daskdl.ops.softmax import log_softmax, softmax
from daskdl.ops.thresholds import hard_shrink, soft_shrink, softsign, threshold
from daskdl.ops.trajgru import trajgru
from daskdl.ops.unfold import fold, unfold
from daskdl.ops.volumes import avg_pool1d, avg_pool3d, max_pool1d, max_pool3d

__all__ = [
    "Statistics",
    "abs",
    "adaptive_avg_pool2d",
    "adaptive_max_pool2d",
    "add",
    "along",
    "amax",
    "amin",
    "attention",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "batch_norm_inference",
    "bidirectional",
    "clip",
    "concatenate",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convlstm",
    "cross_entropy",
    "depth_to_space",
    "divide",
    "dropout",
    "elu",
    "embedding",
    "exp",
    "flip",
    "fold",
    "gelu",
    "global_avg_pool2d",
    "global_max_pool2d",
    "group_norm",
    "gru",
    "hard_shrink",
    "hard_sigmoid",
    "hard_swish",
    "hard_tanh",
    "layer_norm",
    "leaky_relu",
    "linear",
    "local_response_norm",
    "log",
    "log_softmax",
    "lstm",
    "matmul",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "maximum",
    "mean",
    "minimum",
    "multiply",
    "negative",
    "normalize",
    "pad",
    "power",
    "precipitation",
    "prelu",
    "relu",
    "relu6",
    "repeat",
    "reshape",
    "resize_bilinear",
    "rnn",
    "roi_align",
    "roi_pool",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "space_to_depth",
    "split",
    "sqrt",
    "square",
    "squared_error",
    "stack",
    "subtract",
    "sum",
    "take",
    "tanh",
    "threshold",
    "trajgru",
    "transpose",
    "unfold",
    "upsample_nearest",
    "where",
]
