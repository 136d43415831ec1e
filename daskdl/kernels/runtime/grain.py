"""Grain sizes: how much work a thread has to get at least, by what a pass does with a number.

Below it a second thread costs more than it brings. What is counted are the numbers that a pass
reads, or writes if these are more. Products of matrices have a grain of their own, in
multiplications: :func:`daskdl.kernels.runtime.threads.least_of`.
"""

from __future__ import annotations

#: A few operations, then written: steps, activations, norms, copies, tables, pooling, resizing.
STREAM = 1 << 15
#: Read to be summed up, or added at the speed of memory: sums, losses, two arrays' sum, colours.
SUM = 1 << 16
#: An exponential or a power: softmax, cross entropy, local response norm.
EXPONENTIAL = 1 << 13
#: Four pixels at a place of its own: warps.
WARP = 1 << 14
#: The logarithm of a sum of exponentials: CTC.
LOG_ADDITION = 1 << 9
#: Rows of a recurrent cell.
CELL_ROWS = 32


def least(grain: int, size: int) -> int:
    """Return the least number of items, of so many numbers each, for a part."""
    return 1 + grain // max(1, size)
