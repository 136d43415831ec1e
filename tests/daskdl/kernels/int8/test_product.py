"""Products of bytes are numpy's whole numbers, with each way to multiply and to finish."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.int8 import product, tiles
from daskdl.kernels.int8.arithmetic import WAYS, way_of
from daskdl.kernels.int8.block import COLUMNS, FLOATS, NOTHING, ROWS, VECTORS, block_of
from daskdl.kernels.int8.prepared import panels_of, quantised
from daskdl.kernels.int8.product import End, work_of
from daskdl.kernels.int8.scale import Scale, scale_of, summed, to_bytes, to_floats
from daskdl.kernels.products.microkernel import LANES, address, keep
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.convolutions import bytes_of, convolved

rng = np.random.default_rng(0)
GEOMETRIES = [
    Geometry((1, 1)),
    Geometry((3, 3), pad=(1, 1, 1, 1)),
    Geometry((3, 2), (2, 1), (0, 1, 1, 0)),
    Geometry((2, 3), (2, 2), (2, 1, 3, 2), (2, 1)),
]
#: Less than a vector, some vectors, whole panels, and more.
FILTERS = (3, 40, 64, 130)


def drawn(filters, geometry, channels=8, images=2):
    x = rng.integers(0, 256, (images, 7, 6, channels), dtype=np.uint8)
    shape = filters, *geometry.kernel, channels // geometry.groups
    weight = rng.integers(-127, 128, shape).astype(np.int8)
    scale = rng.uniform(1e-4, 2e-4, filters).astype(np.float32)
    return x, weight, scale, rng.normal(size=filters).astype(np.float32)


def computed(x, zero, weight, scale, bias, geometry, end, threads=1):
    shape = len(x), *geometry.size(*x.shape[1:3]), len(weight)
    y = np.empty(shape, np.float32 if end.into is None else np.uint8)
    with thread_budget(threads):
        panels = panels_of(weight, scale, bias, zero, geometry.groups)
        work_of(x, zero, panels, geometry, y, end)()
    return y


def check(x, weights, geometry, end):
    """Check that results have numpy's bits with any number of threads."""
    expected = convolved(x, 11, *weights, geometry, end)
    for threads in (1, 2):
        result = computed(x, 11, *weights, geometry, end, threads)
        np.testing.assert_array_equal(result, expected)


def end_of(kind, shape, into):
    low, high = (-1.0, 1.5) if into is None else (0.0, 6.0)
    if kind == "nothing":
        return End(None, None, low, high, into)
    if kind == "floats":
        return End(rng.normal(size=shape).astype(np.float32), None, low, high, into)
    return End(rng.integers(0, 256, shape, dtype=np.uint8), Scale(0.02, 77), low, high, into)


needs_vnni = pytest.mark.skipif(
    LANES != 16 or way_of(LANES) != "vnni", reason="tiles need AVX512_VNNI too"
)


@pytest.fixture(params=[
    tiles.NONE,
    pytest.param(tiles.ORDINARY, marks=needs_vnni),
    pytest.param(tiles.AMX, marks=pytest.mark.skipif(
        not tiles.usable(), reason="this processor has no AMX"
    )),
], ids=["words", "tiles", "amx"])  # fmt: skip
def by_tiles(request, monkeypatch):
    """Have sums made by words, by tiles without AMX, and by AMX."""
    monkeypatch.setattr(product, "usable", lambda: request.param)


@pytest.mark.usefixtures("by_tiles")
@pytest.mark.parametrize("into", [None, Scale(0.017, 9)], ids=["floats", "bytes"])
@pytest.mark.parametrize("kind", ["nothing", "floats", "bytes"])
@pytest.mark.parametrize("filters", FILTERS)
def test_has_numpys_bits(filters, kind, into):
    for geometry in GEOMETRIES:
        x, *weights = drawn(filters, geometry)
        end = end_of(kind, (2, *geometry.size(7, 6), filters), into)
        check(x, weights, geometry, end)


@pytest.mark.parametrize("into", [None, Scale(0.017, 9)], ids=["floats", "bytes"])
@pytest.mark.parametrize(("channels", "filters", "groups"), [
    (5, 5, 5), (40, 40, 40), (130, 130, 130), (8, 6, 2), (24, 210, 3),
])  # fmt: skip
def test_groups_have_numpys_bits(channels, filters, groups, into):
    """Depthwise, with one channel in each group, and with more channels."""
    for geometry in GEOMETRIES[1:]:
        geometry = geometry._replace(groups=groups)
        x, *weights = drawn(filters, geometry, channels)
        end = end_of(
            "bytes" if into is None else "floats", (2, *geometry.size(7, 6), filters), into
        )
        check(x, weights, geometry, end)


@pytest.mark.usefixtures("by_tiles")
def test_largest_numbers_do_not_saturate():
    geometry = Geometry((1, 1))
    x = np.full((1, 6, 3, 4096), 255, np.uint8)
    weight = np.full((17, 1, 1, 4096), 127, np.int8)
    weight[1::2] = -127
    one, none = np.ones(17, np.float32), np.zeros(17, np.float32)
    result = computed(x, 0, weight, one, none, geometry, End())
    signs = np.resize([1, -1], 17)
    np.testing.assert_array_equal(result, np.broadcast_to(255 * 127 * 4096 * signs, result.shape))


