"""SSD: a detector whose convolutions predict the class and the offset of each prior box.

W. Liu et al., SSD: Single Shot MultiBox Detector, arXiv 1512.02325.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.models.detections import Detection, Detections, detections
from daskdl.models.mobilenet import ConvolutionBlock, DepthwiseBlock, MobileNetTrunk
from daskdl.models.multibox import MultiBoxLoss, PriorBoxes
from daskdl.models.vgg import STAGES, convolutions, initialise
from daskdl.nn import init
from daskdl.nn.conv.conv import Conv2d
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import Parameter, filled
from daskdl.tensor import Array, Tensor


class Head(Module, pure=True):
    """A 3x3 convolution of each feature map, with ``numbers`` outputs for each prior.

    ``widths`` are the channels of the maps, ``counts`` their priors per cell.
    """

    def __init__(self, widths: Sequence[int], counts: Sequence[int], numbers: int) -> None:
        self.numbers = numbers
        self.convolutions = [
            Conv2d(width, count * numbers, 3, padding=1)
            for width, count in zip(widths, counts, strict=True)
        ]

    def forward(self, features: Sequence[Any]) -> Tensor:
        """Map feature maps (N, rows, columns, C) to (N, P, numbers)."""
        numbers = [
            ops.reshape(layer(x), shape=(len(x), -1, self.numbers))
            for layer, x in zip(self.convolutions, features, strict=True)
        ]
        together: Tensor = ops.concatenate(*numbers, axis=1)
        return together


class SSD(Module, pure=True):
    """A detector on any trunk.

    Parameters
    ----------
    trunk : Module
        Maps pictures to a tuple of feature maps, the largest first; its attribute ``widths`` has
        their channels.
    priors : PriorBoxes
        Prior boxes of these maps.
    classes : int
    size : int
        Rows and columns of the pictures.
    seed : int
        Seed of the heads' initial weights.

    Examples
    --------
    >>> from daskdl.models import MobileNetTrunk, PriorBoxes
    >>> trunk = MobileNetTrunk(width=0.25, blocks=4, taps=(1, 3))
    >>> priors = PriorBoxes([8, 4], [0.2, 0.5, 0.9], [[2], [2]])
    >>> model = SSD(trunk, priors, classes=3, size=32)
    >>> [a.shape for a in model(np.zeros((1, 32, 32, 3), np.float32))]
    [(1, 320, 4), (1, 320, 4)]
    """

    def __init__(
        self, trunk: Module, priors: PriorBoxes, classes: int, size: int, seed: int = 0
    ) -> None:
        widths: Sequence[int] = trunk.widths  # type: ignore[attr-defined]
        self.trunk, self.priors, self.classes, self.size = trunk, priors, classes, size
        self.classification = Head(widths, priors.counts, classes + 1)
        self.regression = Head(widths, priors.counts, 4)
        numbered = [*self.classification.convolutions, *self.regression.convolutions]
        for i, layer in enumerate(numbered):
            init.normal(layer.weight, 0, 0.01, seed=1000 * seed + 500 + i)
            if layer.bias is not None:
                init.zeros(layer.bias)

    def forward(self, x: Any) -> tuple[Tensor, Tensor]:
        """Map pictures (N, size, size, C) to offsets (N, P, 4) and logits (N, P, classes + 1)."""
        if len(x.shape) != 4 or x.shape[1:3] != (self.size, self.size):
            raise ShapeError(
                f"{type(self).__name__}: expected pictures (N, {self.size}, {self.size}, C), found "
                f"{tuple(x.shape)}; resize them by daskdl.data.image.Resize(({self.size}, "
                f"{self.size}))"
            )
        features = self.trunk(x)
        return self.regression(features), self.classification(features)

    def loss(self, overlap: float = 0.5, ratio: float = 3.0) -> MultiBoxLoss:
        """Return the loss for training; see :class:`MultiBoxLoss`."""
        return MultiBoxLoss(self.priors, overlap, ratio)

    def detections(self, **settings: Any) -> Detections:
        """Return the metric of its detections; arguments as in :class:`Detections`."""
        priors = tuple(map(tuple, self.priors.array.tolist()))
        return Detections(self.classes, priors=priors, **settings)

    def detect(self, x: Array, threads: int | None = None, **settings: Any) -> list[Detection]:
        """Find the objects in pictures.

        Parameters
        ----------
        x : float32 (N, size, size, C)
            Normalised as in training.
        threads : int, optional
            As in :meth:`predict`.
        **settings
            As in :func:`daskdl.models.detections.detections`.

        Returns
        -------
        list of dict
            For each picture: ``boxes`` (k, 4), left, top, right and bottom edge as fractions of the
            picture; ``scores`` (k,), the highest first; ``labels`` (k,) from 0.
        """
        offsets, logits = self.predict(x, threads=threads)
        return detections(offsets, logits, self.priors.array, **settings)


class VGG16Maps(Module, pure=True):
    """SSD300's trunk: VGG-16 with convolutions as its linear layers, and four more stages."""

    #: Channels of each feature map.
    widths = (512, 1024, 512, 256, 256, 256)

    def __init__(self, channels: int = 3) -> None:
        self.convolutions = convolutions(channels)
        self.scale_weight = Parameter(filled(512, 20.0))
        self.fc6, self.fc7 = Conv2d(512, 1024, 3, padding=6, dilation=6), Conv2d(1024, 1024, 1)
        self.extra = [
            Conv2d(1024, 256, 1), Conv2d(256, 512, 3, 2, padding=1),
            Conv2d(512, 128, 1), Conv2d(128, 256, 3, 2, padding=1),
            Conv2d(256, 128, 1), Conv2d(128, 256, 3),
            Conv2d(256, 128, 1), Conv2d(128, 256, 3),
        ]  # fmt: skip

    def forward(self, x: Any) -> tuple[Tensor, ...]:
        """Map pictures (N, 300, 300, C) to maps of 38, 19, 10, 5, 3 and 1 rows and columns."""
        layers, maps = iter(self.convolutions), []
        for stage, widths in enumerate(STAGES):
            for _ in widths:
                x = ops.relu(next(layers)(x))
            if stage == 3:
                maps.append(ops.normalize(x) * self.scale_weight)
            if stage < 4:
                x = ops.max_pool2d(x, kernel_size=(2, 2), stride=(2, 2), ceil_mode=stage == 2)
        x = ops.max_pool2d(x, kernel_size=(3, 3), stride=(1, 1), pad=(1, 1, 1, 1))
        x = ops.relu(self.fc7(ops.relu(self.fc6(x))))
        maps.append(x)
        for i, layer in enumerate(self.extra):
            x = ops.relu(layer(x))
            if i % 2:
                maps.append(x)
        return tuple(maps)


