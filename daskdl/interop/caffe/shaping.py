"""Layers that join, split, permute and reshape; and layers of detectors that make boxes."""

from __future__ import annotations

from typing import Any

from daskdl.interop.building import Value
from daskdl.interop.caffe.layers import Layer, layer
from daskdl.interop.layer import repeated

#: Beyond the end of any axis.
_END = (1 << 31) - 1


@layer("Concat")
def concat(of: Layer) -> Value:
    """Join along an axis, by default the channels."""
    name = "concat_dim" if of.settings.has("concat_dim") else "axis"
    axis = of.axis(of.settings.integer(name, 1, -9, 9))
    return of.result("Concat", *(bottom.name for bottom in of.inputs), axis=axis)


@layer("Slice")
def slices(of: Layer) -> list[Value]:
    """Split along an axis, at given points or into equal parts."""
    name = "slice_dim" if of.settings.has("slice_dim") else "axis"
    axis, (x, rank) = of.axis(of.settings.integer(name, 1, -9, 9)), (of.x.name, of.rank)
    points = of.settings.integers("slice_point")
    if not points:
        names = of.build.nodes_of("Split", [x], of.names, axis=axis, num_outputs=len(of.names))
        return [Value(name, rank) for name in names]
    if len(points) != len(of.names) - 1 or sorted(set(points)) != points:
        of.fail(f"expected {len(of.names) - 1} points that rise, found {points}")
    integers = of.build.integers
    return [
        Value(of.build.node("Slice", x, integers(a), integers(b), integers(axis), name=name), rank)
        for name, a, b in zip(of.names, [0, *points], [*points, _END], strict=True)
    ]


def _joined(of: Layer, *parts: str) -> str:
    return of.add("Concat", *parts, axis=0)


@layer("Flatten")
def flatten(of: Layer) -> Value:
    """Merge the axes from ``axis`` to ``end_axis``."""
    x, rank = of.x.name, of.rank
    first = of.axis(of.settings.integer("axis", 1, -9, 9))
    last = of.axis(of.settings.integer("end_axis", -1, -9, 9))
    if last < first:
        of.fail(f"expected an end_axis behind {first}, found {last}")
    if first == 1 and last == rank - 1:
        return of.result("Flatten", x, axis=1, rank=2)
    parts = [of.build.integers(-1)]
    if first:
        parts.insert(0, of.add("Shape", x, start=0, end=first))
    if last < rank - 1:
        parts.append(of.add("Shape", x, start=last + 1))
    return of.result("Reshape", x, _joined(of, *parts), rank=rank - last + first)


@layer("Reshape")
def reshape(of: Layer) -> Value:
    """Reshape axes; length 0 keeps an axis, -1 is inferred."""
    lengths = of.settings.part("shape").integers("dim", -1)
    x, rank = of.x.name, of.rank
    first = of.settings.integer("axis", 0, -9, 9)
    first = first + rank + 1 if first < 0 else first
    count = of.settings.integer("num_axes", -1, -1, 9)
    stop = rank if count < 0 else first + count
    if not 0 <= first <= stop <= rank or any(
        n == 0 and first + i >= rank for i, n in enumerate(lengths)
    ):
        of.fail(f"expected axes of {rank}, found {lengths} in the place of {first} to {stop}")
    if first == 0 and stop == rank:
        return of.result("Reshape", x, of.build.integers(*lengths), rank=len(lengths))
    parts = [
        of.build.integers(n) if n else of.add("Shape", x, start=first + i, end=first + i + 1)
        for i, n in enumerate(lengths)
    ]
    if first:
        parts.insert(0, of.add("Shape", x, start=0, end=first))
    if stop < rank:
        parts.append(of.add("Shape", x, start=stop))
    return of.result("Reshape", x, _joined(of, *parts), rank=rank - stop + first + len(lengths))


@layer("Permute")
def permute(of: Layer) -> Value:
    """Permute axes; axes that are not named follow."""
    order = of.settings.integers("order", 0, 31)
    rank = of.rank
    order += [i for i in range(rank) if i not in order]
    if sorted(order) != list(range(rank)):
        of.fail(f"expected an order of {rank} axes, found {order}")
    return of.result("Transpose", of.x.name, perm=tuple(order))


@layer("Crop")
def crop(of: Layer) -> Value:
    """Crop the axes from ``axis`` on to the lengths of the second bottom."""
    axis = of.axis(of.settings.integer("axis", 2, -9, 9))
    rank = of.rank
    offsets = of.settings.integers("offset") or [0]
    offsets = offsets * (rank - axis) if len(offsets) == 1 else offsets
    if len(offsets) != rank - axis or of.rank_of(of.bottom(1)) != rank:
        of.fail(f"expected one offset or {rank - axis}, and two bottoms of equal axes")
    starts = of.build.integers(*offsets)
    stops = of.add("Shape", of.bottom(1).name, start=axis)
    if any(offsets):
        stops = of.add("Add", stops, starts)
    axes = of.build.integers(*range(axis, rank))
    return of.result("Slice", of.x.name, starts, stops, axes)


