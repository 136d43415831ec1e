"""Colours: jitter of brightness, contrast, saturation and hue, lighting, order of channels.

Each is an affine map of a pixel's channels, so that a jitter of all four takes one pass; colours
are clipped at its end. Without clipping in between the order of the four does not matter, so no
order is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskdl.data.image.arguments import Range, one_of, share, span
from daskdl.data.image.images import Images
from daskdl.data.image.pixels import room
from daskdl.data.image.transform import Transform
from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.pixels.colour import channel_means, mix

Array = NDArray[Any]

#: Of red, green and blue in what the eye sees as light, ITU-R BT.601.
LUMA = np.array([0.299, 0.587, 0.114])

#: From RGB to luma and two axes of chroma, NTSC's YIQ.
YIQ = np.array([LUMA, [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])

#: Principal axes of ImageNet's colours, fractions of white: A. Krizhevsky, I. Sutskever and
#: G. Hinton, ImageNet Classification with Deep Convolutional Neural Networks, NeurIPS 2012.
IMAGENET_VARIATION = (0.2175, 0.0188, 0.0045)
IMAGENET_AXES = (
    (-0.5675, 0.7192, 0.4009),
    (-0.5808, -0.0045, -0.8140),
    (-0.5836, -0.6948, 0.4203),
)

STEPS = ("brightness", "contrast", "saturation", "hue")


@dataclass(frozen=True)
class ColorJitter(Transform):
    """Change brightness, contrast, saturation and hue of each image at random.

    A number x is a range around the neutral value; (low, high) is the range itself.

    Parameters
    ----------
    brightness : float or (low, high)
        Factor of all channels, from ``1 - x`` to ``1 + x``.
    contrast : float or (low, high)
        Factor of the distance from the image's mean luma.
    saturation : float or (low, high)
        Factor of the distance from each pixel's luma; (0, 0) makes images gray.
    hue : float or (low, high)
        Turns, -1/2 to 1/2, of the chroma around the axis of grays in YIQ, as CSS's hue-rotate has
        it (W3C Filter Effects): luma stays, which HSV's hue would change.
    offset : float or (low, high)
        Number added to all channels, in fractions of white.
    probability : float
        Probability of each of the four for an image.
    """

    brightness: Range = 0.0
    contrast: Range = 0.0
    saturation: Range = 0.0
    hue: Range = 0.0
    offset: Range = 0.0
    probability: float = 1.0
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._spans()
        share("ColorJitter: probability", self.probability)

    def _spans(self) -> dict[str, tuple[float, float]]:
        spans = {
            name: span(f"ColorJitter: {name}", getattr(self, name), 1.0, 0.0) for name in STEPS[:3]
        }
        for name in ("hue", "offset"):
            spans[name] = span(f"ColorJitter: {name}", getattr(self, name), 0.0)
        if not -0.5 <= spans["hue"][0] <= spans["hue"][1] <= 0.5:
            raise SettingsError(f"ColorJitter: hue: expected -0.5 to 0.5 turns, found {self.hue!r}")
        return spans

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Change the images."""
        n, channels, spans = len(images), images.channels, self._spans()
        luma = _luma(images, spans["saturation"] != (1, 1) or spans["hue"] != (0, 0))
        drawn = {name: rng.uniform(*bounds, n) for name, bounds in spans.items()}
        for name in STEPS:
            left_out = rng.random(n) >= self.probability
            drawn[name][left_out] = 0 if name == "hue" else 1
            if name == "brightness":
                drawn["offset"][left_out] = 0
        pixels = contiguous(images.pixels)
        matrices = np.zeros((n, channels, channels + 1))
        matrices[:, :, :channels] = _saturated(drawn["saturation"], luma)
        if spans["hue"] != (0, 0):
            matrices[:, :, :channels] = _turned(drawn["hue"]) @ matrices[:, :, :channels]
        matrices *= (drawn["brightness"] * drawn["contrast"])[:, None, None]
        shift = drawn["offset"] * images.white
        if spans["contrast"] != (1, 1):
            gray = channel_means(pixels) @ luma
            shift += (1 - drawn["contrast"]) * drawn["brightness"] * gray
        matrices[:, :, channels] = shift[:, None]
        recolour(images, pixels, matrices)