class SSD300(SSD):
    """SSD for pictures of 300 x 300 pixels on VGG-16, in torchvision's layout.

    ``load_state_dict(state, names="torch")`` loads weights of torchvision's ``ssd300_vgg16``, which
    needs pictures normalised by ``Normalize((0.48235, 0.45882, 0.40784), 1 / 255)``.

    Parameters
    ----------
    classes : int
        Number of classes without the background, which torchvision counts.
    channels : int
        Channels of the pictures.
    seed : int
        Seed of the initial weights.

    Examples
    --------
    >>> model = SSD300(classes=90)
    >>> len(model.priors.array)
    8732
    """

    def __init__(self, classes: int = 20, channels: int = 3, seed: int = 0) -> None:
        trunk = VGG16Maps(channels)
        for i, (_, parameter) in enumerate(trunk.named_parameters()):
            if parameter.ndim == 4:
                init.xavier_uniform(parameter, seed=1000 * seed + i)
        priors = PriorBoxes(
            (38, 19, 10, 5, 3, 1),
            (0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05),
            ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,)),
            [step / 300 for step in (8, 16, 32, 64, 100, 300)],
        )
        super().__init__(trunk, priors, classes, 300, seed)


class MobileMaps(Module, pure=True):
    """A trunk for CPUs: MobileNet's first eleven blocks, and stages that halve rows and columns.

    ``width`` is a share of the paper's channels. MobileNet gives two feature maps, of 1/8 and 1/16
    of the picture's sides; each of the ``stages`` adds one.
    """

    def __init__(self, width: float = 0.5, stages: int = 3, channels: int = 3) -> None:
        self.mobilenet = MobileNetTrunk(width, 11, (4, 10), channels)
        self.widths = [*self.mobilenet.widths]
        self.extra: list[ConvolutionBlock | DepthwiseBlock] = []
        for _ in range(stages):
            below = self.widths[-1]
            above = max(64, below // 2)
            self.extra += [ConvolutionBlock(below, above, 1), DepthwiseBlock(above, below, 2)]
            self.widths.append(below)

    def forward(self, x: Any) -> tuple[Tensor, ...]:
        """Map pictures (N, H, W, C) to maps of 1/8, 1/16, 1/32 ... of their rows and columns."""
        maps = list(self.mobilenet(x))
        for i, layer in enumerate(self.extra):
            x = layer(x if i else maps[-1])
            if i % 2:
                maps.append(x)
        return tuple(maps)


class MobileSSD(SSD):
    """SSD on MobileNet's trunk, with batch normalisation, for CPUs.

    Parameters
    ----------
    classes : int
    size : int
        Rows and columns of the pictures; a multiple of 32 is best.
    width : float
        Channels as a share of MobileNet's.
    smallest, largest : float
        Sides of the squares on the first and last feature map, as fractions of the picture's.
    channels : int
        Channels of the pictures.
    seed : int
        Seed of the initial weights.

    Examples
    --------
    >>> model = MobileSSD(classes=3, size=96, width=0.25)
    >>> offsets, logits = model.predict(np.zeros((1, 96, 96, 3), np.float32))
    >>> offsets.shape[2], logits.shape[2]
    (4, 4)
    """

    def __init__(
        self,
        classes: int = 20,
        size: int = 192,
        width: float = 0.5,
        smallest: float = 0.12,
        largest: float = 0.9,
        channels: int = 3,
        seed: int = 0,
    ) -> None:
        least = 17  # smaller pictures would leave one map, and boxes of one scale
        for name, value, enough, wanted in (
            ("size", size, size >= least, f"at least {least} pixels"),
            ("classes", classes, classes >= 1, "at least 1"),
            ("width", width, width > 0, "more than 0"),
        ):
            if not enough:
                raise SettingsError(f"MobileSSD, {name}: expected {wanted}, found {value!r}")
        maps = [-(-size // 8)]
        while maps[-1] > 2 and len(maps) < 6:
            maps.append(-(-maps[-1] // 2))
        trunk = MobileMaps(width, len(maps) - 2, channels)
        initialise(trunk, seed)
        step = (largest - smallest) / (len(maps) - 1)
        scales = [smallest + step * k for k in range(len(maps) + 1)]
        super().__init__(trunk, PriorBoxes(maps, scales, [(2,)] * len(maps)), classes, size, seed)
