"""Pictures of classes: reading, augmentation and training for the examples on them.

Data: a folder with, for the part `train` and likewise for `val`,
  train/<class>/<file>  of any format that Pillow reads, or
  train*.tar            WebDataset shards: <name>.jpg, .jpeg, .png or .webp and <name>.cls, or
  train.parquet         file or folder, columns `image`, the bytes of such a file, and `label`.
Labels are numbers from 0; folders are numbered by name.
"""

from __future__ import annotations

import argparse
import io
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from daskdl import SampleSet, Trainer, connect, save
from daskdl.console import argument_parser, natural, output, positive
from daskdl.data.image import (
    CenterCrop,
    Decode,
    HorizontalFlip,
    Normalize,
    Pipeline,
    RandomResizedCrop,
    ShortestSide,
    decode,
)
from daskdl.errors import DataError
from daskdl.metrics import Accuracy, TopKAccuracy
from daskdl.nn import Loss, Module
from daskdl.optim import SGD, Groups
from daskdl.optim.schedules import Cosine, Warmup


def as_bytes(file: bytes) -> np.ndarray:
    """Return a picture's file, if its header is right: here an error would name the file."""
    try:
        Image.open(io.BytesIO(file)).close()
    except OSError as error:
        raise DataError(f"expected a picture file, found {len(file)} other bytes") from error
    return np.frombuffer(file, np.uint8)


def as_whole(file: bytes) -> np.ndarray:
    """Return a picture's file, if it can be decoded."""
    decode(file)
    return as_bytes(file)


def read(root: Path, part: str, partitions: int, on_error: str) -> SampleSet:
    """Return the bytes of picture files x and labels y of "train" or "val"."""
    look = as_whole if on_error == "skip" else as_bytes  # as_bytes: training stops at a bad one
    if shards := sorted(root.glob(f"{part}*.tar")):
        return SampleSet.from_tar(
            shards, x="jpg;jpeg;png;webp", y="cls", decode={"x": look}, on_error=on_error
        )
    table = root / f"{part}.parquet"
    if table.exists():
        return SampleSet.from_parquet(
            table, x="image", y="label", decode={"x": look}, on_error=on_error
        )
    files = sorted((root / part).glob("*/*"))
    if not files:
        raise DataError(f"{root}: expected {part}*.tar, {part}.parquet or {part}/*/*, found none")
    classes = sorted(folder.name for folder in (root / "train").iterdir() if folder.is_dir())
    labels = [classes.index(file.parent.name) for file in files]
    return SampleSet.from_files(
        files, lambda file: look(file.read()), partitions=partitions, on_error=on_error, y=labels
    )


@dataclass(frozen=True)
class Through:
    """Passes the bytes of picture files through a pipeline when samples are drawn."""

    pipeline: Pipeline

    def __call__(self, batch: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Decode, augment and normalise."""
        files = [file.tobytes() for file in batch["x"]]
        try:
            return {**batch, "x": self.pipeline(files, rng)}
        except DataError as error:  # a file whose header is right
            advice = "--on-error skip names such pictures and leaves them out"
            raise DataError(f"{str(error).partition(';')[0]}; {advice}") from error


def training(size: int) -> Through:
    """Return the usual augmentation: a crop of random size and shape, randomly mirrored."""
    return Through(Decode(at_least=size) | RandomResizedCrop(size) | HorizontalFlip() | Normalize())


def testing(size: int) -> Through:
    """Return the usual preprocessing for tests: a crop of the middle."""
    side = size * 8 // 7
    return Through(Decode(at_least=side) | ShortestSide(side) | CenterCrop(size) | Normalize())


def arguments(description: str, **defaults: Any) -> argparse.ArgumentParser:
    """Return a parser with the common options of the examples on pictures."""
    parser = argument_parser(description, epilog=__doc__)
    parser.add_argument("data", type=Path, help="folder, see below")
    parser.add_argument("--classes", type=positive, default=1000)
    parser.add_argument("--size", type=positive, default=224, help="pixels of a side")
    parser.add_argument("--epochs", type=positive, default=90)
    parser.add_argument("--warmup", type=natural, default=5, help="epochs in which the rate rises")
    parser.add_argument("--batch-size", type=positive, default=256, help="over all workers")
    parser.add_argument("--rate", type=float, default=0.1, help="for 256 pictures a batch")
    parser.add_argument("--smoothing", type=float, default=0.1, help="of the labels")
    parser.add_argument("--on-error", choices=["raise", "skip"], default="raise", help="bad files")
    parser.add_argument("--cluster", default="local", help="address, file or YAML; see connect()")
    parser.add_argument("--workers", type=natural, default=2, help="0: all in this process")
    parser.add_argument("--checkpoint", type=Path, help="folder from which a second call goes on")
    parser.add_argument("--save", type=output, help="file for the trained network")
    parser.add_argument("--seed", type=natural, default=0)
    parser.set_defaults(**defaults)
    return parser


def train(model: Module, loss: Loss, options: argparse.Namespace, decay: float) -> float:
    """Train with a rate proportional to the batch size, after a warm-up; return top-1 accuracy.

    P. Goyal et al., Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour, arXiv 1706.02677.
    """
    workers = options.workers
    with connect(options.cluster, workers=workers) if workers else nullcontext() as client:
        if client:
            client.upload_file(__file__)  # workers elsewhere cannot import this module
        samples, held_out = (
            read(options.data, part, max(1, workers), options.on_error) for part in ("train", "val")
        )
        print(f"{len(samples):,} pictures to train on, {len(held_out):,} to judge by")
        for bad in (*samples.bad, *held_out.bad):
            print("left out:", bad)
        rate = options.rate * options.batch_size / 256
        steps = -(-len(samples) // options.batch_size)
        rise = options.warmup * steps
        schedule = Warmup(Cosine(rate, max(1, options.epochs * steps - rise)), rise)
        # Groups applies no decay to biases and gains of normalisations, as in the paper.
        method = Groups(SGD(schedule, momentum=0.9, nesterov=True, weight_decay=decay))
        metrics = {"top1": Accuracy(), "top5": TopKAccuracy(5)}
        trainer = Trainer(model, loss, method, options.seed, metrics)
        trainer.fit(
            samples.map(training(options.size)),
            epochs=options.epochs,
            batch_size=options.batch_size,
            shards=max(1, workers),
            validation=held_out.map(testing(options.size)),
            checkpoint=options.checkpoint,
            client=client,
        )
    last = trainer.history.epochs[-1]
    print(f"top-1 {last['val_top1']:.4f}, top-5 {last['val_top5']:.4f}")
    if options.save:
        save(model, options.save)
    return float(last["val_top1"])
