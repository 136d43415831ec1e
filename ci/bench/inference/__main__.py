"""``python -m ci.bench.inference``: predictions of whole networks against inference runtimes.

The peers are onnxruntime, OpenVINO where it is installed, PyTorch's eval under inference_mode
(channels last for images; through torch.compile with ``--compile``, which takes a compiler and a
minute a network), and OpenCV's DNN. All take turns in one process, each with as many threads as
ours; the fastest counts. With ``--cpu`` times are the CPU time of one thread, which other programs
disturb less. With ``--precision bf16`` PyTorch runs under autocast, OpenVINO infers in bfloat16,
and onnxruntime and OpenCV, which have no bfloat16 on CPUs, run in float32. With
``--precision int8`` ours is by daskdl.quantize, or for networks read from ONNX the file of
onnxruntime's quantizer; onnxruntime runs both forms of its static quantizer, OpenVINO a model of
nncf, PyTorch its quantized model for x86; all are quantized with the same samples, and ours in
float32 runs too. "ours, model.predict" is a call without a Predictor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from ci.bench.inference.cases import CASES, SEED, Inferred
from ci.bench.inference.runtimes import (
    by_onnxruntime,
    by_openvino,
    openvino_int8,
    runtime_int8,
    torch_int8,
)
from ci.bench.timing import Case, Work, options_of, overall, raced
from daskdl.kernels.runtime.threads import threads
from daskdl.predict import Predictor


def _torch(
    peer: Any, x: np.ndarray[Any, Any], image: bool, bf16: bool, compiled: bool = False
) -> Work:
    import torch

    tensor = torch.from_numpy(x)
    if image:
        form = torch.channels_last
        peer, tensor = peer.to(memory_format=form), tensor.contiguous(memory_format=form)
    if compiled:
        torch._dynamo.reset()
        torch._inductor.config.freezing = True
        peer = torch.compile(peer)

    def run() -> object:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            return peer(tensor)

    return run


def _opencv(model: bytes, threads: int, x: np.ndarray[Any, Any]) -> Work:
    import cv2

    cv2.setNumThreads(threads)
    net = cv2.dnn.readNetFromONNX(np.frombuffer(model, np.uint8))

    def run() -> object:
        net.setInput(x)
        return net.forward()

    return run


def contestants(network: Inferred, threads: int, batch: int, options: Any) -> Case:
    """Return ours and all peers on one batch; a peer that fails is left out with a message."""
    from daskdl.interop.onnx.reader import read

    peer = network.peer()
    model = network.exported(peer, batch)
    x = network.sample(np.random.default_rng(SEED), batch)
    module = network.ours() if network.ours else read(model, network.name)
    rows = network.turned(x) if network.turned else x
    bf16, int8 = (options.precision == name for name in ("bf16", "int8"))
    if int8:
        return _int8(network, module, model, peer, (x, rows), batch, threads)
    predictor = Predictor(module, batch_size=batch, threads=threads, precision=options.precision)
    kind = "bf16" if bf16 else "f32"
    peers: dict[str, Callable[[], Work]] = {
        "onnxruntime": lambda: partial(by_onnxruntime(model, threads), x),
        "OpenVINO": lambda: partial(by_openvino(model, threads, kind, x.shape), x),
        "PyTorch": lambda: _torch(peer, x, network.image, bf16),
    }
    if options.compile:
        peers["torch.compile"] = lambda: _torch(peer, x, network.image, bf16, True)
    if network.opencv:
        peers["OpenCV"] = lambda: _opencv(model, threads, x)
    works = _made(network.name, peers)
    works["ours, model.predict"] = lambda: module.predict(
        rows, batch_size=batch, threads=threads, precision=options.precision
    )
    return Case(f"{network.name}, {batch}", lambda: predictor(rows), works)


def _made(network: str, peers: dict[str, Callable[[], Work]]) -> dict[str, Work]:
    """Return the work of the peers; one that fails is left out with a message."""
    works: dict[str, Work] = {}
    for name, make in peers.items():
        try:
            work = make()
            work()
            works[name] = work
        except Exception as error:
            print(f"{network}: without {name}: {str(error).splitlines()[0]}", flush=True)
    return works


def _int8(
    network: Inferred, module: Any, model: bytes, peer: Any, samples: tuple[Any, Any], batch: int,
    threads: int,
) -> Case:  # fmt: skip
    """Return the int8 models of one network, and ours in float32."""
    from daskdl.interop.onnx.reader import read
    from daskdl.nn import Graph
    from daskdl.quantization import quantize

    x, rows = samples
    qdq = cache(partial(runtime_int8, model, x, "QDQ"))
    if isinstance(module, Graph):
        small: Any = read(qdq(), network.name).eval()
    else:
        small = quantize(module, rows, ends=True, tried=0)
    predictors = [Predictor(m, batch_size=batch, threads=threads) for m in (small, module)]
    first, second = (predictor(rows) for predictor in predictors)
    change = np.linalg.norm(first - second) / np.linalg.norm(second)
    print(f"{network.name}: results change by {100 * change:.1f} %", flush=True)
    works = _made(network.name, {
        "onnxruntime": lambda: partial(by_onnxruntime(qdq(), threads), x),
        "onnxruntime, QOperator": lambda: partial(
            by_onnxruntime(runtime_int8(model, x, "QOperator"), threads), x
        ),
        "OpenVINO": lambda: openvino_int8(model, threads, x),
        "PyTorch, x86": lambda: torch_int8(peer, x),
        "ours, float32": lambda: lambda: predictors[1](rows),
    })  # fmt: skip
    return Case(f"{network.name}, {batch}", lambda: predictors[0](rows), works)


def main(arguments: list[str] | None = None) -> None:
    """Race the networks and print the table."""
    parser = options_of(__doc__.splitlines()[0], seconds=2.0)
    parser.add_argument("--batches", default="1,16", help="samples at a time, such as 1,16")
    parser.add_argument("--cpu", action="store_true", help="processor's time; one thread only")
    parser.add_argument("--compile", action="store_true", help="with torch.compile too")
    parser.add_argument("--precision", choices=("float32", "bf16", "int8"), default="float32")
    options = parser.parse_args(arguments)

    def cases() -> Iterator[Case]:
        for network in (case for case in CASES if options.only in case.name):
            for batch in map(int, options.batches.split(",")):
                yield contestants(network, threads(), batch, options)

    clock = time.thread_time if options.cpu else time.perf_counter
    raced(options, cases, overall, least_runs=2, clock=clock)


if __name__ == "__main__":
    main()
