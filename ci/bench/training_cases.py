"""The networks of the training benchmark: one step of each, ours and PyTorch's.

A step is forward, loss, backward and update, on the same batch again and again. Networks and
batches are made when a step is asked for, so that a process may hold one contestant alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl import nn, optim
from daskdl.models import ConvLSTMForecaster, InceptionV1, ResNet
from daskdl.optim import Layout

Step = Callable[[], Any]
Arrays = tuple[np.ndarray, np.ndarray]

SEED = 0


@dataclass(frozen=True)
class Network:
    """A network and how it is trained.

    Parameters
    ----------
    name : str
    samples : int
        Of the batch.
    ours : callable
        Returns (model, loss, method).
    peer : callable
        Given PyTorch, returns (model, loss, optimizers); all are fused where PyTorch can.
    batch : callable
        Given a Generator, returns (x, y); images are channels last.
    layouts : tuple of str
        Memory formats in which PyTorch is tried.
    """

    name: str
    samples: int
    ours: Callable[[], tuple[Any, Any, Any]]
    peer: Callable[[Any], tuple[Any, Any, list[Any]]]
    batch: Callable[[np.random.Generator], Arrays]
    layouts: tuple[str, ...] = ("",)

    def our_step(self) -> Step:
        """Return daskdl's step; each call returns the loss."""
        model, loss, method = self.ours()
        x, y = self.batch(np.random.default_rng(SEED))
        method, iteration = method.on(Layout.of(model.train())), 0
        slots = method.init(model.flat.size)
        tables = {
            name: {n: s.reshape(t.shape) for n, s in method.init_rows(t.data.size).items()}
            for name, t in model.tables.items()
        }

        def step() -> float:
            nonlocal slots, iteration
            model.zero_grad()
            value = loss(model(x), y)
            value.backward()
            weights, slots = method.update(model.flat, model.flat_grad, slots, iteration)
            model.load_flat(weights)
            for name, table in model.tables.items():
                method.update_rows(name, table.data, table.grad, tables[name], iteration)
            iteration += 1
            return float(value)

        return step

    def peer_step(self, layout: str) -> Step:
        """Return PyTorch's step in a memory format; each call returns the loss."""
        import torch

        torch.manual_seed(SEED)
        model, loss, optimizers = self.peer(torch)
        x, y = (torch.from_numpy(a) for a in self.batch(np.random.default_rng(SEED)))
        if x.ndim == 5:  # N, T, H, W, C
            x, y = (a.permute(1, 0, 4, 2, 3).contiguous() for a in (x, y))
        if layout:
            last = layout == "channels last"
            form = torch.channels_last if last else torch.contiguous_format
            model = model.to(memory_format=form)
            x = (x.permute(0, 3, 1, 2) if x.ndim == 4 else x.flatten(0, 1)).contiguous(
                memory_format=form
            )
            if y.ndim == 5:
                x = x.unflatten(0, y.shape[:2])

        def step() -> float:
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=True)
            value = loss(model(x), y)
            value.backward()
            for optimizer in optimizers:
                optimizer.step()
            return float(value.detach())

        return step


def _fused(optimizer: Any, parameters: Any, **settings: Any) -> Any:
    fused = {"fused": True} if "fused" in inspect.signature(optimizer).parameters else {}
    return optimizer(parameters, **settings, **fused)


def _pictures(count: int) -> Callable[[np.random.Generator], Arrays]:
    def batch(rng: np.random.Generator) -> Arrays:
        x = rng.standard_normal((count, 224, 224, 3), np.float32)
        return x, rng.integers(0, 1000, count)

    return batch


def _sequences(rng: np.random.Generator) -> Arrays:
    x, y = rng.random((2, 4, 10, 64, 64, 1), np.float32)
    return x, y


def _pairs(rng: np.random.Generator) -> Arrays:
    # Items are taken to as people take to films: a few often, most hardly ever.
    items = np.minimum(rng.zipf(1.2, 2048) - 1, ITEMS - 1)
    pairs = np.stack([rng.integers(0, USERS, 2048), items], 1)
    return pairs, rng.integers(0, 2, 2048).astype(np.float32)


