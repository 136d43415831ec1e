"""DeepBit on Fashion-MNIST: how well binary codes find pictures of the same class.

The trunk is a small convolutional network. DeepBit learns without labels; as in the paper, where
the trunk is pre-trained on other pictures, `--pretrain` first trains it to classify half of the
classes. For comparison: signs of principal components, signs of random projections, random codes.

Data: Debian's package `dataset-fashion-mnist` (MIT), or the same four files in a folder of yours.
Run: python examples/deepbit.py --bits 32 --save deepbit.safetensors
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import fashion_mnist
import numpy as np

from daskdl import SampleSet, Trainer, save
from daskdl.console import argument_parser, natural, output, positive, script
from daskdl.models import DeepBit
from daskdl.models.deepbit import DeepBitLoss, Turned
from daskdl.nn import (
    BatchNorm,
    Conv2d,
    CrossEntropyLoss,
    Flatten,
    Linear,
    MaxPool2d,
    Module,
    Sequential,
)
from daskdl.optim import Adam
from daskdl.optim.schedules import OneCycle
from daskdl.search import HammingIndex, packed


class SmallTrunk(Module):
    """Three convolutions, (N, 28, 28, 1) -> (N, features)."""

    def __init__(self, features: int = 128, seed: int = 0) -> None:
        self.features = features
        self.layers = Sequential(
            Conv2d(1, 16, 3, padding=1, bias=False, seed=seed), BatchNorm(16, relu=True),
            MaxPool2d(2),
            Conv2d(16, 32, 3, padding=1, bias=False, seed=seed + 1), BatchNorm(32, relu=True),
            MaxPool2d(2),
            Conv2d(32, 64, 3, padding=1, bias=False, seed=seed + 2), BatchNorm(64, relu=True),
            Flatten(), Linear(7 * 7 * 64, features, seed=seed + 3),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        """Map pictures to features."""
        return self.layers(x)


def fit(model: Module, loss: Any, samples: SampleSet, epochs: int, seed: int) -> None:
    """Train with Adam."""
    steps = max(4, epochs * -(-len(samples) // 128))  # OneCycle needs 4
    Trainer(model, loss, Adam(OneCycle(2e-3, over=steps)), seed).fit(
        samples, epochs=epochs, batch_size=128, progress=False, client=False
    )


def precision(codes: Any, labels: Any, queries: Any, asked: Any, first: int = 1000) -> float:
    """Return the mean average precision of the ``first`` nearest codes, as in the paper."""
    _, numbers = HammingIndex(codes).search(queries, first)
    right = labels[numbers] == asked[:, None]
    ranks = np.arange(1, numbers.shape[1] + 1)
    of_each = (np.cumsum(right, 1) / ranks * right).sum(1) / np.maximum(right.sum(1), 1)
    return float(of_each.mean())


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Train, and return the mean average precision of each kind of code."""
    parser = argument_parser(__doc__)
    parser.add_argument("--bits", type=positive, default=32)
    parser.add_argument("--folder", type=Path, default=fashion_mnist.FOLDER, help="of the files")
    parser.add_argument("--count", type=positive, default=20_000, help="training pictures")
    parser.add_argument("--queries", type=positive, default=1000, help="test pictures")
    parser.add_argument("--epochs", type=positive, default=3)
    parser.add_argument(
        "--pretrain", type=natural, default=3, help="epochs of classification before"
    )
    parser.add_argument("--save", type=output, help="file for the last network")
    parser.add_argument("--seed", type=natural, default=0)
    options = parser.parse_args(arguments)
    if options.bits % 8:
        parser.error(f"--bits: expected a multiple of 8, found {options.bits}")

    train = fashion_mnist.read(options.folder, "train", options.count)
    test = fashion_mnist.read(options.folder, "t10k", options.queries)
    x, asked = (
        fashion_mnist.NORMALISED(part["x"], np.random.default_rng(0)) for part in (train, test)
    )
    flat, flat_asked = x.reshape(len(x), -1), asked.reshape(len(asked), -1)
    rng = np.random.default_rng(options.seed)
    scores, began = {}, time.monotonic()

    def judge(name: str, codes: Any, queries: Any) -> None:
        scores[name] = precision(codes, train["y"], queries, test["y"])
        print(f"{name:<42} mAP of the first 1,000: {scores[name]:.3f}", flush=True)

    judge("random codes", *(
        rng.integers(0, 256, (len(part), options.bits // 8), np.uint8) for part in (x, asked)
    ))  # fmt: skip
    mean = flat.mean(0)
    directions = rng.normal(size=(flat.shape[1], options.bits))
    judge("signs of random projections", packed((flat - mean) @ directions),
          packed((flat_asked - mean) @ directions))  # fmt: skip
    components = np.linalg.eigh(np.cov(flat.T))[1][:, ::-1][:, : options.bits]
    judge("signs of principal components", packed((flat - mean) @ components),
          packed((flat_asked - mean) @ components))  # fmt: skip
    unlabelled = SampleSet.from_arrays(x=x, y=np.zeros(len(x), np.float32)).map(Turned())
    for pretrain in dict.fromkeys((0, options.pretrain)):
        trunk = SmallTrunk(seed=options.seed)
        if pretrain:
            other = train["y"] < 5  # half of the classes; queries are of all
            labelled = SampleSet.from_arrays(x=x[other], y=train["y"][other])
            head = Sequential(trunk, Linear(trunk.features, 5, seed=options.seed))
            fit(head, CrossEntropyLoss(), labelled, pretrain, options.seed)
        model = DeepBit(options.bits, trunk, options.seed)
        fit(model, DeepBitLoss(), unlabelled, options.epochs, options.seed)
        name = "DeepBit" + (", trunk taught five other classes" if pretrain else ", no labels")
        judge(name, model.codes(x), model.codes(asked))
    print(f"{options.bits} bits, {len(x):,} pictures to find, {len(asked):,} queries, "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip
    if options.save:  # without the class of this file, so that any program can load it
        save(Sequential(trunk.layers, model.code), options.save)
    return scores


if __name__ == "__main__":
    script(main)
