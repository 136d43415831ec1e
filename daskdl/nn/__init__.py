"""Modules: layers with parameters, containers, losses, and the model file."""

from types import ModuleType as _ModuleType

from daskdl.nn import init as init
from daskdl.nn.attention.attention import *
from daskdl.nn.attention.embedding import *
from daskdl.nn.conv.conv import *
from daskdl.nn.conv.locally_connected import *
from daskdl.nn.conv.padding import *
from daskdl.nn.core.graph import *
from daskdl.nn.core.modelfile import *
from daskdl.nn.core.module import *
from daskdl.nn.core.nodes import *
from daskdl.nn.core.parameter import *
from daskdl.nn.core.sequential import *
from daskdl.nn.core.state import *
from daskdl.nn.linear import *
from daskdl.nn.lora import *
from daskdl.nn.losses import *
from daskdl.nn.norm import *
from daskdl.nn.pointwise.activations import *
from daskdl.nn.pointwise.elementwise import *
from daskdl.nn.pointwise.random import *
from daskdl.nn.pool import *
from daskdl.nn.quantized import *
from daskdl.nn.recurrent.convlstm import *
from daskdl.nn.recurrent.recurrent import *
from daskdl.nn.shape.merge import *
from daskdl.nn.shape.sequence import *
from daskdl.nn.shape.shape import *

# All public names that the imports above bring; type checkers read the imports themselves.
vars()["__all__"] = ["init"] + [
    n for n, v in vars().items() if n[0] != "_" and not isinstance(v, _ModuleType)
]
