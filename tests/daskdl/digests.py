"""``python -m tests.daskdl.digests THREADS...``: a digest of what each part of training computes.

Each layer, loss and network has a line: ``threads name digest``. A layer's digest is of results and
gradients, at widths that no vector divides; a network's is of its weights after some iterations.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from daskdl import models, nn, optim, text
from daskdl.data import SampleSet
from daskdl.kernels.runtime.precision import PRECISIONS, computing_in, precision
from daskdl.kernels.runtime.threads import thread_budget, threads
from daskdl.quantization import quantize
from daskdl.tensor import Tensor
from daskdl.train import Trainer
from tests.daskdl.gradients import as_tuple
from tests.daskdl.nn.recipes import FLOATS, NOT_TRAINED, OTHERS, inputs_of

Named = tuple[str, Callable[[], str]]
WIDE = (37, 75)

#: Layers with sums, at widths where these are cut into vectors and into parts for threads.
WIDER: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "Linear wide": (lambda: nn.Linear(75, 43, seed=0), (300, 75)),
    "Linear large": (lambda: nn.Linear(700, 530, seed=0), (260, 700)),
    "Linear long": (lambda: nn.Linear(40, 70, seed=0), (5000, 40)),
    "Softmax wide": (nn.Softmax, WIDE),
    "LogSoftmax wide": (nn.LogSoftmax, WIDE),
    "LayerNorm wide": (lambda: nn.LayerNorm(75), (2000, 75)),
    "GroupNorm wide": (lambda: nn.GroupNorm(5, 75), (6, 20, 30, 75)),
    "BatchNorm wide": (lambda: nn.BatchNorm(75), (6, 20, 30, 75)),
    "Normalize wide": (lambda: nn.Normalize(75), WIDE),
    "LocalResponseNorm wide": (lambda: nn.LocalResponseNorm(5), (2, 8, 9, 75)),
    "PReLU wide": (lambda: nn.PReLU(75), (3000, 75)),
    "GRU wide": (lambda: nn.GRU(43, 75, seed=0), (20, 9, 43)),
    "LSTM wide": (lambda: nn.LSTM(43, 75, seed=0), (20, 9, 43)),
    "RNN wide": (lambda: nn.RNN(43, 75, seed=0), (20, 9, 43)),
    "ConvLSTM wide": (lambda: nn.ConvLSTM(9, 35, seed=0), (2, 4, 9, 10, 9)),
    "TrajGRU wide": (lambda: nn.TrajGRU(9, 35, links=3, seed=0), (2, 4, 9, 10, 9)),
    "Cosine wide": (lambda: nn.Cosine(75, 43, seed=0), WIDE),
    "Euclidean wide": (lambda: nn.Euclidean(75, 43, seed=0), WIDE),
    "Maxout wide": (lambda: nn.Maxout(75, 43, 2, seed=0), WIDE),
    "Mean wide": (lambda: nn.Mean(-1), (900, 750)),
    "Sum wide": (lambda: nn.Sum(0), (900, 750)),
    "Conv2d wide": (lambda: nn.Conv2d(35, 43, 3, padding=1, seed=0), (4, 20, 21, 35)),
    "Conv2d point": (lambda: nn.Conv2d(35, 43, 1, seed=0), (4, 40, 41, 35)),
    "Conv2d strided": (lambda: nn.Conv2d(35, 43, 5, 2, padding=2, seed=0), (4, 20, 21, 35)),
    "Conv2d few": (lambda: nn.Conv2d(3, 43, 7, 2, padding=3, seed=0), (4, 50, 51, 3)),
    "ConvTranspose2d wide": (lambda: nn.ConvTranspose2d(35, 43, 4, 2, 1, seed=0), (2, 9, 10, 35)),
    "SeparableConv2d wide": (lambda: nn.SeparableConv2d(35, 43, 3, seed=0), (4, 20, 21, 35)),
    "MultiHeadAttention wide": (lambda: nn.MultiHeadAttention(72, 4, seed=0), (2, 300, 72)),
    "TransformerBlock wide": (lambda: nn.TransformerBlock(72, 4, 150, seed=0), (6, 30, 72)),
    "Resize wide": (lambda: nn.Resize((17, 29)), (3, 20, 21, 35)),
    "AvgPool2d wide": (lambda: nn.AvgPool2d(3, 2, 1), (3, 20, 21, 35)),
    "MultiHeadAttention filled": (lambda: nn.MultiHeadAttention(48, 4, seed=1), (3, 20, 48)),
}
for _name in ("GELU", "SiLU", "Tanh", "Sigmoid", "Softplus", "ELU", "Exp", "Mish", "LogSigmoid"):
    WIDER[f"{_name} wide"] = getattr(nn, _name), (300, 75)


def digest(*arrays: Any) -> str:
    """Return the first digits of the SHA-256 of some arrays."""
    checksum = hashlib.sha256()
    for array in arrays:
        checksum.update(np.ascontiguousarray(array).tobytes())
    return checksum.hexdigest()[:16]


def of_layer(make: Callable[[], nn.Module], inputs: list[np.ndarray], gradients: bool) -> str:
    """Return the digest of a layer's results and, if asked, of the first one's gradients."""
    layer = make()
    tensors = [Tensor(x, requires_grad=True) if x.dtype.kind == "f" else x for x in inputs]
    with nn.drawing(1):
        results = as_tuple(layer(*tensors))
    arrays = [result.data for result in results]
    if gradients:
        for result in results:
            if result.data.dtype.kind == "f" and result._node is not None:
                rng = np.random.default_rng(3)
                result.backward(rng.standard_normal(result.shape, np.float32))
                break
        arrays.append(layer.flat_grad)
        arrays += [t.grad for t in tensors if isinstance(t, Tensor) and t.grad is not None]
    return digest(*arrays)


def layers() -> Iterator[Named]:
    """Yield all registered layers, and some at larger widths."""
    for name, (make, *_) in sorted({**FLOATS, **OTHERS}.items()):
        inputs = [x.astype("f4") if x.dtype == np.float64 else x for x in inputs_of(name)]
        yield name, partial(of_layer, make, inputs, name in FLOATS.keys() - NOT_TRAINED)
    for name, (make, shape) in WIDER.items():
        x = np.random.default_rng(5).standard_normal(shape, np.float32)
        yield name, partial(of_layer, make, [x], True)


def _loss(loss: Callable[..., Any], x: np.ndarray, y: np.ndarray) -> str:
    prediction = Tensor(x, requires_grad=True)
    value = loss(prediction, y)
    value.backward()
    return digest(value.data, prediction.grad)


def losses() -> Iterator[Named]:
    """Yield the losses that need no more than predictions and targets of one shape, or classes."""
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((2, 300, 75)).astype(np.float32)
    for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "PoissonNLLLoss"):
        if hasattr(nn, name):
            yield name, partial(_loss, getattr(nn, name)(), x, np.abs(y))
    yield "BCEWithLogitsLoss", partial(_loss, nn.BCEWithLogitsLoss(), x, (y > 0).astype("f4"))
    classes = rng.integers(0, 75, 300)
    yield "CrossEntropyLoss", partial(_loss, nn.CrossEntropyLoss(), x, classes)
    smooth = nn.CrossEntropyLoss(smoothing=0.1)
    yield "CrossEntropyLoss smooth", partial(_loss, smooth, x, classes)
    images = rng.random((2, 2, 20, 21, 3), np.float32)
    yield "SSIMLoss", partial(_loss, nn.SSIMLoss(), *images)


def _weights(
    model: nn.Module, loss: Any, method: optim.Method, x: Any, y: Any, iterations: int
) -> str:
    """Return the digest of a network's weights after some iterations."""
    samples = SampleSet.from_arrays(x=x, y=y, partitions=2)
    trainer = Trainer(model, loss, method, seed=5, precision=precision())
    trainer.fit(
        samples, iterations=iterations, batch_size=len(x) // 2, threads=threads(),
        progress=False, client=False,
    )  # fmt: skip
    return digest(trainer.model.flat, *(t.data for t in model.tables.values()))


