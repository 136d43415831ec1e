"""``python -m ci.bench.text``: vectors of texts, against programs made for that.

An encoder of the size of MiniLM (6 layers of 384) with random weights, of the kind of BERT, MPNet
or ModernBERT, and texts of 20 to 400 words. Ours batches texts of the same number of tokens. ``a
plain loop`` is PyTorch on batches of 32 in the order of texts, padded to the longest; ``sorted``
the same in order of lengths, as sentence-transformers does; ``alike`` PyTorch, onnxruntime and
OpenVINO on the same batches as ours. ``--more`` adds bfloat16, int8 and compiled models. Tokenizing
is not timed; on one thread the CPU time counts.

``--folder`` compares whole programs with their tokenizers instead: ours and sentence-transformers
on an encoder's folder. ``--workers 1,2`` embeds on one, then on two processes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ci.bench.inference.runtimes import by_onnxruntime, by_openvino
from ci.bench.timing import Case, options_of, raced
from daskdl import quantize, text
from daskdl.kernels.runtime.threads import threads
from daskdl.predict import Predictor
from daskdl.text.encoder import WORDS, TextHead, batches
from daskdl.text.folder import read_encoder

TOGETHER = 32
SEED = 7

Ids = NDArray[np.int64]


def texts(count: int) -> list[Ids]:
    """Return the ids of texts with lengths distributed as in real texts."""
    rng = np.random.default_rng(SEED)
    lengths = np.clip(rng.lognormal(4.3, 0.8, count), 20, 400).astype(int)
    return [rng.integers(1000, 30000, n) for n in lengths]


def padded(ids: list[Ids], order: Any) -> list[tuple[Ids, Ids]]:
    """Return batches of ids and masks (N, T) of texts in the given order."""
    made = []
    for start in range(0, len(ids), TOGETHER):
        some = [ids[i] for i in order[start : start + TOGETHER]]
        shape = len(some), max(map(len, some))
        rows, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for i, one in enumerate(some):
            rows[i, : len(one)], mask[i, : len(one)] = one, 1
        made.append((rows, mask))
    return made


def network(kind: str) -> Any:
    """Return an encoder of transformers of a kind, with random weights."""
    import transformers

    settings: dict[str, Any] = {
        "num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 12,
        "intermediate_size": 1536,
    }  # fmt: skip
    if kind == "ModernBert":
        settings |= {"intermediate_size": 1024, "attn_implementation": "sdpa"}
    return getattr(transformers, f"{kind}Model")(
        getattr(transformers, f"{kind}Config")(**settings)
    ).eval()


def contestants(kind: str, ids: list[Ids], more: bool) -> dict[str, Callable[[], Any]]:
    """Return by its name the work of each contestant on all texts."""
    import torch

    torch.manual_seed(SEED)
    net = network(kind)
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
        small = str(Path(folder) / "int8.onnx")
        if more:
            from onnxruntime.quantization import quantize_dynamic

            quantize_dynamic(file, small)

        def alike_by(run: Callable[[Any], Any]) -> Callable[[], Any]:
            return lambda: [run(rows) for rows in alike]

        n = threads()
        peers = {
            "onnxruntime, alike": alike_by(by_onnxruntime(file, n)),
            "OpenVINO, alike": alike_by(by_openvino(file, n)),
        }
        if more:
            peers |= {
                "onnxruntime, alike, int8": alike_by(by_onnxruntime(small, n)),
                "OpenVINO, alike, int8": alike_by(by_openvino(small, n)),
                "OpenVINO, alike, bf16": alike_by(by_openvino(file, n, "bf16")),
            }
    head = TextHead(encoder).eval()
    ours = Predictor(head, batch_size=WORDS, threads=threads())
    _check(ours, net, ids[0])

    def by_torch(some: list[tuple[Ids, Ids]], module: Any = net) -> None:
        with torch.inference_mode():
            for rows, mask in some:
                marks = torch.from_numpy(mask)
                words = module(torch.from_numpy(rows), marks).last_hidden_state
                (words * marks[..., None]).sum(1) / marks.sum(1, keepdim=True)

    unmasked = [(rows, np.ones_like(rows)) for rows in alike]
    if more:
        some = alike[len(alike) // 2][:8]
        quantized = Predictor(quantize(head, some), batch_size=WORDS, threads=threads())
        half = Predictor(head, batch_size=WORDS, threads=threads(), precision="bf16")
        compiled = torch.compile(net, dynamic=True)

        def in_bfloat16() -> None:
            with torch.autocast("cpu", torch.bfloat16):
                by_torch(unmasked)

        peers |= {
            "ours, int8": lambda: [quantized(rows) for rows in alike],
            "ours, bf16": lambda: [half(rows) for rows in alike],
            "PyTorch, alike, compiled": partial(by_torch, unmasked, compiled),
            "PyTorch, alike, bf16": in_bfloat16,
        }
    return {
        "ours": lambda: [ours(rows) for rows in alike],
        "PyTorch, a plain loop": partial(by_torch, padded(ids, range(len(ids)))),
        "PyTorch, sorted": partial(by_torch, padded(ids, np.argsort(-lengths))),
        "PyTorch, alike": partial(by_torch, unmasked),
        **peers,
    }


def programs(folder: Path, count: int) -> dict[str, Callable[[], Any]]:
    """Return the work of ours and of sentence-transformers on texts, with tokenizers."""
    from sentence_transformers import SentenceTransformer

    model, peer = (
        text.load(folder, threads=threads()),
        SentenceTransformer(str(folder), device="cpu"),
    )
    some = documents(model, count)
    np.testing.assert_allclose(model(some[:4]), peer.encode(some[:4]), atol=1e-4)
    return {
        "ours": lambda: model(some),
        "sentence-transformers": lambda: peer.encode(some, batch_size=TOGETHER),
    }


def documents(model: text.TextModel, count: int) -> list[str]:
    """Return texts of a model's words."""
    words = [w for w in model.tokenizer.get_vocab() if w.isalpha() and w.isascii()]
    words.sort()
    return [" ".join(words[i % len(words)] for i in ids) for ids in texts(count)]


