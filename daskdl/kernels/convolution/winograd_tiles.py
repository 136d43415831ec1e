"""Tiles of Winograd's convolution: transformed, multiplied, transformed back."""

from __future__ import annotations

from daskdl.kernels.convolution.winograd_transforms import scheme, tile_transform
from daskdl.kernels.products.finish import limited
from daskdl.kernels.products.microkernel import (
    COLUMNS,
    DEPTH,
    FEW_ROWS,
    LANES,
    ROWS,
    SEGMENT,
    address,
    clear_vector,
    copy_vector,
    multiply,
    multiply_few,
)
from daskdl.kernels.runtime.jit import jit

#: Groups of ``ROWS`` filters whose gradients are summed and folded together: whole vectors.
FOLDED = LANES // 2
#: Channels of a tile over an edge that are copied to spare memory together.
CHUNK = 12 * LANES

_three, _five = scheme(3, 4), scheme(5, 4)
_input3, _input5 = tile_transform(_three.input), tile_transform(_five.input)
_filter3, _filter5 = tile_transform(_three.filter), tile_transform(_five.filter)
_output3, _output5 = tile_transform(_three.output), tile_transform(_five.output)
_more3, _more5 = tile_transform(_three.output, True), tile_transform(_five.output, True)
_end3, _end5 = (tile_transform(s.output, finishes=True) for s in (_three, _five))
_spread3, _spread5 = tile_transform(_three.output.T), tile_transform(_five.output.T)
_fold3, _fold5 = tile_transform(_three.filter.T), tile_transform(_five.filter.T)

_M = 4


@jit
def _set_aside(image, n, i, j, side, first, many, spare):
    """Copy many channels of a tile at row i and column j, with zeros outside of the image."""
    height, width, channels = image.shape[1:]
    flat, size = image.reshape(-1), image.itemsize
    whole, padded = many // LANES * LANES, -(-many // LANES) * LANES
    # No views of rows: counting their references takes longer than copying a row.
    for p in range(side):
        for q in range(side):
            pixel = p * side + q
            room = address(spare) + pixel * CHUNK * size
            if 0 <= i + p < height and 0 <= j + q < width:
                place = ((n * height + i + p) * width + j + q) * channels + first
                for c in range(0, whole, LANES):
                    copy_vector(image, address(image) + (place + c) * size, room + c * size)
                for c in range(whole, padded):
                    spare[pixel, c] = flat[place + c] if c < many else image.dtype.type(0)
            else:
                for c in range(0, padded, LANES):
                    clear_vector(image, room + c * size)