@layer("Tile")
def tile(of: Layer) -> Value:
    """Repeat along an axis."""
    axis = of.axis(of.settings.integer("axis", 1, -9, 9))
    times = of.settings.integer("tiles", 1, 1, 4096)
    counts = [times if i == axis else 1 for i in range(of.rank)]
    return of.result("Tile", of.x.name, of.build.integers(*counts))


@layer("ShuffleChannel")
def shuffle(of: Layer) -> Value:
    """Interleave the channels of groups (arXiv 1707.01083)."""
    groups = of.settings.integer("group", 1, 1)
    x, rank = of.x.name, of.rank
    if rank != 4:
        of.fail("expected (N, C, H, W)")
    batch, size = of.add("Shape", x, start=0, end=1), of.add("Shape", x, start=2)
    apart = _joined(of, batch, of.build.integers(groups, -1), size)
    dealt = of.add("Transpose", of.add("Reshape", x, apart), perm=(0, 2, 1, 3, 4))
    return of.result("Reshape", dealt, of.add("Shape", x))


@layer("Interp")
def interpolation(of: Layer) -> Value:
    """Resize images by bilinear interpolation with aligned corners."""
    size = [of.settings.integer(name, 0, 0, 1 << 14) for name in ("height", "width")]
    if not all(size):
        of.fail("expected height and width; factors and padding are not supported")
    lead = of.add("Shape", of.x.name, start=0, end=2)
    return of.result(
        "Resize", of.x.name, "", "", _joined(of, lead, of.build.integers(*size)),
        mode="linear", coordinate_transformation_mode="align_corners",
    )  # fmt: skip


@layer("Upsample")
def upsample(of: Layer) -> Value:
    """Repeat rows and columns."""
    times = of.settings.integer("scale", 2, 1, 64)
    return repeated(of, of.x, (times, times))


@layer("PriorBox")
def prior_box(of: Layer) -> Value:
    """Return boxes around each cell of a feature map, and their variances."""
    sizes, most = of.settings.numbers("min_size"), of.settings.numbers("max_size")
    ratios = of.settings.numbers("aspect_ratio")
    if not sizes or len(most) not in (0, len(sizes)) or min([*sizes, *most, *ratios]) <= 0:
        of.fail("expected sizes and ratios above 0, and a max_size for each min_size or none")
    if len(sizes) * len(ratios) > 1000 or len(of.settings.numbers("variance")) not in (0, 1, 4):
        of.fail("expected up to 1000 boxes of a cell, and one variance or four")
    pairs: dict[str, Any] = {}
    for name, single, stem in (("image", "img_size", "img_"), ("step", "step", "step_")):
        down, across = (of.settings.number(stem + end, of.settings.number(single)) for end in "hw")
        pairs[name] = (down, across) if down > 0 and across > 0 else None
    return of.result(
        "PriorBox", of.x.name, of.bottom(1).name,
        rank=3, min_size=tuple(sizes), max_size=tuple(most), aspect_ratio=tuple(ratios),
        flip=int(of.settings.flag("flip", True)), clip=int(of.settings.flag("clip", False)),
        variance=tuple(of.settings.numbers("variance")) or (0.1,),
        offset=of.settings.number("offset", 0.5), **pairs,
    )  # fmt: skip


@layer("DetectionOutput")
def detection_output(of: Layer) -> Value:
    """Return the objects of each image, (N, keep_top_k, 6), highest scores first."""
    chosen = of.settings.part("nms_param")
    if chosen.number("eta", 1) != 1:
        of.fail("an overlap that falls from box to box (eta) is not supported")
    threshold = of.settings.number("confidence_threshold")
    return of.result(
        "DetectionOutput", *(of.bottom(i).name for i in range(3)),
        rank=3,
        num_classes=of.settings.integer("num_classes", 0, 1, 1 << 16),
        share_location=int(of.settings.flag("share_location", True)),
        background_label_id=of.settings.integer("background_label_id", 0, -1),
        code_type=of.settings.word("code_type", "CORNER"),
        variance_encoded_in_target=int(of.settings.flag("variance_encoded_in_target", False)),
        keep_top_k=of.settings.integer("keep_top_k", -1, -1, 1 << 20),
        confidence_threshold=threshold if of.settings.has("confidence_threshold") else None,
        nms_threshold=chosen.number("nms_threshold", 0.3),
        top_k=chosen.integer("top_k", -1, -1, 1 << 30),
    )  # fmt: skip
