"""TensorFlow's operators that reshape, join, split and index."""

from __future__ import annotations

from daskdl.interop.building import Value
from daskdl.interop.tensorflow.net import Call, operator
from daskdl.tensor import Array

_END = (1 << 31) - 1


@operator("Reshape")
def reshape(call: Call) -> Value:
    """Reshape; a length of -1 is inferred."""
    x, build = call.unpermuted(), call.build
    if call.is_array(1):
        lengths = call.integers(1, "a shape")
        if any(n < -1 for n in lengths):
            call.fail(f"expected lengths of -1 or more, found {lengths}")
        target = build.integers(*lengths)
        return call.shaped("Reshape", x.name, target, rank=len(lengths))
    target = build.node("Cast", call.value(1).name, to=7)
    return call.shaped("Reshape", x.name, target, rank=None)


@operator("Squeeze")
def squeeze(call: Call) -> Value:
    """Remove axes of one element."""
    axes = call.setting("squeeze_dims") or call.setting("axis", ())
    x, build = call.x, call.build
    if x.second and x.rank == 4 and sorted(a % 4 for a in axes) == [1, 2]:
        return call.shaped("Squeeze", x.name, build.integers(2, 3), rank=2)
    x = build.last(x)
    axis = [build.integers(*axes)] if axes else []
    rank = x.rank - len(axes) if axes and x.rank is not None else None
    return call.shaped("Squeeze", x.name, *axis, rank=rank)


@operator("ExpandDims")
def expand_dims(call: Call) -> Value:
    """Insert an axis of one element."""
    x = call.unpermuted()
    axis = call.integers(1, "an axis")[0]
    rank = None if x.rank is None else x.rank + 1
    return call.shaped("Unsqueeze", x.name, call.build.integers(axis), rank=rank)


@operator("Transpose")
def transpose(call: Call) -> Value:
    """Permute axes."""
    order = call.integers(1, "an order of axes")
    if sorted(order) != list(range(len(order))):
        call.fail(f"expected each axis once, found {order}")
    return call.shaped("Transpose", call.unpermuted().name, rank=len(order), perm=order)


@operator("Concat", "ConcatV2")
def concat(call: Call) -> Value:
    """Join along an axis."""
    first = call.kind == "Concat"
    count = len(call.operands) - 1
    if count < 1:
        call.fail("expected values to join, found none")
    axis = call.integers(0 if first else count, "an axis")[0]
    values = [call.value(i + first) for i in range(count)]
    if values[0].rank is not None:
        call.axis(axis, values[0].rank)
    return call.build.joined(values, axis, call.name)


@operator("Pack")
def pack(call: Call) -> Value:
    """Join along a new axis."""
    values = [call.unpermuted(i) for i in range(len(call.operands))]
    build, axis = call.build, call.integer("axis", 0, -9)
    names = [build.node("Unsqueeze", v.name, build.integers(axis)) for v in values]
    rank = values[0].rank + 1 if values and values[0].rank is not None else None
    return call.shaped("Concat", *names, rank=rank, axis=axis)


@operator("Split", "SplitV")
def split(call: Call) -> list[Value]:
    """Split along an axis."""
    even = call.kind == "Split"
    x = call.unpermuted(1 if even else 0)
    axis = call.integers(0 if even else 2, "an axis")[0]
    build = call.build
    if even:
        count = call.integer("num_split", 1, 1, 4096)
        inputs, more = [x.name], {"num_outputs": count}
    else:
        sizes = call.integers(1, "sizes")
        count, inputs, more = len(sizes), [x.name, build.integers(*sizes)], {}
    names = [call.name] * count
    return [Value(n, x.rank) for n in build.nodes_of("Split", inputs, names, axis=axis, **more)]


@operator("Pad", "PadV2", "MirrorPad")
def pad(call: Call) -> Value:
    """Pad."""
    widths = call.array(1, "widths")
    if widths.ndim != 2 or widths.shape[1] != 2 or widths.size > 32 or widths.dtype.kind != "i":
        call.fail(f"expected two widths for each axis, found {widths.shape}")
    if widths.size and not (widths.min() >= 0 and widths.max() <= 1 << 16):
        call.fail("expected widths from 0 to 65536")
    x, build = call.x, call.build
    if x.second and len(widths) == (x.rank or 4):
        widths = widths[[0, len(widths) - 1, *range(1, len(widths) - 1)]]
    else:
        x = build.last(x)
    pads = build.integers(*widths[:, 0].tolist(), *widths[:, 1].tolist())
    more = [call.value(2).name] if call.kind == "PadV2" else []
    mode = call.setting("mode", "REFLECT") if call.kind == "MirrorPad" else "constant"
    if mode not in ("constant", "REFLECT"):
        call.fail(f"mode: expected REFLECT, found {mode}")
    return call.result("Pad", x.name, pads, *more, mode=mode.lower(), like=x)


