"""Grain sizes: the least work of a thread, by the arithmetic of a pass.

With less, a second thread costs more than it saves. A grain counts the numbers that a pass reads,
or those it writes if they are more. The grain of matrix products counts operations:
:func:`daskdl.kernels.runtime.threads.least_of`.
"""

from __future__ import annotations

#: A few operations and a store: steps, activations, norms, copies, tables, pooling, resizing.
STREAM = 1 << 15
#: Additions at the speed of memory: sums, losses, two arrays' sum, colours.
SUM = 1 << 16
#: An exponential or a power: softmax, cross entropy, local response norm.
EXPONENTIAL = 1 << 13
#: Four pixels at an arbitrary place: warps.
WARP = 1 << 14
#: The logarithm of a sum of exponentials: CTC.
LOG_ADDITION = 1 << 9
#: Rows of a recurrent cell.
CELL_ROWS = 32


def least(grain: int, size: int) -> int:
    """Return the least number of items of a part; an item has ``size`` numbers."""
    return 1 + grain // max(1, size)
