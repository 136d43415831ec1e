"""The networks of the training benchmark: one step of each, ours and PyTorch's.

A step is forward, loss, backward and update, on the same batch again and again. Networks and
batches are made with their step, so that a process can hold a single contestant.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl import nn
from daskdl.kernels.runtime.precision import computing_in
from daskdl.optim import Adam, Layout
from daskdl.scaling.workloads import ITEMS, USERS, WORDS, neumf, workload

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
        In the batch.
    ours : callable
        Returns (model, loss, method).
    peer : callable
        Given PyTorch, returns (model, loss, optimizers); optimizers are fused where possible.
    batch : callable
        Given a Generator, returns (x, y); images are channels last.
    layouts : tuple of str
        Memory formats in which PyTorch races.
    """

    name: str
    samples: int
    ours: Callable[[], tuple[Any, Any, Any]]
    peer: Callable[[Any], tuple[Any, Any, list[Any]]]
    batch: Callable[[np.random.Generator], Arrays]
    layouts: tuple[str, ...] = ("",)

    def our_step(self, precision: str = "float32") -> Step:
        """Return daskdl's step in a precision; each call returns the loss."""
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
            with computing_in(precision):
                value = loss(model(x), y)
                value.backward()
            weights, slots = method.update(
                model.flat, model.flat_grad, slots, iteration, overwrite=True
            )
            model.load_flat(weights)
            for name, table in model.tables.items():
                method.update_rows(name, table.data, table.grad, tables[name], iteration)
            iteration += 1
            return float(value)

        return step

    def peer_step(self, layout: str, precision: str = "float32", compiled: bool = False) -> Step:
        """Return PyTorch's step in a memory format; each call returns the loss.

        In bf16 forward and loss are under autocast, as PyTorch's documentation has it.
        """
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

        if compiled:
            torch._dynamo.reset()
            model = torch.compile(model)
        if precision == "bf16" and loss is torch.nn.functional.nll_loss:
            nll = loss
            loss = lambda prediction, y: nll(prediction.float(), y)  # noqa: E731

        def step() -> float:
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                value = loss(model(x), y)
            value.backward()
            for optimizer in optimizers:
                optimizer.step()
            return float(value.detach())

        return step


def _fused(optimizer: Any, parameters: Any, **settings: Any) -> Any:
    fused = {"fused": True} if "fused" in inspect.signature(optimizer).parameters else {}
    return optimizer(parameters, **settings, **fused)


def _peer(
    name: str, loss: str, optimizer: str, *arguments: Any, **settings: float
) -> Callable[[Any], tuple[Any, Any, list[Any]]]:
    """Return a function that makes a network of ci.bench.training.peers, its loss and optimizer."""

    def peer(torch: Any) -> tuple[Any, Any, list[Any]]:
        from ci.bench.training import peers

        model = getattr(peers, name)(*arguments).train()
        step = _fused(getattr(torch.optim, optimizer), model.parameters(), **settings)
        return model, getattr(torch.nn.functional, loss), [step]

    return peer


def _pictures(name: str) -> Callable[[Any], tuple[Any, Any, list[Any]]]:
    return _peer(name, "cross_entropy", "SGD", lr=0.01, momentum=0.9, weight_decay=1e-4)


def _peer_neumf(torch: Any, sparse: bool) -> tuple[Any, Any, list[Any]]:
    from ci.bench.training import peers

    model = peers.NeuMF(USERS, ITEMS, sparse).train()
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


def _block() -> tuple[Any, Any, Any]:
    return nn.TransformerBlock(256, 4, 1024, seed=0), nn.MSELoss(), Adam(1e-3)


def _peer_block(torch: Any) -> tuple[Any, Any, list[Any]]:
    model = torch.nn.TransformerEncoderLayer(256, 4, 1024, 0.0, batch_first=True).train()
    optimizer = _fused(torch.optim.Adam, model.parameters(), lr=1e-3)
    return model, torch.nn.functional.mse_loss, [optimizer]


def _steps(rng: np.random.Generator) -> Arrays:
    return tuple(rng.standard_normal((2, 32, 128, 256), np.float32))


BOTH = ("contiguous", "channels last")


def _network(
    name: str,
    kind: str,
    peer: Callable[[Any], tuple[Any, Any, list[Any]]],
    layouts: tuple[str, ...] = ("",),
    build: Callable[[], tuple[Any, Any, Any]] | None = None,
) -> Network:
    """Return one of daskdl.scaling's workloads with its peer."""
    ours = workload(kind)

    def batch(rng: np.random.Generator) -> Arrays:
        return ours.draw(rng, ours.batch)

    return Network(name, ours.batch, build or ours.build, peer, batch, layouts)


NETWORKS = (
    _network("ResNet-50 b8 224x224", "resnet50", _pictures("resnet50"), BOTH),
    _network("Inception-v1 b16 224x224", "inception", _pictures("inception_v1"), BOTH),
    _network(
        "NCF dense b2048",
        "ncf",
        lambda torch: _peer_neumf(torch, False),
        build=lambda: neumf(sparse=False),
    ),
    _network("NCF sparse : dense b2048", "ncf", lambda torch: _peer_neumf(torch, False)),
    _network("NCF sparse b2048", "ncf", lambda torch: _peer_neumf(torch, True)),
    _network("LeNet-5 b64 28x28", "lenet", _pictures("lenet5"), BOTH),
    _network(
        "text LSTM b128 T200",
        "text",
        _peer("TextClassifier", "nll_loss", "Adagrad", WORDS, 20, 200, 128, lr=0.01),
    ),
    _network(
        "ConvLSTM seq2seq b4 10->10 64x64",
        "convlstm",
        _peer("ConvLSTMForecaster", "mse_loss", "Adam", 10, (64, 64), 4, lr=1e-3),
        BOTH,
    ),
    Network("Transformer block b32 T128 256", 32, _block, _peer_block, _steps),
)
