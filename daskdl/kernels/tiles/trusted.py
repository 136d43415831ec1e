"""A check, once per process, that AMX's products have the known order of sums."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.microkernel import address, keep
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.precision import permitted
from daskdl.kernels.tiles.instructions import (
    BLOCK,
    LINE,
    TILE,
    begin_tiles,
    end_tiles,
    multiply_bfloat16,
)
from daskdl.kernels.tiles.ordered import multiply_in_order

logger = logging.getLogger(__name__)

#: Tiles of summands of the product that is checked.
_TILES = 3


@cache
def usable() -> bool:
    """Return whether AMX computes products: it is permitted and has the expected bits."""
    if not permitted():
        return False
    numbers = np.random.default_rng(0).normal(size=(2, 2, _TILES, TILE // 2)).astype(np.float32)
    a, b = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    return agree(multiplied(a, b, True), multiplied(a, b, False))


def agree(by_amx: NDArray[Any], without: NDArray[Any]) -> bool:
    """Return whether AMX's results are as expected; log a warning if not."""
    if np.array_equal(by_amx, without):
        return True
    logger.warning(
        "AMX's tiles add up in another order here than on known processors, so that products of "
        "%s are computed without them",
        "bfloat16" if by_amx.dtype == np.float32 else "int8",
    )
    return False


def multiplied(a: NDArray[np.uint16], b: NDArray[np.uint16], amx: bool) -> NDArray[np.float32]:
    """Return the product (32, 32) of bfloat16 tiles (2, tiles, 512), of 32 rows and 32 columns."""
    c = np.zeros((BLOCK, BLOCK), np.float32)
    _product(a, b, c, np.arange(a.shape[1]) * TILE, amx)
    return c


@jit
def _product(a, b, c, table, amx):
    tiles = table.size
    size = tiles * TILE
    if amx:
        begin_tiles()
        multiply_bfloat16(
            address(table), tiles, address(a), address(a) + size, LINE, address(b),
            address(b) + size, TILE, LINE, address(c), BLOCK * 4, False,
        )  # fmt: skip
        end_tiles()
    else:
        multiply_in_order(
            address(table), tiles, address(a), address(a) + size, LINE, address(b),
            address(b) + size, TILE, LINE, address(c), BLOCK * 4, False,
        )  # fmt: skip
    keep(table)
