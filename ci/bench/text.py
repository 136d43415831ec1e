"""``python -m ci.bench.text``: vectors of texts, beside programs made for that.

An encoder of MiniLM's size (6 layers of 384) or of BERT's (12 of 768) with random weights, and
texts of 20 to 400 words. Ours takes texts of one number of tokens together. ``a plain loop`` is
PyTorch on batches of 32 in the texts' order, padded to the longest; ``sorted`` the same in order of
lengths, as sentence-transformers does; ``alike`` PyTorch, onnxruntime and OpenVINO on the batches
of ours. All take turns in one process, tokens are made before; the best of the turns counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.predict import Predictor
from daskdl.text.encoder import WORDS, TextHead, batches
from daskdl.text.folder import read_encoder

SIZES = {"MiniLM": (6, 384, 12, 1536), "BERT": (12, 768, 12, 3072)}
TOGETHER = 32
SEED = 7

Ids = NDArray[np.int64]


def texts(count: int) -> list[Ids]:
    """Return the ids of texts whose lengths are spread as those of real ones."""
    rng = np.random.default_rng(SEED)
    lengths = np.clip(rng.lognormal(4.3, 0.8, count), 20, 400).astype(int)
    return [rng.integers(1000, 30000, n) for n in lengths]


def padded(ids: list[Ids], order: Any) -> list[tuple[Ids, Ids]]:
    """Return batches of ids and masks (N, T) of texts in an order."""
    made = []
    for start in range(0, len(ids), TOGETHER):
        some = [ids[i] for i in order[start : start + TOGETHER]]
        shape = len(some), max(map(len, some))
        rows, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for i, one in enumerate(some):
            rows[i, : len(one)], mask[i, : len(one)] = one, 1
        made.append((rows, mask))
    return made


def contestants(size: str, ids: list[Ids], threads: int) -> dict[str, Callable[[], Any]]:
    """Return the work of each with all texts, by its name."""
    import onnxruntime
    import openvino
    import torch
    import transformers

    layers, features, heads, hidden = SIZES[size]
    torch.manual_seed(SEED)
    torch.set_num_threads(threads)
    net = transformers.BertModel(
        transformers.BertConfig(
            hidden_size=features, num_hidden_layers=layers, num_attention_heads=heads,
            intermediate_size=hidden,
        )
    ).eval()  # fmt: skip
    lengths = np.array([len(one) for one in ids])
    alike = [np.stack([ids[i] for i in places]) for places in batches(lengths)]
    with tempfile.TemporaryDirectory() as folder:
        net.save_pretrained(folder)
        encoder, _, _ = read_encoder(Path(folder))
        file = str(Path(folder) / "text.onnx")
        torch.onnx.export(
            _Last(net), (torch.from_numpy(alike[0]),), file, dynamo=False, input_names=["x"],
            dynamic_axes={"x": {0: "texts", 1: "words"}},
        )  # fmt: skip
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
        request = openvino.Core().compile_model(
            file, "CPU", {**settings, "INFERENCE_PRECISION_HINT": "f32"}
        ).create_infer_request()  # fmt: skip
    ours = Predictor(TextHead(encoder).eval(), batch_size=WORDS, threads=threads)
    _check(ours, net, ids[0])

    def by_torch(some: list[tuple[Ids, Ids]]) -> None:
        with torch.inference_mode():
            for rows, mask in some:
                marks = torch.from_numpy(mask)
                words = net(torch.from_numpy(rows), marks).last_hidden_state
                (words * marks[..., None]).sum(1) / marks.sum(1, keepdim=True)

    unmasked = [(rows, np.ones_like(rows)) for rows in alike]
    return {
        "ours": lambda: [ours(rows) for rows in alike],
        "PyTorch, a plain loop": partial(by_torch, padded(ids, range(len(ids)))),
        "PyTorch, sorted": partial(by_torch, padded(ids, np.argsort(-lengths))),
        "PyTorch, alike": partial(by_torch, unmasked),
        "onnxruntime, alike": lambda: [session.run(None, {"x": rows}) for rows in alike],
        "OpenVINO, alike": lambda: [request.infer({"x": rows}) for rows in alike],
    }


def _check(ours: Predictor, net: Any, ids: Ids) -> None:
    import torch

    with torch.inference_mode():
        expected = net(torch.from_numpy(ids[None])).last_hidden_state.mean(1).numpy()
    np.testing.assert_allclose(ours(ids[None]), expected, atol=1e-4)


def _Last(net: Any) -> Any:  # noqa: N802  a class whose base is imported late
    import torch

    class Last(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: Any) -> Any:
            return self.net(x).last_hidden_state.mean(1)

    return Last().eval()


def main() -> None:
    """Print texts a second of each, and ours over it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="MiniLM")
    parser.add_argument("--texts", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    ids = texts(options.texts)
    works = contestants(options.size, ids, options.threads)
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(options.turns + 1):  # the first turn warms up
        for name, work in works.items():
            began = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - began)
    print(f"{options.size}, {options.texts} texts, {options.threads} threads")
    print(f"{'':<24}{'texts/s':>9}{'ours over it':>14}")
    least = {name: min(seconds[1:]) for name, seconds in times.items()}
    for name, seconds in least.items():
        print(f"{name:<24}{len(ids) / seconds:>9.1f}{seconds / least['ours']:>14.2f}")


if __name__ == "__main__":
    main()
