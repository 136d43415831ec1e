"""DeepBit: binary codes of pictures, learned without labels.

K. Lin, J. Lu, C.-S. Chen and J. Zhou, Learning Compact Binary Descriptors with Unsupervised Deep
Neural Networks, CVPR 2016.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.models.vgg import VGG16Trunk, initialise
from daskdl.nn import init
from daskdl.nn.core.module import Module
from daskdl.nn.linear import Linear
from daskdl.nn.losses.loss import Loss
from daskdl.tensor import Array, Tensor


class DeepBit(Module, pure=True):
    """A trunk and a linear layer with one output per bit; the signs are the code.

    Parameters
    ----------
    bits : int
        A multiple of 8; the paper has 16, 32, 64 and 256.
    trunk : Module, optional
        Maps pictures to (N, features); its attribute ``features`` is their number. By default
        VGG-16 with initial weights, for pictures of 224 x 224 pixels.
    seed : int
        Seed of the initial weights of the layer and of VGG-16.

    Raises
    ------
    SettingsError
        When ``bits`` is no multiple of 8.

    Examples
    --------
    >>> class Means(nn.Module):
    ...     features = 3
    ...     def forward(self, x):
    ...         return ops.mean(x, axis=(1, 2))
    >>> model = DeepBit(bits=16, trunk=Means())
    >>> model.codes(np.random.default_rng(0).random((5, 8, 8, 3), np.float32)).shape
    (5, 2)
    """

    def __init__(self, bits: int = 32, trunk: Module | None = None, seed: int = 0) -> None:
        if bits < 8 or bits % 8:
            raise SettingsError(
                f"DeepBit: expected a multiple of 8 bits, found {bits!r}; 16, 32, 64 and 256 are "
                "the paper's"
            )
        if trunk is None:
            trunk = VGG16Trunk()
            initialise(trunk, seed)
        self.trunk, self.bits = trunk, bits
        features: int = trunk.features  # type: ignore[attr-defined]
        self.code = Linear(features, bits)
        init.normal(self.code.weight, 0, 1 / math.sqrt(features), seed=1000 * seed + 999)
        if self.code.bias is not None:
            init.zeros(self.code.bias)

    def forward(self, x: Any) -> Tensor:
        """Map pictures (N, H, W, C), or rotated versions (N, R, H, W, C) too, to (..., bits).

        Training brings the numbers near -1/2 and 1/2.
        """
        if x.ndim == 4:
            return self.code(self.trunk(x))
        y = self.code(self.trunk(ops.reshape(x, shape=(-1, *x.shape[2:]))))
        turned: Tensor = ops.reshape(y, shape=(*x.shape[:2], self.bits))
        return turned

    def codes(self, x: Array, batch_size: int = 256) -> NDArray[np.uint8]:
        """Return the packed codes of pictures (N, H, W, C), uint8 (N, bits / 8)."""
        parts = [self.predict(x[i : i + batch_size]) for i in range(0, len(x), batch_size)]
        numbers = np.concatenate(parts) if parts else np.zeros((0, self.bits), np.float32)
        return np.packbits(numbers > 0, axis=1)


@dataclass(frozen=True)
class Turned:
    """Function for :meth:`SampleSet.map` that adds rotated versions to each picture.

    Parameters
    ----------
    angles : sequence of float
        In degrees.

    Examples
    --------
    >>> Turned((-5.0, 5.0))({"x": np.zeros((2, 8, 8, 3), np.uint8)})["x"].shape
    (2, 3, 8, 8, 3)
    """

    angles: Sequence[float] = (-10.0, -5.0, 5.0, 10.0)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return the batch with x (N, 1 + angles, H, W, C), the original picture first."""
        from daskdl.data.image import Rotate

        x, rng = np.asarray(batch["x"]), np.random.default_rng(0)
        turned = [np.asarray(Rotate((angle, angle))(x, rng)) for angle in self.angles]
        return {**batch, "x": np.stack([x, *turned], 1)}


class DeepBitLoss(Loss):
    """The three losses of DeepBit: quantization, even distribution and rotation.

    1. Quantization: the squared distance of each number from the nearer of -1/2 and 1/2 (equation
       3 of the paper).
    2. Even distribution: the square of each bit's mean over a shard's part of the batch, so that
       the bit is 1 in half of the pictures (equation 4). The mean is over numbers, as signs have
       no gradient.
    3. Rotation: the squared distance of a rotated picture's numbers from the picture's own,
       weighted by a normal distribution of the angle (equations 5 and 6).

    Parameters
    ----------
    angles : sequence of float
        The angles of :class:`Turned`, in degrees.
    quantization, evenness, rotation : float
        Weights of the three losses.
    deviation : float
        Standard deviation of the weights of angles, in degrees.

    Examples
    --------
    >>> evenly = np.array([[[0.5, -0.5]], [[-0.5, 0.5]]], np.float32)
    >>> float(DeepBitLoss(angles=())(evenly))
    0.0
    """

    def __init__(
        self,
        angles: Sequence[float] = (-10.0, -5.0, 5.0, 10.0),
        quantization: float = 1.0,
        evenness: float = 1.0,
        rotation: float = 1.0,
        deviation: float = 10.0,
    ) -> None:
        self.weights = (quantization, evenness, rotation)
        self.angles = [math.exp(-((angle / deviation) ** 2) / 2) for angle in angles]

    def forward(self, prediction: Any, target: Any = None, sample_weight: Any = None) -> Tensor:
        """Return the loss of numbers (N, 1 + angles, bits); targets are ignored."""
        if sample_weight is not None:
            raise SettingsError("DeepBitLoss: expected samples without sample_weight")
        if prediction.ndim != 3 or prediction.shape[1] != 1 + len(self.angles):
            raise ShapeError(
                f"DeepBitLoss: expected numbers (N, {1 + len(self.angles)}, bits), found "
                f"{tuple(prediction.shape)}; SampleSet.map(Turned(angles)) gives the model turned "
                "pictures"
            )
        numbers = np.asarray(prediction)
        nearer = np.where(numbers > 0, 0.5, -0.5).astype(numbers.dtype)
        prediction = prediction if isinstance(prediction, Tensor) else Tensor(prediction)
        unturned = prediction[:, :1]
        alike = np.sqrt(np.asarray(self.angles, numbers.dtype))[:, None]
        quantization, evenness, rotation = self.weights
        total: Tensor = quantization * ((prediction - nearer) ** 2).mean()
        total = total + evenness * (unturned.mean(0) ** 2).mean()
        if len(self.angles):
            total = total + rotation * (((prediction[:, 1:] - unturned) * alike) ** 2).mean()
        return total