@pytest.mark.usefixtures("by_tiles")
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_channels_of_whole_tiles_have_numpys_bits(geometry):
    """Tiles take neighbouring positions then; images are padded with the byte that stands for 0."""
    _, *weights = drawn(70, geometry, 128)
    x = rng.integers(0, 256, (2, 17, 16, 128), dtype=np.uint8)
    for kind in ("nothing", "bytes"):
        end = end_of(kind, (2, *geometry.size(17, 16), 70), Scale(0.017, 9))
        check(x, weights, geometry, end)


@needs_vnni
@pytest.mark.usefixtures("by_tiles")
def test_rows_of_many_parts_have_numpys_bits():
    """A length that is no multiple of a tile's, and rows that are copied part by part."""
    x, *weights = drawn(70, Geometry((1, 1)), 2100, images=7)
    check(x, weights, Geometry((1, 1)), End(into=Scale(0.017, 9)))


@needs_vnni
def test_amx_with_other_sums_is_not_used(monkeypatch, caplog):
    """Without permission it is not used either; no AMX instruction is executed here."""
    original = tiles._sums
    monkeypatch.setattr(tiles, "permitted", lambda: True)
    for wrong in (0, 1):

        def sums(rows, words, out, kind, wrong=wrong):
            original(rows, words, out, tiles.ORDINARY)
            out[5, 7] += wrong * (kind == tiles.AMX)

        monkeypatch.setattr(tiles, "_sums", sums)
        assert tiles.usable.__wrapped__() == (tiles.NONE if wrong else tiles.AMX)
        assert ("int8 are computed without" in caplog.text) == bool(wrong)
    monkeypatch.setattr(tiles, "permitted", lambda: False)
    assert tiles.usable.__wrapped__() == tiles.NONE


_BLOCKS = [block_of(VECTORS, way=way) for way in WAYS]
_vnni, _pairs, _plain = _BLOCKS


@jit
def _by_each(a, words, columns, y, which):
    table, places = np.empty(ROWS, np.int64), np.empty(ROWS, np.int64)
    for i in range(ROWS):
        table[i], places[i] = address(a) + i * a.shape[1], i * COLUMNS
    plan = (
        COLUMNS * 4, address(y), address(y), FLOATS, NOTHING, 0, np.float32(0), np.float32(-1e30),
        np.float32(1e30), np.float32(0), 0, np.float32(0), np.float32(0), COLUMNS,
    )  # fmt: skip
    depth, b, of_columns = a.shape[1] // 4, address(words), address(columns)
    if which == 0:
        _vnni(address(table), 8, 0, 1, depth, b, of_columns, address(places), plan)
    elif which == 1:
        _pairs(address(table), 8, 0, 1, depth, b, of_columns, address(places), plan)
    else:
        _plain(address(table), 8, 0, 1, depth, b, of_columns, address(places), plan)
    keep(table)
    keep(places)


def test_all_ways_have_the_same_sums():
    """All ways that this processor has."""
    a = rng.integers(0, 256, (ROWS, 64), dtype=np.uint8)
    weight = rng.integers(-127, 128, (COLUMNS, 1, 1, 64)).astype(np.int8)
    weight[0], a[0] = 127, 255
    one = np.ones(COLUMNS, np.float32)
    expected = (a.astype(np.int64) - 3) @ weight.reshape(COLUMNS, -1).T.astype(np.int64)
    for which in range(WAYS.index(way_of(LANES)), len(WAYS)):
        panels = panels_of(weight, one, None, 3, way=WAYS[which])
        y = np.zeros((ROWS, COLUMNS), np.float32)
        _by_each(a, panels.words, panels.columns, y, which)
        np.testing.assert_array_equal(y, expected)


def test_bytes_and_back():
    x = np.concatenate([rng.normal(size=999), [np.inf, -np.inf, 0, 0.05]]).astype(np.float32)
    scale = scale_of(-1.0, 2.0)
    y = to_bytes(x, *scale)
    np.testing.assert_array_equal(y, bytes_of(x, scale))
    assert to_floats(y, *scale)[-2] == 0  # a byte stands for exactly 0
    inside = np.abs(x) < 1
    assert np.abs(to_floats(y, *scale) - x)[inside].max() <= 0.5001 * scale.scale
    assert to_bytes(np.float32([np.nan]), *scale) == 0


@pytest.mark.parametrize("into", [None, Scale(0.04, 30)], ids=["floats", "bytes"])
def test_sums_of_bytes(into):
    x, z = rng.integers(0, 256, (2, 5, 77), dtype=np.uint8)
    of_x, of_z = Scale(0.02, 100), Scale(0.03, 7)
    end = End(z, of_z, -1.0, 4.0, into)
    floats = to_floats(x, *of_x) + to_floats(z, *of_z)
    expected = floats.clip(end.low, end.high)
    expected = expected if into is None else bytes_of(expected, into)
    np.testing.assert_array_equal(summed(x, of_x, *end), expected)


def test_scales_of_ranges():
    assert scale_of(0.0, 0.0) == Scale(1.0, 0)
    assert scale_of(0.5, 1.0).zero == 0
    assert scale_of(-2.0, -1.0).zero == 255
    assert scale_of(-1.0, 3.0).zero == 64


def test_weights_are_rounded_by_filter():
    weight = rng.normal(size=(5, 2, 3)).astype(np.float32)
    weight[2] = 0
    numbers, scale = quantised(weight)
    assert np.abs(numbers.reshape(5, -1)).max(1).tolist() == [127, 127, 0, 127, 127]
    assert np.abs(numbers * scale[:, None, None] - weight).max() <= 0.5001 * scale.max()