@jit
def inputs(x, v, strip, step, kernel, top, left, rows, columns, start, stop, origin, spare):
    """Transform the tiles ``start`` to ``stop`` into v (points, strips * step + rest).

    A strip holds all tiles' numbers of ``strip`` channels, which are all channels or a divisor of
    ``CHUNK``; it begins ``step`` numbers after the one before. A tile's place counts from
    ``origin``; its corner is (top, left) before its results' corner, on (rows, columns) of results.
    """
    corner = top, left, -(-rows // _M), -(-columns // _M)
    _transform(x, v, strip, step, kernel, False, corner, start, stop, origin, spare)


@jit
def gradients(dy, z, strip, step, kernel, start, stop, origin, spare):
    """Transform the tiles ``start`` to ``stop`` of results' gradients into z, as :func:`inputs`."""
    corner = 0, 0, -(-dy.shape[1] // _M), -(-dy.shape[2] // _M)
    _transform(dy, z, strip, step, kernel, True, corner, start, stop, origin, spare)


@jit
def _transform(image, v, strip, step, kernel, spread, corner, start, stop, origin, spare):
    """Transform tiles of inputs or, with ``spread``, of results' gradients.

    ``corner`` is (top, left) and the number of an image's tiles down and across.
    """
    height, breadth, channels = image.shape[1:]
    top, left, down, across = corner
    size, points = image.itemsize, kernel + _M - 1
    side = _M if spread else points
    plane = v.shape[1] * size
    leap = (step if strip < channels else CHUNK) * size
    for index in range(start, stop):
        n, rest = divmod(index, down * across)
        i, j = rest // across * _M - top, rest % across * _M - left
        inside = i >= 0 and j >= 0 and i + side <= height and j + side <= breadth
        inside = inside and channels % LANES == 0
        source = address(image) + ((n * height + i) * breadth + j) * channels * size
        to = address(v) + (index - origin) * strip * size
        part = channels if inside else CHUNK
        for first in range(0, channels, part):
            many = min(part, channels - first)
            at, pixel, line = source + first * size, channels * size, breadth * channels * size
            if not inside:
                # Transforms read whole vectors: at an edge these would lie outside of the image.
                _set_aside(image, n, i, j, side, first, many, spare)
                at, pixel, line = address(spare), CHUNK * size, side * CHUNK * size
                many = -(-many // LANES) * LANES
            for begin in range(0, many, strip):
                here, count = at + begin * size, min(strip, many - begin)
                if spread:
                    if kernel == 3:
                        _spread3(image, here, line, pixel, to, points * plane, plane, count)
                    else:
                        _spread5(image, here, line, pixel, to, points * plane, plane, count)
                elif kernel == 3:
                    _input3(image, here, line, pixel, to, points * plane, plane, count)
                else:
                    _input5(image, here, line, pixel, to, points * plane, plane, count)
                to += leap


@jit
def filters(packed, kernel, channels, panels):
    """Transform packed weights (n, taps, in + 1, COLUMNS) to panels (n, points, in + 1, COLUMNS).

    The extra row after the channels keeps points apart: many numbers of channels would make steps
    of whole 4 kB, and all points would fall on the same few sets of a cache.
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
def products(v, width, panels, results, sums, count, first, channels, table):
    """Multiply ``count`` tiles of v with panels (panels, points, at least channels, COLUMNS).

    The panels are for ``channels`` channels from ``first`` on; unless ``first`` is 0, the
    products are added to the results. ``table`` (at least count / ROWS, SEGMENT + ROWS) gets the
    microkernel's addresses.
    """
    size, row = v.itemsize, COLUMNS * v.itemsize
    entries, at_table = table.reshape(-1), address(table)
    one = SEGMENT + ROWS
    groups = -(-count // ROWS)
    point_bytes = panels.shape[2] * row
    for point in range(v.shape[0]):
        from_v = address(v) + point * v.shape[1] * size
        there = address(results) + point * results.shape[1] * size
        for begin in range(0, channels, DEPTH):
            for group in range(groups):
                for i in range(ROWS):
                    tile = min(group * ROWS + i, count - 1)
                    entries[group * one + i] = from_v + (tile * width + first + begin) * size
                    entries[group * one + SEGMENT + i] = there + tile * sums * size
                entries[group * one + ROWS] = 0
                entries[group * one + ROWS + 1] = min(DEPTH, channels - begin)
            for j in range(panels.shape[0]):
                panel = address(panels) + (j * v.shape[0] + point) * point_bytes + begin * row
                for group in range(groups):
                    entry = at_table + group * one * 8
                    to, add = entry + SEGMENT * 8, first + begin > 0
                    if count - group * ROWS <= FEW_ROWS:
                        multiply_few(v, entry, 1, size, panel, row, to, j * row, add)
                    else:
                        multiply(v, entry, 1, size, panel, row, to, j * row, add)


@jit
def outputs(results, sums, kernel, y, first_filter, last_filter, start, stop, add, spare, finish):
    """Transform products back to the filters' results on the tiles ``start`` to ``stop`` of y.

    The products of these tiles and filters are (points, tiles * sums + rest). ``finish`` is
    None or a :class:`daskdl.kernels.products.finish.Finish`.
    """
    rows, columns, all_filters = y.shape[1:]
    size = y.itemsize
    down, across = -(-rows // _M), -(-columns // _M)
    plane = results.shape[1] * size
    flat = y.reshape(-1)
    wanted = last_filter - first_filter
    for index in range(start, stop):
        n, rest = divmod(index, down * across)
        i, j = rest // across * _M, rest % across * _M
        source = address(results) + (index - start) * sums * size
        place = ((n * rows + i) * columns + j) * all_filters + first_filter
        if i + _M <= rows and j + _M <= columns and wanted % LANES == 0:
            pixel, target = all_filters * size, address(y) + place * size
            if finish is None:
                _back(y, source, plane, kernel, target, columns * pixel, pixel, wanted, add)
            else:
                line, bias = columns * pixel, address(finish[0]) + first_filter * size
                _end(y, source, plane, kernel, target, line, pixel, wanted, bias, finish)
            continue
        for first in range(0, wanted, CHUNK):
            many = min(CHUNK, wanted - first)
            begin, padded = source + first * size, -(-many // LANES) * LANES
            line = _M * CHUNK * size
            _back(y, begin, plane, kernel, address(spare), line, CHUNK * size, padded, False)
            for p in range(min(_M, rows - i)):
                for q in range(min(_M, columns - j)):
                    pixel, to = p * _M + q, place + (p * columns + q) * all_filters + first
                    if finish is not None:
                        _end_pixel(flat, spare[pixel], first_filter + first, many, to, finish)
                    elif add:
                        for c in range(many):
                            flat[to + c] += spare[pixel, c]
                    else:
                        for c in range(many):
                            flat[to + c] = spare[pixel, c]


@jit
def _back(like, source, plane, kernel, target, line, pixel, n, add):
    """Transform a tile of products back to n filters' results, written or added to ``target``.

    ``plane``, ``line`` and ``pixel`` are bytes from point to point, row to row and pixel to pixel.
    """
    side = kernel + _M - 1
    if kernel == 3 and add:
        _more3(like, source, side * plane, plane, target, line, pixel, n)
    elif kernel == 3:
        _output3(like, source, side * plane, plane, target, line, pixel, n)
    elif add:
        _more5(like, source, side * plane, plane, target, line, pixel, n)
    else:
        _output5(like, source, side * plane, plane, target, line, pixel, n)


@jit
def _end(like, source, plane, kernel, target, line, pixel, n, bias, finish):
    """Transform a tile of products back, as :func:`_back`, and finish it."""
    side, residual = kernel + _M - 1, address(finish[1]) - address(like)
    low, high = finish[2][0], finish[2][1]
    if kernel == 3:
        _end3(like, source, side * plane, plane, target, line, pixel, n, bias, residual, low, high)
    else:
        _end5(like, source, side * plane, plane, target, line, pixel, n, bias, residual, low, high)


@jit
def _end_pixel(flat, sums, first, many, to, finish):
    """Finish some filters' results of one pixel, and write them from ``to`` on."""
    bias, residual, low, high = finish[0], finish[1].reshape(-1), finish[2][0], finish[2][1]
    if address(residual) == address(flat):
        for c in range(many):
            flat[to + c] = limited(sums[c] + bias[first + c], low, high)
    else:
        for c in range(many):
            flat[to + c] = limited(sums[c] + bias[first + c] + residual[to + c], low, high)


@jit
def sums(v, z, strips, count, du, dw, add, last, start, stop, table, spare):
    """Sum over ``count`` tiles the gradients to the weights of some groups of ``ROWS`` filters.

    ``strips`` are strip and step of v, whole panels of ``COLUMNS``, and of z, see :func:`inputs`.
    ``du`` (points, filters and one more, width) holds the sums of all filters, or of as many groups
    as fit; with ``last`` they are folded into dw. ``table`` is (at least ``FOLDED``, SEGMENT +
    ROWS).
    """
    v_strip, v_step, z_strip, z_step = strips
    size = v.itemsize
    filters, kernel, channels = dw.shape[0], dw.shape[1], dw.shape[3]
    side = kernel + _M - 1
    entries, at_table, one = table.reshape(-1), address(table), SEGMENT + ROWS
    all_filters = du.shape[1] == filters + 1
    flat = dw.reshape(-1)
    wide = du.shape[2] * size
    plane = du.shape[1] * wide
    together = stop - start if all_filters else FOLDED
    side_by_side = FOLDED if v_strip == COLUMNS else 1
    for block in range(start, stop, together):
        end = min(block + together, stop)
        origin = 0 if all_filters else block * ROWS
        for point in range(v.shape[0]):
            from_v = address(v) + point * v.shape[1] * size
            from_z = address(z) + point * z.shape[1] * size
            to = address(du) + point * plane
            for begin in range(0, count, DEPTH):
                for few in range(block, end, side_by_side):
                    groups = min(side_by_side, end - few)
                    for group in range(groups):
                        entry = group * one
                        for i in range(ROWS):
                            row = min((few + group) * ROWS + i, filters - 1)
                            place = row // z_strip * z_step + begin * z_strip + row % z_strip
                            entries[entry + i] = from_z + place * size
                            entries[entry + SEGMENT + i] = to + (row - origin) * wide
                        entries[entry + ROWS] = begin * v_strip * size
                        entries[entry + ROWS + 1] = min(DEPTH, count - begin)
                    for column in range(0, channels, COLUMNS):
                        panel = from_v + (column // v_strip * v_step + column % v_strip) * size
                        for group in range(groups):
                            entry = at_table + group * one * 8
                            multiply(
                                v, entry, 1, z_strip * size, panel, v_strip * size,
                                entry + SEGMENT * 8, column * size, add or begin > 0,
                            )  # fmt: skip
        if not last:
            continue
        for row in range(block * ROWS, min(end * ROWS, filters)):
            source = address(du) + (row - origin) * wide
            for c in range(0, channels, CHUNK):
                many = min(CHUNK, channels - c)
                begin, padded = source + c * size, -(-many // LANES) * LANES
                direct = many % LANES == 0
                target = address(dw) + (row * kernel * kernel * channels + c) * size
                step = channels * size
                if not direct:
                    target, step = address(spare), CHUNK * size
                if kernel == 3:
                    _fold3(v, begin, side * plane, plane, target, kernel * step, step, padded)
                else:
                    _fold5(v, begin, side * plane, plane, target, kernel * step, step, padded)
                if direct:
                    continue
                for tap in range(kernel * kernel):
                    place = (row * kernel * kernel + tap) * channels + c
                    for b in range(many):
                        flat[place + b] = spare[tap, b]
