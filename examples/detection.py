"""SSD on MobileNet's trunk learns to find QR codes, discs and triangles in photographs.

Data: see examples/scenes.py; pip install scikit-image segno. Every epoch draws new scenes; test
scenes are always the same.
Run: python examples/detection.py --save detector.safetensors  # 12 minutes on two free cores
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from scenes import CLASSES, Scenes, photographs

from daskdl import SampleSet, Trainer, connect, save
from daskdl.console import argument_parser, natural, output, positive, script
from daskdl.data.image import (
    ColorJitter,
    HorizontalFlip,
    Normalize,
    NormalizeBoxes,
    RandomIoUCrop,
    Resize,
)
from daskdl.models import BoxTargets, MobileSSD
from daskdl.optim import Adam, Groups
from daskdl.optim.schedules import OneCycle

#: Normalisation of the detector's input.
NORMALISED = Normalize(0.5, 0.25)


def held_out(count: int, size: int, seed: int = 1) -> SampleSet:
    """Return scenes of photographs that are not trained on, ready for the detector."""
    drawn = Scenes(photographs("test"), size * 5 // 4)(
        {"x": np.empty(count)}, np.random.default_rng(seed)
    )
    ready = Resize((size, size)) | NORMALISED | NormalizeBoxes()
    return SampleSet.from_arrays(**BoxTargets()(ready(drawn)))


def main(arguments: list[str] | None = None) -> float:
    """Train, and return the mean average precision at an overlap of 0.5 in the test scenes."""
    parser = argument_parser(__doc__)
    parser.add_argument("--size", type=positive, default=128, help="pixels of a side")
    parser.add_argument("--width", type=float, default=0.5, help="share of MobileNet's channels")
    parser.add_argument("--scenes", type=positive, default=1500, help="drawn for each epoch")
    parser.add_argument("--epochs", type=positive, default=40)
    parser.add_argument("--batch", type=positive, default=16)
    parser.add_argument("--rate", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--test", type=positive, default=300, help="test scenes")
    parser.add_argument("--workers", type=natural, default=0, help="0: all in this process")
    parser.add_argument("--checkpoint", type=Path, help="folder from which a second call goes on")
    parser.add_argument("--save", type=output, help="file for the trained detector")
    parser.add_argument("--seed", type=natural, default=0)
    options = parser.parse_args(arguments)

    model = MobileSSD(len(CLASSES), options.size, options.width, seed=options.seed)
    augmented = (
        RandomIoUCrop(overlaps=(0.3,), scale=(0.6, 1.0))
        | HorizontalFlip()
        | Resize((options.size, options.size))
        | ColorJitter(0.2, 0.2, 0.2)
        | NORMALISED
        | NormalizeBoxes()
    )
    workers = options.workers
    numbers = SampleSet.from_arrays(x=np.arange(options.scenes), partitions=max(1, workers))
    train = (
        numbers.map(Scenes(photographs("train"), options.size * 5 // 4))
        .map(augmented)
        .map(BoxTargets())
    )
    test = held_out(options.test, options.size)
    steps = max(4, options.epochs * -(-options.scenes // options.batch))  # OneCycle needs 4
    method = Groups(Adam(OneCycle(options.rate, over=steps), weight_decay=1e-4))
    metrics = {"map50": model.detections(style="voc2010", overlaps=(0.5,))}
    trainer = Trainer(model, model.loss(), method, options.seed, metrics)
    began = time.monotonic()
    with connect("local", workers=workers) if workers else nullcontext() as client:
        trainer.fit(
            train, epochs=options.epochs, batch_size=options.batch, validation=test,
            client=client, checkpoint=options.checkpoint, training_metrics=False,
        )  # fmt: skip
    print(trainer.history.to_frame(epochs=True).round(4).to_string())
    precision = float(trainer.history.epochs[-1]["val_map50"])
    print(f"{model.flat.size:,} parameters, {time.monotonic() - began:.0f} s; "
          f"mAP@0.5 {precision:.3f} in {options.test} scenes of other photographs")  # fmt: skip
    if options.save:
        save(model, options.save)
    return precision


if __name__ == "__main__":
    script(main)
