"""Differentiable operations: one plain function each, arrays in, arrays out."""

from types import ModuleType as _ModuleType

from daskdl.ops.activations import *
from daskdl.ops.arithmetic import *
from daskdl.ops.attention import *
from daskdl.ops.batchnorm import *
from daskdl.ops.bidirectional import *
from daskdl.ops.cast import *
from daskdl.ops.conv1d import *
from daskdl.ops.conv2d import *
from daskdl.ops.conv3d import *
from daskdl.ops.conv_transpose import *
from daskdl.ops.convlstm import *
from daskdl.ops.cumulative import *
from daskdl.ops.dropout import *
from daskdl.ops.einsum import *
from daskdl.ops.elementwise import *
from daskdl.ops.embedding import *
from daskdl.ops.extremes import *
from daskdl.ops.fourier import *
from daskdl.ops.grid_sample import *
from daskdl.ops.groupnorm import *
from daskdl.ops.gru import *
from daskdl.ops.interpolate import *
from daskdl.ops.l2norm import *
from daskdl.ops.layernorm import *
from daskdl.ops.linear import *
from daskdl.ops.losses import cross_entropy as cross_entropy
from daskdl.ops.losses import precipitation as precipitation
from daskdl.ops.losses import squared_error as squared_error
from daskdl.ops.lrn import *
from daskdl.ops.lstm import *
from daskdl.ops.operators import *
from daskdl.ops.pool_nd import *
from daskdl.ops.pooling import *
from daskdl.ops.products import *
from daskdl.ops.reduce import *
from daskdl.ops.regions import *
from daskdl.ops.resample import *
from daskdl.ops.rnn import *
from daskdl.ops.scatter import *
from daskdl.ops.shape import *
from daskdl.ops.softmax import *
from daskdl.ops.special import *
from daskdl.ops.thresholds import *
from daskdl.ops.topk import *
from daskdl.ops.trajgru import *
from daskdl.ops.trigonometry import *
from daskdl.ops.unfold import *
from daskdl.ops.volumes import *

# The names that these files list. Type checkers go by the imports above, as they stand.
vars()["__all__"] = [n for n, v in vars().items() if n[0] != "_" and not isinstance(v, _ModuleType)]
