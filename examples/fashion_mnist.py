"""Fashion-MNIST: LeNet-5 with an accuracy of 90 %, or a narrow ResNet-18 with 93 %.

Data: Debian's package `dataset-fashion-mnist` (MIT), or the same four files in a folder of yours.
Run: python examples/fashion_mnist.py lenet  # a minute on two free cores
     python examples/fashion_mnist.py resnet --workers 2 --int8  # a quarter of an hour
"""

from __future__ import annotations

import gzip
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from daskdl import SampleSet, Trainer, connect, quantize
from daskdl.console import argument_parser, natural, positive, script
from daskdl.data.image import HorizontalFlip, Normalize, Pad, RandomCrop
from daskdl.errors import DataError
from daskdl.metrics import Accuracy
from daskdl.models import LeNet5, ResNet
from daskdl.nn import CrossEntropyLoss
from daskdl.optim import SGD, Groups
from daskdl.optim.schedules import OneCycle

FOLDER = Path("/usr/share/datasets/fashion-mnist")
MEAN, DEVIATION = 0.286, 0.353  # of all training pixels, from 0 to 1
NORMALISED = Normalize(MEAN, DEVIATION)
#: Randomly mirrored, and shifted by up to 2 pixels.
AUGMENTED = HorizontalFlip() | Pad(32) | RandomCrop(28) | NORMALISED
#: Epochs, highest learning rate, weight decay, label smoothing.
RECIPES = {"lenet": (12, 0.06, 5e-4, 0.0), "resnet": (12, 0.2, 5e-4, 0.1)}


def read_idx(path: Path) -> np.ndarray:
    """Read a gzipped IDX file of unsigned bytes, MNIST's format."""
    if not path.exists():
        raise DataError(
            f"{path}: expected the four files of Fashion-MNIST, found no such file; "
            "install Debian's package dataset-fashion-mnist, or give --folder"
        )
    with gzip.open(path) as file:
        raw = file.read()
    sizes = np.frombuffer(raw, ">i4", count=raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(sizes)


def read(folder: Path, part: str, count: int | None) -> dict[str, np.ndarray]:
    """Return pictures x uint8 (n, 28, 28, 1) and labels y int64 (n,) of "train" or "t10k"."""
    pictures = read_idx(folder / f"{part}-images-idx3-ubyte.gz")[:count]
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")[:count]
    return {"x": pictures[..., None], "y": labels.astype(np.int64)}


def main(arguments: list[str] | None = None) -> float:
    """Train, and return the accuracy on the test pictures."""
    parser = argument_parser(__doc__)
    parser.add_argument("network", choices=RECIPES)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the four .gz files")
    parser.add_argument("--epochs", type=positive)
    parser.add_argument("--batch", type=positive, default=128)
    parser.add_argument("--width", type=positive, default=16, help="the ResNet's first channels")
    parser.add_argument("--count", type=positive, help="largest number of pictures of either set")
    parser.add_argument("--workers", type=natural, default=0, help="0: all in this process")
    parser.add_argument(
        "--threads", type=positive, help="of each worker: 1; of this process: all cores"
    )
    parser.add_argument("--checkpoint", type=Path, help="folder from which a second call goes on")
    parser.add_argument("--precision", choices=("float32", "bf16"), default="float32")
    parser.add_argument("--int8", action="store_true", help="test the network in int8, too")
    parser.add_argument("--seed", type=natural, default=0)
    options = parser.parse_args(arguments)

    epochs, rate, decay, smoothing = RECIPES[options.network]
    epochs = epochs if options.epochs is None else options.epochs
    workers = options.workers
    train = SampleSet.from_arrays(
        partitions=max(1, workers), **read(options.folder, "train", options.count)
    )
    test = SampleSet.from_arrays(**read(options.folder, "t10k", options.count)).map(NORMALISED)
    if options.network == "lenet":
        model, train = LeNet5(seed=options.seed), train.map(NORMALISED)
    else:
        model = ResNet(18, 10, "small", options.width, channels=1, seed=options.seed)
        train = train.map(AUGMENTED)
    steps = max(4, epochs * -(-len(train) // options.batch))  # OneCycle needs 4
    schedule = OneCycle(rate, over=steps)
    method = Groups(SGD(schedule, momentum=0.9, nesterov=True, weight_decay=decay))
    trainer = Trainer(
        model, CrossEntropyLoss(smoothing=smoothing), method, options.seed, [Accuracy()],
        precision=options.precision,
    )  # fmt: skip
    began = time.monotonic()
    with connect("local", workers=workers) if workers else nullcontext() as client:
        trainer.fit(
            train, epochs=epochs, batch_size=options.batch, validation=test, client=client,
            checkpoint=options.checkpoint, threads=options.threads,
        )  # fmt: skip
    print(trainer.history.to_frame(epochs=True).round(4).to_string())
    accuracy = float(trainer.history.epochs[-1]["val_accuracy"])
    print(f"{options.network}: {model.flat.size:,} parameters, {epochs} epochs, "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip
    print(f"accuracy on {len(test):,} test pictures: {accuracy:.4f}")
    if options.int8:
        seen = NORMALISED(read(options.folder, "train", 512), np.random.default_rng())["x"]
        small = quantize(model, seen)
        print(f"{small.table}\nin int8: {small.evaluate(test, [Accuracy()])['accuracy']:.4f}")
    return accuracy


if __name__ == "__main__":
    script(main)
