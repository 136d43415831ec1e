"""Modules: layers with parameters, containers, losses, and the model file."""

from types import ModuleType as _ModuleType

from daskdl.nn import init as init
from daskdl.nn.activations import *
from daskdl.nn.attention import *
from daskdl.nn.batchnorm import *
from daskdl.nn.bilinear import *
from daskdl.nn.border import *
from daskdl.nn.branches import *
from daskdl.nn.conv1d import *
from daskdl.nn.conv2d import *
from daskdl.nn.conv3d import *
from daskdl.nn.conv_transpose import *
from daskdl.nn.convlstm import *
from daskdl.nn.distances import *
from daskdl.nn.draws import *
from daskdl.nn.dropout import *
from daskdl.nn.elementwise import *
from daskdl.nn.embedding import *
from daskdl.nn.global_pooling import *
from daskdl.nn.graph import *
from daskdl.nn.groupnorm import *
from daskdl.nn.l2norm import *
from daskdl.nn.layernorm import *
from daskdl.nn.linear import *
from daskdl.nn.locally_connected import *
from daskdl.nn.losses import *
from daskdl.nn.lrn import *
from daskdl.nn.maxout import *
from daskdl.nn.merge import *
from daskdl.nn.modelfile import *
from daskdl.nn.module import *
from daskdl.nn.noise import *
from daskdl.nn.parameter import *
from daskdl.nn.penalties import *
from daskdl.nn.pooling import *
from daskdl.nn.positions import *
from daskdl.nn.prelu import *
from daskdl.nn.recurrent import *
from daskdl.nn.reduce import *
from daskdl.nn.regions import *
from daskdl.nn.resample import *
from daskdl.nn.separable import *
from daskdl.nn.sequence import *
from daskdl.nn.sequential import *
from daskdl.nn.shape import *
from daskdl.nn.softmax import *
from daskdl.nn.thresholds import *
from daskdl.nn.trajgru import *
from daskdl.nn.transformer import *

# The names that these files list. Type checkers go by the imports above, as they stand.
vars()["__all__"] = ["init"] + [
    n for n, v in vars().items() if n[0] != "_" and not isinstance(v, _ModuleType)
]
