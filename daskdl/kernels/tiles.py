"""What Winograd's convolution does with tiles: transform, multiply, transform back."""

from __future__ import annotations

from daskdl.kernels.jit import jit
from daskdl.kernels.microkernel import COLUMNS, DEPTH, LANES, ROWS, address, multiply
from daskdl.kernels.transforms import scheme, tile_transform

#: Channels of a tile that go through memory kept aside at a time, where it meets an edge.
CHUNK = 64

_three, _five = scheme(3, 4), scheme(5, 4)
_input3, _input5 = tile_transform(_three.input), tile_transform(_five.input)
_filter3, _filter5 = tile_transform(_three.filter), tile_transform(_five.filter)
_output3, _output5 = tile_transform(_three.output), tile_transform(_five.output)
_spread3, _spread5 = tile_transform(_three.output.T), tile_transform(_five.output.T)
_fold3, _fold5 = tile_transform(_three.filter.T), tile_transform(_five.filter.T)

_M = 4


@jit
def inputs(x, v, width, kernel, top, left, rows, columns, start, stop, origin, spare):  # type: ignore[no-untyped-def]
    """Transform the tiles ``start`` to ``stop`` into v (points, tiles * width + rest).

    A tile's place in ``v`` counts from ``origin``; its corner lies (top, left) off the corner of
    its results, which are cut from images of (rows, columns).
    """
    height, breadth, channels = x.shape[1:]
    size, side = x.itemsize, kernel + _M - 1
    down, across = -(-rows // _M), -(-columns // _M)
    plane = v.shape[1] * size
    flat = x.reshape(-1)
    for index in range(start, stop):
        n, rest = divmod(index, down * across)
        i, j = rest // across * _M - top, rest % across * _M - left
        target = address(v) + (index - origin) * width * size
        inside = i >= 0 and j >= 0 and i + side <= height and j + side <= breadth
        if inside and channels % LANES == 0:
            source = address(x) + ((n * height + i) * breadth + j) * channels * size
            if kernel == 3:
                _input3(
                    x, source, breadth * channels * size, channels * size, target, side * plane,
                    plane, channels,
                )  # fmt: skip
            else:
                _input5(
                    x, source, breadth * channels * size, channels * size, target, side * plane,
                    plane, channels,
                )  # fmt: skip
            continue
        for first in range(0, channels, CHUNK):
            many = min(CHUNK, channels - first)
            for p in range(side):
                for q in range(side):
                    room = spare[p * side + q]
                    if 0 <= i + p < height and 0 <= j + q < breadth:
                        place = ((n * height + i + p) * breadth + j + q) * channels + first
                        for c in range(many):
                            room[c] = flat[place + c]
                        room[many:] = 0
                    else:
                        room[:] = 0
            to, padded = target + first * size, -(-many // LANES) * LANES
            if kernel == 3:
                _input3(
                    x, address(spare), side * CHUNK * size, CHUNK * size, to, side * plane, plane,
                    padded,
                )  # fmt: skip
            else:
                _input5(
                    x, address(spare), side * CHUNK * size, CHUNK * size, to, side * plane, plane,
                    padded,
                )  # fmt: skip


@jit
def gradients(dy, z, width, kernel, start, stop, origin, spare):  # type: ignore[no-untyped-def]
    """Transform the tiles ``start`` to ``stop`` of results' gradients into z, as :func:`inputs`."""
    rows, columns, filters = dy.shape[1:]
    size, side = dy.itemsize, kernel + _M - 1
    down, across = -(-rows // _M), -(-columns // _M)
    plane = z.shape[1] * size
    flat = dy.reshape(-1)
    for index in range(start, stop):
        n, rest = divmod(index, down * across)
        i, j = rest // across * _M, rest % across * _M
        target = address(z) + (index - origin) * width * size
        if i + _M <= rows and j + _M <= columns and filters % LANES == 0:
            source = address(dy) + ((n * rows + i) * columns + j) * filters * size
            if kernel == 3:
                _spread3(
                    dy, source, columns * filters * size, filters * size, target, side * plane,
                    plane, filters,
                )  # fmt: skip
            else:
                _spread5(
                    dy, source, columns * filters * size, filters * size, target, side * plane,
                    plane, filters,
                )  # fmt: skip
            continue
        for first in range(0, filters, CHUNK):
            many = min(CHUNK, filters - first)
            for p in range(_M):
                for q in range(_M):
                    room = spare[p * _M + q]
                    if i + p < rows and j + q < columns:
                        place = ((n * rows + i + p) * columns + j + q) * filters + first
                        for c in range(many):
                            room[c] = flat[place + c]
                        room[many:] = 0
                    else:
                        room[:] = 0
            to, padded = target + first * size, -(-many // LANES) * LANES
            if kernel == 3:
                _spread3(
                    dy, address(spare), _M * CHUNK * size, CHUNK * size, to, side * plane, plane,
                    padded,
                )  # fmt: skip
            else:
                _spread5(
                    dy, address(spare), _M * CHUNK * size, CHUNK * size, to, side * plane, plane,
                    padded,
                )  # fmt: skip


@jit
def filters(packed, kernel, channels, panels):  # type: ignore[no-untyped-def]
    """Transform packed weights (n, taps, in + 1, COLUMNS) to panels (n, points, in + 1, COLUMNS).

    The row more than there are channels keeps points apart: at steps of whole 4 kB, which many
    numbers of channels would give, all of them would fall on the same few places of a cache.
    """
    side = kernel + _M - 1
    step = packed.shape[2] * COLUMNS * packed.itemsize
    for j in range(panels.shape[0]):
        source, target = address(packed[j]), address(panels[j])
        numbers = channels * COLUMNS
        if kernel == 3:
            _filter3(packed, source, 3 * step, step, target, side * step, step, numbers)
        else:
            _filter5(packed, source, 5 * step, step, target, side * step, step, numbers)


@jit
def products(v, width, panels, results, sums, count, channels, table):  # type: ignore[no-untyped-def]
    """Multiply ``count`` tiles of v with panels (panels, points, in + 1, COLUMNS)."""
    size = v.itemsize
    entry, targets = table[0], table[1]
    entry[ROWS] = 0
    row = COLUMNS * size
    for point in range(v.shape[0]):
        from_v, to = address(v[point]), address(results[point])
        for begin in range(0, channels, DEPTH):
            entry[ROWS + 1] = min(DEPTH, channels - begin)
            for j in range(panels.shape[0]):
                panel = address(panels[j, point, begin])
                for first in range(0, count, ROWS):
                    for i in range(ROWS):
                        tile = min(first + i, count - 1)
                        entry[i] = from_v + (tile * width + begin) * size
                        targets[i] = to + tile * sums * size
                    multiply(
                        v, address(entry), 1, size, panel, row, address(targets), j * row,
                        begin > 0,
                    )  # fmt: skip


@jit
def outputs(results, sums, kernel, y, first_filter, last_filter, start, stop, add, spare):  # type: ignore[no-untyped-def]
    """Transform products back to the filters' results on the tiles ``start`` to ``stop`` of y.

    The products are of these tiles and filters only: (points, tiles * sums + rest).
    """
    rows, columns, all_filters = y.shape[1:]
    size, side = y.itemsize, kernel + _M - 1
    down, across = -(-rows // _M), -(-columns // _M)
    plane = results.shape[1] * size
    flat = y.reshape(-1)
    wanted = last_filter - first_filter
    for index in range(start, stop):
        n, rest = divmod(index, down * across)
        i, j = rest // across * _M, rest % across * _M
        source = address(results) + (index - start) * sums * size
        place = ((n * rows + i) * columns + j) * all_filters + first_filter
        whole = i + _M <= rows and j + _M <= columns
        if whole and wanted % LANES == 0 and not add:
            target = address(y) + place * size
            if kernel == 3:
                _output3(
                    y, source, side * plane, plane, target, columns * all_filters * size,
                    all_filters * size, wanted,
                )  # fmt: skip
            else:
                _output5(
                    y, source, side * plane, plane, target, columns * all_filters * size,
                    all_filters * size, wanted,
                )  # fmt: skip
            continue
        for first in range(0, wanted, CHUNK):
            many = min(CHUNK, wanted - first)
            begin, padded = source + first * size, -(-many // LANES) * LANES
            if kernel == 3:
                _output3(
                    y, begin, side * plane, plane, address(spare), _M * CHUNK * size, CHUNK * size,
                    padded,
                )  # fmt: skip
            else:
                _output5(
                    y, begin, side * plane, plane, address(spare), _M * CHUNK * size, CHUNK * size,
                    padded,
                )  # fmt: skip
            for p in range(min(_M, rows - i)):
                for q in range(min(_M, columns - j)):
                    room = spare[p * _M + q]
                    to = place + (p * columns + q) * all_filters + first
                    if add:
                        for c in range(many):
                            flat[to + c] += room[c]
                    else:
                        for c in range(many):
                            flat[to + c] = room[c]


@jit
def sums(v, width, z, sums, count, du, dw, add, last, start, stop, table, spare):  # type: ignore[no-untyped-def]
    """Sum over ``count`` tiles the gradients to the weights of some groups of ``ROWS`` filters.

    ``du`` (points, filters or ROWS and one more, width) holds the sums; with ``last`` they are
    folded into dw.
    """
    size = v.itemsize
    filters, kernel, channels = dw.shape[0], dw.shape[1], dw.shape[3]
    side = kernel + _M - 1
    entry, targets = table[0], table[1]
    kept = du.shape[1] == filters + 1
    flat = dw.reshape(-1)
    wide = du.shape[2] * size
    for group in range(start, stop):
        first = group * ROWS
        number = min(ROWS, filters - first)
        origin = first if kept else 0
        for point in range(v.shape[0]):
            from_v, from_z, to = address(v[point]), address(z[point]), address(du[point, origin])
            for i in range(ROWS):
                targets[i] = to + min(i, number - 1) * wide
            for begin in range(0, count, DEPTH):
                entry[ROWS + 1] = min(DEPTH, count - begin)
                for i in range(ROWS):
                    row = first + min(i, number - 1)
                    entry[i] = from_z + (begin * sums + row) * size
                for j in range(-(-channels // COLUMNS)):
                    entry[ROWS] = (begin * width + j * COLUMNS) * size
                    multiply(
                        v, address(entry), 1, sums * size, from_v, width * size, address(targets),
                        j * COLUMNS * size, add or begin > 0,
                    )  # fmt: skip
        if not last:
            continue
        plane = du.shape[1] * wide
        for i in range(number):
            source = address(du[0, origin + i])
            for c in range(0, channels, CHUNK):
                many = min(CHUNK, channels - c)
                begin, padded = source + c * size, -(-many // LANES) * LANES
                if kernel == 3:
                    _fold3(
                        v, begin, side * plane, plane, address(spare), kernel * CHUNK * size,
                        CHUNK * size, padded,
                    )  # fmt: skip
                else:
                    _fold5(
                        v, begin, side * plane, plane, address(spare), kernel * CHUNK * size,
                        CHUNK * size, padded,
                    )  # fmt: skip
                for tap in range(kernel * kernel):
                    place = ((first + i) * kernel * kernel + tap) * channels + c
                    room = spare[tap]
                    for b in range(many):
                        flat[place + b] = room[b]