def _block() -> nn.Module:
    return nn.Sequential(
        nn.Embedding(50, 48, seed=0),
        nn.TransformerBlock(48, 4, 96, seed=1),
        nn.Mean(1),
        nn.Linear(48, 10, seed=2),
    )


def _encoder(settings: dict[str, Any], ids: np.ndarray, classes: np.ndarray) -> str:
    """Return the digest of an encoder of texts after some iterations, and of its predictions."""
    encoder = text.TextEncoder(50, 72, 2, 4, 150, 30, seed=0, **settings)
    model = text.TextHead(encoder, layers=[nn.Linear(72, 10, seed=1)])
    weights = _weights(model, nn.CrossEntropyLoss(), optim.AdamW(1e-3), ids, classes, 3)
    return weights + digest(model.eval().predict(ids))


def _quantized(pixels: np.ndarray) -> str:
    """Return the digest of an int8 network's predictions, with scales from these pixels."""
    model = nn.Sequential(
        nn.Conv2d(1, 43, 5, 2, 2, seed=0), nn.ReLU(), nn.MaxPool2d(2),
        nn.Residual(nn.Conv2d(43, 43, 3, padding=1, seed=1)), nn.Flatten(),
        nn.Linear(43 * 49, 75, seed=2), nn.Tanh(), nn.Linear(75, 10, seed=3),
    )  # fmt: skip
    small = quantize(model, pixels, ends=True, error=np.inf, tried=4, activations="error")
    assert all(row[1] for row in small.rows)
    return digest(small.predict(pixels), np.array([row[2:5] for row in small.rows]))