@operator("Slice")
def slices(call: Call) -> Value:
    """Take a part, given by its start and lengths; a length of -1 goes to the end."""
    start, size = call.integers(1, "a start"), call.integers(2, "lengths")
    if len(start) != len(size):
        call.fail(f"expected as many starts as lengths, found {start} and {size}")
    stop = [_END if n < 0 else a + n for a, n in zip(start, size, strict=True)]
    x, build = call.unpermuted(), call.build
    bounds = (build.integers(*ns) for ns in (start, stop, range(len(start))))
    return call.result("Slice", x.name, *bounds, like=x)


@operator("StridedSlice")
def strided_slice(call: Call) -> Value:
    """Take slices along axes, and single elements of some."""
    start, stop, step = (call.integers(i, "a place") for i in (1, 2, 3))
    masks = {
        name: call.integer(f"{name}_mask", 0)
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    if masks["ellipsis"] or masks["new_axis"] or not len(start) == len(stop) == len(step):
        call.fail("an ellipsis and new axes are not supported")
    x, build = call.unpermuted(), call.build
    first, last, gone = [], [], []
    for i, (a, b, s) in enumerate(zip(start, stop, step, strict=True)):
        single = masks["shrink_axis"] >> i & 1
        if s == 0 or (single and s < 0):
            call.fail(f"expected steps other than 0, found {step}")
        if single:
            gone.append(i)
            first.append(a)
            last.append(a + 1 if a != -1 else _END)
            continue
        first.append((0 if s > 0 else _END) if masks["begin"] >> i & 1 else a)
        last.append((_END if s > 0 else -_END) if masks["end"] >> i & 1 else b)
    bounds = (build.integers(*ns) for ns in (first, last, range(len(start)), step))
    part = call.result("Slice", x.name, *bounds, like=x)
    if not gone:
        return part
    rank = None if x.rank is None else x.rank - len(gone)
    return call.shaped("Squeeze", part.name, build.integers(*gone), rank=rank)


@operator("Shape")
def shape(call: Call) -> Value:
    """Return the shape."""
    return call.shaped("Shape", call.unpermuted().name, rank=1)


@operator("Fill")
def fill(call: Call) -> Value:
    """Return an array filled with one number."""
    target = call.build.node("Cast", call.x.name, to=7)
    return call.shaped("Expand", call.value(1).name, target, rank=None)


@operator("Tile")
def tile(call: Call) -> Value:
    """Repeat along axes."""
    times = call.integers(1, "counts")
    if not all(0 <= n <= 4096 for n in times):
        call.fail(f"expected counts from 0 to 4096, found {times}")
    counts = call.build.integers(*times)
    return call.shaped("Tile", call.unpermuted().name, counts, rank=len(times))


@operator("Gather", "GatherV2")
def gather(call: Call) -> Value:
    """Take elements along an axis by index."""
    axis = call.integers(2, "an axis")[0] if len(call.operands) > 2 else 0
    table, ids = call.unpermuted(), call.unpermuted(1)
    ranks = table.rank, ids.rank
    rank = None if None in ranks else (table.rank or 0) + (ids.rank or 0) - 1
    return call.shaped("Gather", table.name, ids.name, rank=rank, axis=axis)


@operator("SpaceToDepth", "DepthToSpace")
def blocks(call: Call) -> Value:
    """Move blocks of pixels into channels, or back."""
    x = call.build.second(call.x)
    size = call.integer("block_size", 2, 1, 1024)
    if call.first_of("images"):
        call.fail("data_format: expected NHWC, found NCHW")
    return call.result(call.kind, x.name, like=x, blocksize=size, mode="DCR")


def constant(call: Call) -> Array:
    """Return the node's array."""
    return call.node.tensor()


operator("Const")(constant)