def by_workers(folder: Path, count: int, workers: list[int]) -> None:
    """Print texts a second and memory of worker processes with a thread each."""
    import os
    import resource

    import dask.bag as db

    from daskdl.cluster import connect

    model = text.load(folder, threads=1)
    some, first = documents(model, count), 0.0
    for n in workers:
        with connect("local", workers=n, threads_per_worker=1) as client:
            bag = model(db.from_sequence(some, npartitions=4 * max(workers)))
            bag.compute()  # kernels are compiled, weights sent
            began = time.perf_counter()
            bag.compute()
            rate = count / (time.perf_counter() - began)
            first = first or rate / n
            peak = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)
            print(
                f"{n} workers: {rate:.1f} texts/s, {rate / n / first:.0%} of {workers[0]}, at most "
                f"{max(peak.values()):.0f} MB a worker, {os.cpu_count()} processors", flush=True,
            )  # fmt: skip


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
    """Race the contestants on the texts and print the table."""
    parser = options_of(__doc__, seconds=1.0, threads="1")
    parser.add_argument("--kind", choices=("Bert", "MPNet", "ModernBert"), default="Bert")
    parser.add_argument("--more", action="store_true", help="bfloat16, int8 and compiled")
    parser.add_argument("--folder", type=Path, help="an encoder on disk, instead")
    parser.add_argument("--workers", help="numbers of processes, such as 1,2; of the folder")
    parser.add_argument("--texts", type=int, default=128)
    options = parser.parse_args()
    if options.workers:
        by_workers(options.folder, options.texts, [*map(int, options.workers.split(","))])
        return

    def cases() -> Iterator[Case]:
        if options.folder:
            title, works = options.folder.name, programs(options.folder, options.texts)
        else:
            title = f"{options.kind}, MiniLM"
            works = contestants(options.kind, texts(options.texts), options.more)
        yield Case(title, works.pop("ours"), works, options.texts, "texts")

    # Other programs on the machine disturb the CPU time less.
    raced(options, cases, clock=time.process_time if options.threads == "1" else time.perf_counter)


if __name__ == "__main__":
    main()