def _texts(rng: np.random.Generator) -> Arrays:
    return rng.integers(1, WORDS, (128, 200)), rng.integers(0, 20, 128)


def _classes(torch: Any, model: Any, **settings: Any) -> tuple[Any, Any, list[Any]]:
    settings = {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4} | settings
    optimizer = _fused(torch.optim.SGD, model.parameters(), **settings)
    return model.train(), torch.nn.functional.cross_entropy, [optimizer]


def _peer_neumf(torch: Any, sparse: bool) -> tuple[Any, Any, list[Any]]:
    from ci.bench import training_peers

    model = training_peers.NeuMF(USERS, ITEMS, sparse).train()
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    if not sparse:
        return model, loss, [_fused(torch.optim.Adam, model.parameters(), lr=1e-3)]
    tables = list(model.tables.parameters())
    rest = [*model.linear.parameters(), *model.head.parameters()]
    optimizers = [
        torch.optim.SparseAdam(tables, lr=1e-3),
        _fused(torch.optim.Adam, rest, lr=1e-3),
    ]
    return model, loss, optimizers


def _peer_text(torch: Any) -> tuple[Any, Any, list[Any]]:
    from ci.bench import training_peers

    model = training_peers.TextClassifier(WORDS, 20, 200, 128).train()
    optimizer = _fused(torch.optim.Adagrad, model.parameters(), lr=0.01)
    return model, torch.nn.functional.nll_loss, [optimizer]


def _peer_forecaster(torch: Any) -> tuple[Any, Any, list[Any]]:
    from ci.bench import training_peers

    model = training_peers.ConvLSTMForecaster(10, (64, 64), 4).train()
    optimizer = _fused(torch.optim.Adam, model.parameters(), lr=1e-3)
    return model, torch.nn.functional.mse_loss, [optimizer]


def _peer_pictures(name: str) -> Callable[[Any], tuple[Any, Any, list[Any]]]:
    def peer(torch: Any) -> tuple[Any, Any, list[Any]]:
        from ci.bench import training_peers

        return _classes(torch, getattr(training_peers, name)())

    return peer


def _neumf(sparse: bool) -> tuple[Any, Any, Any]:
    from daskdl.models.ncf import NeuMF

    model = NeuMF(USERS, ITEMS, sparse=sparse)
    return model, nn.BCEWithLogitsLoss(), optim.Adam(1e-3)


def _text() -> tuple[Any, Any, Any]:
    from daskdl.models.text import TextClassifier

    model = TextClassifier(WORDS, 20, 200, channels=128, hidden=128)
    return model, nn.NLLLoss(), optim.Adagrad(0.01)


def _descent() -> Any:
    return optim.SGD(0.01, momentum=0.9, weight_decay=1e-4)


#: MovieLens-20M's, and the words of a news corpus.
USERS, ITEMS, WORDS = 138_493, 26_744, 20_000
BOTH = ("contiguous", "channels last")

NETWORKS = (
    Network(
        "ResNet-50 b8 224x224",
        8,
        lambda: (ResNet(50), nn.CrossEntropyLoss(), _descent()),
        _peer_pictures("resnet50"),
        _pictures(8),
        BOTH,
    ),
    Network(
        "Inception-v1 b16 224x224",
        16,
        lambda: (InceptionV1(), nn.CrossEntropyLoss(), _descent()),
        _peer_pictures("inception_v1"),
        _pictures(16),
        BOTH,
    ),
    Network(
        "NCF dense b2048",
        2048,
        lambda: _neumf(False),
        lambda torch: _peer_neumf(torch, False),
        _pairs,
    ),
    Network(
        "NCF sparse b2048",
        2048,
        lambda: _neumf(True),
        lambda torch: _peer_neumf(torch, True),
        _pairs,
    ),
    Network("text LSTM b128 T200", 128, _text, _peer_text, _texts),
    Network(
        "ConvLSTM seq2seq b4 10->10 64x64",
        4,
        lambda: (ConvLSTMForecaster(10, 10, (64, 64)), nn.MSELoss(), optim.Adam(1e-3)),
        _peer_forecaster,
        _sequences,
        BOTH,
    ),
)
