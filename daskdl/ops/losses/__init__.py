"""Losses: one number, the mean over the samples of a batch.

They raise the errors of all operations, and a DataError if a target, or a probability, has a number
that its docstring does not allow.
"""

from types import ModuleType as _ModuleType

from daskdl.ops.losses.binary import *
from daskdl.ops.losses.crossentropy import *
from daskdl.ops.losses.ctc import *
from daskdl.ops.losses.images import *
from daskdl.ops.losses.likelihood import *
from daskdl.ops.losses.margins import *
from daskdl.ops.losses.pairs import *
from daskdl.ops.losses.reduction import *
from daskdl.ops.losses.regression import *
from daskdl.ops.losses.ssim import *

# The names that these files list. Type checkers use the imports above.
vars()["__all__"] = [n for n, v in vars().items() if n[0] != "_" and not isinstance(v, _ModuleType)]
