"""Rows of A for products of bytes: the places of their taps' bytes, and copies of these."""

from __future__ import annotations

from daskdl.kernels.products.microkernel import address
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.tiles.rows import copy_bytes, fill_bytes


@jit
def write_table(x, taps, plan, around, first, here, whole, table):
    """Write the addresses that results read, tap by tap, ``whole`` for each.

    Results are ``here`` from the ``first`` on; the last one is repeated.
    """
    height, width, channels, rows, columns = plan[1], plan[2], plan[3], plan[4], plan[5]
    for t in range(taps.shape[0]):
        line = table[t * whole : (t + 1) * whole]
        i = 0
        while i < here:
            image, place = divmod(first + i, rows * columns)
            row, column = divmod(place, columns)
            n = min(here - i, columns - column)
            at_row, at = row * plan[7] + taps[t, 0], column * plan[8] + taps[t, 1]
            if at_row < 0 or at_row >= height:
                line[i : i + n] = address(around)
            else:
                source = address(x) + ((image * height + at_row) * width + at) * channels
                step = plan[8] * channels
                for j in range(n):
                    line[i + j] = source + j * step
                j = 0
                while j < n and at + j * plan[8] < 0:
                    line[i + j] = address(around)
                    j += 1
                j = n - 1
                while j >= 0 and at + j * plan[8] >= width:
                    line[i + j] = address(around)
                    j -= 1
            i += n
        line[here:] = line[here - 1]


@jit
def gather_rows(table, taps, here, width, rows, pitch):
    """Copy the bytes of all taps of a result, ``width`` in all, into one row of ``pitch`` bytes.

    ``table`` comes from :func:`write_table`; a row ends with zeros.
    """
    each = width // taps
    for i in range(here):
        to = rows + i * pitch
        for tap in range(taps):
            copy_bytes(table[tap * here + i], to + tap * each, each)
        fill_bytes(to + width, pitch - width, 0)