@dataclass(frozen=True)
class Lighting(Transform):
    """Add noise along the principal axes of colours to each image, as for AlexNet.

    Parameters
    ----------
    std : float
        Standard deviation of the normal factors of the axes.
    variation : (3,)
        Length of each axis, in fractions of white.
    axes : (3, 3)
        Columns are the axes in red, green and blue.
    """

    std: float = 0.1
    variation: tuple[float, ...] = IMAGENET_VARIATION
    axes: tuple[tuple[float, ...], ...] = IMAGENET_AXES
    random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        span("Lighting: std", (0, self.std), least=0)
        k = len(self.variation)
        if np.shape(self.axes) != (k, k):
            raise SettingsError(
                f"Lighting: axes: expected ({k}, {k}) as there are {k} numbers of variation, found "
                f"{np.shape(self.axes)}"
            )

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Add the noise."""
        channels = len(self.variation)
        if images.channels != channels:
            raise ShapeError(
                f"Lighting: expected images of {channels} channels, found {images.channels}"
                "; compute variation and axes of images with these channels"
            )
        amounts = rng.normal(0, self.std, (len(images), channels)) * np.asarray(self.variation)
        matrices = np.tile(np.eye(channels, channels + 1), (len(images), 1, 1))
        matrices[:, :, channels] = images.white * amounts @ np.asarray(self.axes).T
        recolour(images, contiguous(images.pixels), matrices)


@dataclass(frozen=True)
class ChannelOrder(Transform):
    """Reorder the channels.

    Parameters
    ----------
    order : tuple of int, or "random"
        The channels' new order: (2, 1, 0) makes BGR of RGB. "random" draws an order for each image.
    """

    order: tuple[int, ...] | str

    def __post_init__(self) -> None:
        if isinstance(self.order, str):
            one_of("ChannelOrder: order", self.order, ("random",))
        elif sorted(self.order) != list(range(len(self.order))):
            raise SettingsError(
                f"ChannelOrder: order: expected each of 0 to {len(self.order) - 1} once, found "
                f"{self.order!r}"
            )

    @property
    def needs_rng(self) -> bool:
        """Whether it draws the order."""
        return self.order == "random"

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Reorder the channels."""
        n, channels = len(images), images.channels
        if self.needs_rng:
            orders = rng.permuted(np.tile(np.arange(channels), (n, 1)), axis=1)
        elif len(self.order) != channels:
            raise ShapeError(
                f"ChannelOrder: expected images of {len(self.order)} channels, found {channels}"
            )
        else:
            orders = np.tile(np.asarray(self.order), (n, 1))
        matrices = np.eye(channels, channels + 1)[orders]
        recolour(images, contiguous(images.pixels), matrices)


def contiguous(pixels: Sequence[Array] | Array) -> Sequence[Array] | Array:
    """Return images, or one array of them, C-contiguous; a copy only if needed."""
    if isinstance(pixels, np.ndarray):
        return np.ascontiguousarray(pixels)
    return [np.ascontiguousarray(image) for image in pixels]


def recolour(images: Images, pixels: Sequence[Array] | Array, matrices: Array) -> None:
    """Mix the channels of images by matrices (N, C, C + 1)."""
    results = room(images.sizes, images.channels, images.dtype)
    mix(pixels, matrices, results, images.white)
    images.replace(results)


def _luma(images: Images, colours: bool) -> Array:
    """Return the channels' weights in the luma."""
    if images.channels == len(LUMA):
        return LUMA
    if colours:
        raise ShapeError(
            f"{images.name}: expected images of 3 channels for saturation and hue, found "
            f"{images.channels}; leave saturation and hue at 0, or convert the images to RGB"
        )
    return np.full(images.channels, 1 / images.channels)


def _saturated(factors: Array, luma: Array) -> Array:
    """Return matrices (n, C, C) that multiply the distance from a pixel's luma by factors."""
    gray = np.tile(luma, (len(luma), 1))
    return gray + factors[:, None, None] * (np.eye(len(luma)) - gray)


def _turned(turns: Array) -> Array:
    """Return matrices (n, 3, 3) that turn the chroma: by a third of a turn red becomes green."""
    cos, sin = np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)
    chroma = np.zeros((len(turns), 3, 3))
    chroma[:, 0, 0] = 1
    chroma[:, 1, 1] = chroma[:, 2, 2] = cos
    chroma[:, 1, 2], chroma[:, 2, 1] = sin, -sin
    return np.linalg.inv(YIQ) @ chroma @ YIQ
