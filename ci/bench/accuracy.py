"""``python -m ci.bench.accuracy``: scores of networks in bfloat16 and int8 against float32.

Each task is trained in float32 and bfloat16 from the same weights and in the same order, and tested
on other samples in the precision of its training; int8 is the float32 model, quantized with its
training samples. scikit-learn's digits are real; the other samples are random, with noise that no
model can predict.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from daskdl import SampleSet, Trainer
from daskdl.errors import SettingsError
from daskdl.models import ConvLSTMForecaster, MobileSSD, NeuMF, ResNet, TextClassifier
from daskdl.models.mobilenet import MobileNetTrunk
from daskdl.nn import (
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    Linear,
    Module,
    MSELoss,
    NLLLoss,
    ReLU,
    init,
)
from daskdl.optim import SGD, Adam
from daskdl.quantization import quantize
from daskdl.text.encoder import TextEncoder, TextHead

Array = np.ndarray[Any, Any]


class Task(NamedTuple):
    """Samples to train and to test on, how to make a model, and its score in points."""

    train: tuple[Array, Array]
    test: tuple[Array, Array]
    model: Callable[..., Module]  #: of a seed
    loss: Any
    method: Any
    epochs: int
    score: Callable[[Any, Array], float]


def _cut(x: Array, y: Array, train: int, seed: int) -> tuple[Any, Any]:
    order = np.random.default_rng(seed).permutation(len(x))
    first, rest = order[:train], order[train:]
    return (x[first], y[first]), (x[rest], y[rest])


def _hits(prediction: Array, y: Array) -> float:
    return 100 * float((prediction.argmax(-1) == y).mean())


def digits() -> Task:
    """Return pictures of ten digits, 8x8 pixels each, for a narrow ResNet-18."""
    from sklearn.datasets import load_digits

    data = load_digits()
    x, y = (data.images[..., None] / 16).astype(np.float32), data.target.astype(np.int64)
    train, test = _cut(x, y, 1000, 0)

    model = partial(ResNet, 18, 10, "small", 16, channels=1)
    return Task(train, test, model, CrossEntropyLoss(), SGD(0.05, momentum=0.9), 8, _hits)


class _MobileNet(Module):
    """Seven blocks of MobileNet, and an affine map of the means of their channels."""

    def __init__(self, seed: int) -> None:
        self.trunk = MobileNetTrunk(0.5, 7, (6,), 1)
        self.last = Linear(self.trunk.widths[0], 10, seed=seed)
        for i, (_, parameter) in enumerate(self.trunk.named_parameters()):
            if parameter.ndim == 4:
                init.kaiming_normal(parameter, mode="fan_out", seed=1000 * seed + i)

    def forward(self, x: Any) -> Any:
        """Map pictures to scores."""
        return self.last(self.trunk(x)[0].mean((1, 2)))


def small_pictures() -> Task:
    """Return the digits as pictures of 32x32 pixels, for seven blocks of MobileNet."""
    task = digits()

    wide = [(x.repeat(4, 1).repeat(4, 2), y) for x, y in (task.train, task.test)]
    return task._replace(train=wide[0], test=wide[1], model=_MobileNet)


def boxes() -> Task:
    """Return pictures of 64x64 pixels with discs and squares amid noise, for MobileSSD.

    The score is the mean average precision at an overlap of one half.
    """
    rng, n, size, most = np.random.default_rng(4), 700, 64, 3
    x = rng.normal(0, 0.5, (n, size, size, 3)).astype(np.float32)
    y = np.full((n, most, 5), -1, np.float32)
    rows, columns = np.mgrid[:size, :size]
    for i in range(n):
        for j in range(rng.integers(1, most + 1)):
            radius, label = rng.uniform(6, 16), rng.integers(0, 2)
            centre = rng.uniform(radius, size - radius, 2)
            away = abs(rows - centre[0]), abs(columns - centre[1])
            inside = np.hypot(*away) < radius if label else np.maximum(*away) < radius
            x[i][inside] += rng.uniform(0.5, 1.5, 3)
            left_top = (centre - radius)[::-1] / size
            y[i, j] = *left_top, *(left_top + 2 * radius / size), label
    train, test = _cut(x, y, 500, 4)
    detector = MobileSSD(2, size, 0.25)
    metric = detector.detections(style="voc2010", overlaps=(0.5,))

    def score(prediction: Any, y: Array) -> float:
        return 100 * float(metric.value(metric.statistics(prediction, y)))

    model = partial(MobileSSD, 2, size, 0.25)
    return Task(train, test, model, detector.loss(), Adam(3e-3), 20, score)


def texts() -> Task:
    """Return texts of 40 words, in each of which one of eight topics prevails, for an LSTM."""
    rng, n, words = np.random.default_rng(1), 6000, 800
    y = rng.integers(0, 8, n)
    topical = 1 + (y[:, None] + rng.choice(8, (n, 40), p=[0.51, *[0.07] * 7])) % 8
    x = np.where(rng.random((n, 40)) < 0.4, topical * 10 + rng.integers(0, 10, (n, 40)), 0)
    x = np.where(x == 0, rng.integers(100, words, (n, 40)), x)
    train, test = _cut(x, y, 3000, 1)

    model = partial(TextClassifier, words, 8, 48, "lstm", 64, 64)
    return Task(train, test, model, NLLLoss(), Adam(3e-3), 10, _hits)


def encoded() -> Task:
    """Return the same texts for two blocks of a transformer."""

    def model(seed: int) -> Module:
        encoder = TextEncoder(800, 64, 2, 4, 128, places=40, seed=seed)
        return TextHead(encoder, layers=[Linear(64, 64, seed=seed), ReLU(), Linear(64, 8, seed=1)])

    return texts()._replace(model=model, loss=CrossEntropyLoss(), method=Adam(1e-3))


def pairs() -> Task:
    """Return pairs of user and item, and whether the user likes the item, for NeuMF."""
    rng, users, items, n = np.random.default_rng(2), 400, 300, 60_000
    taste, kind = rng.normal(size=(users, 4)), rng.normal(size=(items, 4))
    x = np.stack([rng.integers(0, users, n), rng.integers(0, items, n)], 1)
    liking = (taste[x[:, 0]] * kind[x[:, 1]]).sum(1) + 0.5 * rng.normal(size=n)
    train, test = _cut(x, (liking > 0).astype(np.float32), 40_000, 2)

    model = partial(NeuMF, users, items, 32, (64, 64, 32))

    def score(prediction: Array, y: Array) -> float:
        return 100 * float(((prediction.reshape(y.shape) > 0) == (y > 0)).mean())

    return Task(train, test, model, BCEWithLogitsLoss(), Adam(2e-3), 6, score)


def frames() -> Task:
    """Return moving showers of 32x32 pixels, four frames in and four out, for a ConvLSTM network.

    The score is the critical success index of pixels above one half.
    """
    rng, n = np.random.default_rng(3), 500
    at, motion = rng.uniform(8, 24, (n, 1, 3, 2)), rng.uniform(-1.5, 1.5, (n, 1, 1, 2))
    places = at + motion * np.arange(8)[None, :, None, None]
    grid = np.stack(np.meshgrid(np.arange(32), np.arange(32), indexing="ij"), -1)
    away = ((grid[None, None, None] - places[:, :, :, None, None]) ** 2).sum(-1)
    rain = np.exp(-away / 18).max(2)[..., None].astype(np.float32)
    train, test = _cut(rain[:, :4], rain[:, 4:], 350, 3)

    model = partial(ConvLSTMForecaster, 4, 4, (24, 24))

    def score(prediction: Array, y: Array) -> float:
        predicted, observed = prediction > 0.5, y > 0.5
        return 100 * float((predicted & observed).sum() / (predicted | observed).sum())

    return Task(train, test, model, MSELoss(), Adam(2e-3), 10, score)


TASKS = {
    "digits, ResNet-18": digits,
    "digits, MobileNet": small_pictures,
    "boxes, SSD on MobileNet": boxes,
    "texts, LSTM": texts,
    "texts, transformer": encoded,
    "pairs, NeuMF": pairs,
    "showers, ConvLSTM": frames,
}


def reached(task: Task, seed: int, precision: str) -> list[float]:
    """Train one model and return its score; for float32 also the score of its int8 model."""
    model = task.model(seed=seed)
    trainer = Trainer(model, task.loss, task.method, seed, precision=precision)
    samples = SampleSet.from_arrays(x=task.train[0], y=task.train[1])
    trainer.fit(samples, epochs=task.epochs, batch_size=64, progress=False)
    x, y = task.test
    scores = [task.score(model.predict(x, precision=precision), y)]
    if precision == "float32":
        try:
            small = quantize(model.eval(), task.train[0][:500])
            scores.append(task.score(small.predict(x), y))
        except SettingsError:  # no layer of the model has an int8 form
            scores.append(float("nan"))
    return scores


def main() -> None:
    """Train all models, and print a table of means over the seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="tasks whose name contains this")
    parser.add_argument("--without-bf16", action="store_true", help="bf16 is slow without AMX")
    options = parser.parse_args()
    print("| task | float32 | bf16 | int8 | bf16, single seeds | int8, single seeds |")
    print("|---|---:|---:|---:|---|---|")
    for name, make in TASKS.items():
        if options.only not in name:
            continue
        task = make()
        rows = []
        for seed in range(options.seeds):
            float32, int8 = reached(task, seed, "float32")
            bf16 = float("nan") if options.without_bf16 else reached(task, seed, "bf16")[0]
            rows.append((float32, bf16, int8))
        means = " | ".join(f"{statistics.mean(c):.2f}" for c in zip(*rows, strict=True))
        single = " | ".join(", ".join(f"{row[i] - row[0]:+.2f}" for row in rows) for i in (1, 2))
        print(f"| {name} | {means} | {single} |", flush=True)


if __name__ == "__main__":
    main()
