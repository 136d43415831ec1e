"""Differentiable operations: one plain function each, arrays in, arrays out.

Arrays whose shapes or dtypes differ from the docstring's, or do not fit each other, raise a
ShapeError that names them; invalid settings raise a SettingsError.
"""

from types import ModuleType as _ModuleType

from daskdl.ops.attention import *
from daskdl.ops.conv.conv import *
from daskdl.ops.conv.conv_transpose import *
from daskdl.ops.conv.unfold import *
from daskdl.ops.conv.volumes import *
from daskdl.ops.int8 import *
from daskdl.ops.linear import *
from daskdl.ops.losses import cross_entropy as cross_entropy
from daskdl.ops.losses import precipitation as precipitation
from daskdl.ops.losses import squared_error as squared_error
from daskdl.ops.norm.batchnorm import *
from daskdl.ops.norm.norms import *
from daskdl.ops.pointwise.activations import *
from daskdl.ops.pointwise.arithmetic import *
from daskdl.ops.pointwise.elementwise import *
from daskdl.ops.pointwise.operators import *
from daskdl.ops.pointwise.special import *
from daskdl.ops.pool.grid_sample import *
from daskdl.ops.pool.pool_nd import *
from daskdl.ops.pool.pooling import *
from daskdl.ops.pool.regions import *
from daskdl.ops.pool.resample import *
from daskdl.ops.recurrent.convlstm import *
from daskdl.ops.recurrent.lstm import *
from daskdl.ops.recurrent.rnn import *
from daskdl.ops.recurrent.trajgru import *
from daskdl.ops.shape.fourier import *
from daskdl.ops.shape.reduce import *
from daskdl.ops.shape.shape import *

# The names that these files list. Type checkers use the imports above.
vars()["__all__"] = [n for n, v in vars().items() if n[0] != "_" and not isinstance(v, _ModuleType)]
