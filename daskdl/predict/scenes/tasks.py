"""Tasks: one tile of a scene read, computed and written on a worker."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.masked import unmasked
from daskdl.predict.partitions import only
from daskdl.predict.predictor import Predictor

Array = NDArray[Any]
Span = tuple[int, int]
#: Slices of a part of a window: in the window, and in the array that the part is read from.
Part = tuple[tuple[slice, ...], tuple[slice, ...]]
#: Target of a window that is blended with others.
WINDOW = "window"


class Layout(NamedTuple):
    """Numbers of a scene's axes: of samples, of the image in its order, and of channels."""

    samples: tuple[int, ...]
    image: tuple[int, ...]
    channel: int | None

    def images(self, window: Array) -> Array:
        """Return a window of one sample in a model's form, (1, ..., channels)."""
        order = (*self.samples, *self.image)
        order = order if self.channel is None else (*order, self.channel)
        turned = window.transpose(order)
        turned = turned[..., None] if self.channel is None else turned
        return np.ascontiguousarray(turned.reshape(1, *turned.shape[len(self.samples) :]))

    def order(self, channels: bool) -> list[int]:
        """Return the scene's axes in the order of a result; -1 is a new one of channels."""
        axes = sorted((*self.samples, *self.image))
        if not channels:
            return axes
        return sorted((*axes, self.channel)) if self.channel is not None else [*axes, -1]

    def back(self, result: Array, channels: bool) -> Array:
        """Return a result (1, ..., channels) with its axes in the scene's order."""
        result = result.reshape((1,) * len(self.samples) + result.shape[1:])
        now = [*self.samples, *self.image]
        if channels:
            now.append(-1 if self.channel is None else self.channel)
        else:
            result = result.reshape(result.shape[: len(now)])
        return result.transpose([now.index(axis) for axis in self.order(channels)])


class Common(NamedTuple):
    """Properties that all tiles of a result share."""

    layout: Layout
    #: Whether the result has an axis of channels.
    channels: bool
    #: Value of the scene's cells without data.
    nodata: float | None
    #: Result (1, ...) of one window.
    like: Array
    #: Cells of the scene from one result to the next, along the axes of the tiles.
    scales: tuple[Fraction, ...]


class Target(NamedTuple):
    """Place of a tile in a stored array, and the digest of the cells it was made of."""

    array: Any
    region: tuple[slice, ...]
    digest: str | None


def tile(
    predictor: Predictor,
    common: Common,
    spans: list[Span],
    cut: tuple[slice, ...],
    parts: list[Part] | None,
    target: Target | str | None,
    *sources: Any,
) -> Any:
    """Return the result of one window, cut, in the scene's order of axes; or write it.

    With a target the digest is returned, and nothing is computed if it is the target's. For
    :data:`WINDOW` the result is the model's own.
    """
    if parts is None:
        source = sources[0]() if isinstance(sources[0], File) else sources[0]
        window = np.asarray(unmasked("predict", source[tuple(slice(*span) for span in spans)]))
    else:
        shape = tuple(stop - start for start, stop in spans)
        window = np.empty(shape, sources[0].dtype)
        for (to, of), source in zip(parts, sources, strict=True):
            window[to] = unmasked("predict", source[of])
    digest = ""
    if isinstance(target, Target):
        digest = hashlib.blake2b(np.ascontiguousarray(window).data, digest_size=8).hexdigest()
        if digest == target.digest:
            return digest
    result = _predicted(predictor, common, common.layout.images(window), cut)
    if isinstance(target, str):
        return result
    return _placed(common, result, target, digest)


def _predicted(
    predictor: Predictor, common: Common, images: Array, cut: tuple[slice, ...]
) -> Array:
    """Return the cut result of images (1, ..., channels), with cells without data marked."""
    if common.nodata is None:
        return only(predictor(images))[:, *cut]
    empty: Array = np.isnan(images) if np.isnan(common.nodata) else images == common.nodata
    missing: Array = np.asarray(empty.all(-1))
    if not missing.any():
        return only(predictor(images))[:, *cut]
    like = common.like
    fill = np.nan if like.dtype.kind == "f" else -1
    without: Array = missing
    for i, (part, scale) in enumerate(zip(cut, common.scales, strict=True), 1):
        step = scale.numerator
        cells = np.arange(part.start * step, part.stop * step).reshape(-1, step)
        cells = np.minimum(cells // scale.denominator, missing.shape[i] - 1)
        without = np.asarray(without.take(cells, axis=i).all(i + 1))
    tail = like.shape[without.ndim :]
    if without.all():
        return np.full((*without.shape, *tail), fill, like.dtype)
    result = only(predictor(np.where(missing[..., None], 0, images).astype(images.dtype)))[:, *cut]
    result = result.copy()
    result[without] = fill
    return result


def _placed(common: Common, result: Array, target: Target | None, digest: str) -> Any:
    """Return a result in the scene's order of axes, or its digest after it was written."""
    tile = np.ascontiguousarray(common.layout.back(result, common.channels))
    if target is None:
        return tile
    target.array[target.region] = tile
    return digest


def blended(common: Common, shares: list[Any], target: Target | None, *windows: Array) -> Any:
    """Return a tile as the mean of its windows, added in a fixed order; or write it."""
    (_, _, shape), like = shares[0], windows[0]
    lead = 1 + len(shape)
    result = np.zeros((1, *shape, *like.shape[lead:]), like.dtype)
    for (cuts, weights, _), window in zip(shares, windows, strict=True):
        part = window[:, *(of for of, _ in cuts)]
        for i, share in enumerate(weights):
            part = part * share.reshape(-1, *(1,) * (window.ndim - 2 - i))
        result[:, *(to for _, to in cuts)] += part
    return _placed(common, result, target, "")


class File(NamedTuple):
    """The file of a numpy.memmap, which a task opens; its numbers are not sent."""

    path: str
    dtype: Any
    offset: int
    shape: tuple[int, ...]
    order: str

    def __call__(self) -> Array:
        """Return the array."""
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)  # type: ignore[call-overload]
