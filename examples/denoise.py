"""Denoising a stack of slices that is larger than memory: train on windows, predict by tiles.

A microscope's stack is simulated: blurred tubes and spheres, with the noise of few photons. A small
3-D U-Net learns from two noisy copies of one stack, without a clean image (J. Lehtinen et al.,
Noise2Noise, arXiv 1803.04189), and is then applied to another stack, tile by tile.

    python examples/denoise.py [--side 128] [--depth 32] [--picture denoised.png]
"""

from __future__ import annotations

import tempfile

import numpy as np
import zarr
from scipy.ndimage import gaussian_filter

from daskdl import SampleSet, Trainer, nn
from daskdl.console import argument_parser, output, positive, script
from daskdl.models import UNet
from daskdl.optim import Adam


def clean(depth: int, side: int, seed: int) -> np.ndarray:
    """Return a stack (depth, side, side) of expected numbers of photons, float32."""
    draw, stack = np.random.default_rng(seed), np.zeros((depth, side, side), np.float32)
    z, y, x = np.mgrid[:depth, :side, :side]
    for _ in range(depth * side * side // 30_000):
        centre = draw.uniform(0, 1, 3) * stack.shape
        away = np.stack([z - centre[0], y - centre[1], x - centre[2]])
        along = draw.normal(size=3) * draw.integers(0, 2)  # zero for a sphere
        along /= max(1e-9, np.linalg.norm(along))
        place = np.tensordot(along, away, 1)
        distance = (away**2).sum(0) - place**2
        stack[(distance < draw.uniform(2, 4) ** 2) & (abs(place) < 30)] = draw.uniform(6, 20)
    return gaussian_filter(stack, 0.8) + 2


def stabilised(photons: np.ndarray) -> np.ndarray:
    """Return numbers whose noise has the same variance everywhere (F. J. Anscombe, 1948)."""
    return np.sqrt(photons + 0.375).astype(np.float32)


def main(arguments: list[str] | None = None) -> list[float]:
    """Train, predict, and return the errors of the noisy and of the denoised stack."""
    parser = argument_parser(__doc__)
    parser.add_argument("--side", type=positive, default=128)
    parser.add_argument("--depth", type=positive, default=32)
    parser.add_argument("--epochs", type=positive, default=8)
    parser.add_argument("--picture", type=output, help="PNG of one slice")
    options = parser.parse_args(arguments)

    draw = np.random.default_rng(0)
    part = clean(options.depth, options.side, seed=1)
    one, other = (stabilised(draw.poisson(part))[..., None] for _ in range(2))
    step = {0: 8, 1: 16, 2: 16}
    windows = SampleSet.from_windows({"x": one, "y": other}, {0: 16, 1: 32, 2: 32}, step=step)
    model = UNet(1, 1, filters=(8, 16), axes=3)
    history = Trainer(model, nn.MSELoss(), Adam(0.005)).fit(
        windows, epochs=options.epochs, batch_size=4, progress=False
    )
    print(f"{len(windows)} windows, loss {history['loss'][0]:.3f} to {history['loss'][-1]:.3f}")

    truth = clean(options.depth, options.side, seed=2)
    noisy = stabilised(draw.poisson(truth))
    with tempfile.TemporaryDirectory() as folder:
        stack = zarr.create_array(f"{folder}/stack", data=noisy, chunks=(16, 64, 64))
        better = model.predict(stack, tile={0: 16, 1: 64, 2: 64}, out=f"{folder}/better")[:]
    errors = [float(np.sqrt(((a - stabilised(truth)) ** 2).mean())) for a in (noisy, better)]
    print("error of the noisy stack {:.3f}, of the denoised one {:.3f}".format(*errors))
    if options.picture:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
        for axis, name, values in zip(
            axes, ("noisy", "denoised", "clean"), (noisy, better, stabilised(truth)), strict=True
        ):
            axis.imshow(values[options.depth // 2], cmap="gray", vmin=1, vmax=5)
            axis.set_title(name)
            axis.axis("off")
        figure.savefig(options.picture, format="png")
    return errors


if __name__ == "__main__":
    script(main)