def networks() -> Iterator[Named]:
    """Yield networks of each kind with a training run of each."""
    rng = np.random.default_rng(11)
    pixels = rng.standard_normal((32, 28, 28, 1), np.float32)
    classes, ids = rng.integers(0, 10, 32), rng.integers(1, 50, (32, 20))
    cross, sgd = nn.CrossEntropyLoss(), optim.SGD(0.01, momentum=0.9)
    yield "LeNet-5", lambda: _weights(models.LeNet5(), cross, sgd, pixels, classes, 6)
    yield "ResNet-18", lambda: _weights(
        models.ResNet(18, classes=10, stem="small"), cross, sgd,
        rng.standard_normal((8, 16, 16, 3), np.float32), classes[:8], 3,
    )  # fmt: skip
    for kind in ("lstm", "gru", "cnn"):
        yield f"text {kind}", lambda kind=kind: _weights(
            models.TextClassifier(50, 10, 24, kind, 40, 30), nn.NLLLoss(), optim.Adagrad(0.01),
            ids, classes, 6,
        )  # fmt: skip
    yield "transformer", lambda: _weights(_block(), cross, optim.Adam(1e-3), ids, classes, 6)
    kinds: dict[str, dict[str, Any]] = {
        "absolute": {"types": 2}, "relative": {"relative": 32},
        "rotary": {"rotary": [(1e4, 0), (1e3, 4)]},
    }  # fmt: skip
    for kind, settings in kinds.items():
        yield f"encoder {kind}", partial(_encoder, settings, ids, classes)
    yield "NeuMF", lambda: _weights(
        models.NeuMF(50, 50), nn.BCEWithLogitsLoss(), optim.Adam(1e-3), ids[:, :2],
        (classes > 4).astype(np.float32), 6,
    )  # fmt: skip
    yield "int8", lambda: _quantized(pixels)
    few = nn.Conv2d(8, 24, 7, 2, 3, seed=0)  # windows summed in two steps, a narrow last panel
    yield "few channels", lambda: digest(few.predict(pixels.reshape(2, 56, 28, 8)))
    frames = rng.random((2, 4, 5, 32, 32, 1), np.float32)
    yield (
        "nowcast",
        lambda: _weights(
            models.ConvLSTMForecaster(5, 5, (16, 16)), nn.MSELoss(), optim.Adam(1e-3), *frames, 10
        ),
    )


KINDS = {"layers": layers, "losses": losses, "networks": networks}


def main(arguments: list[str] | None = None) -> None:
    """Print the digests."""
    parser = argparse.ArgumentParser()
    parser.add_argument("threads", nargs="+", type=int)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--only", nargs="+", help="these names")
    options = parser.parse_args(arguments)
    for n in options.threads:
        for kind in options.kinds:
            for name, compute in KINDS[kind]():
                if options.only is None or name in options.only:
                    with thread_budget(n), computing_in(options.precision):
                        print(n, name, compute(), sep="\t", flush=True)


if __name__ == "__main__":
    main()
