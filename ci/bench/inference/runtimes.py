"""ONNX files run by onnxruntime and OpenVINO, and int8 models of both and of PyTorch."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ci.bench.timing import Work

Run = Callable[[np.ndarray[Any, Any]], Any]


def by_onnxruntime(model: bytes | str, threads: int) -> Run:
    """Return a function of the input x that runs a file, or its bytes, by onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})


def by_openvino(
    model: Any, threads: int, precision: str = "f32", shape: tuple[int, ...] | None = None
) -> Run:
    """Return a function of the input x that runs a file, its bytes or a model by OpenVINO."""
    import openvino

    core = openvino.Core()
    read = core.read_model(model) if isinstance(model, bytes | str) else model
    if shape:
        read.reshape([*shape])
    settings = {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": precision
    }  # fmt: skip
    request = core.compile_model(read, "CPU", settings).create_infer_request()
    return lambda x: request.infer({"x": x})


class _Samples:
    """Samples one by one, as onnxruntime's calibration asks for them."""

    def __init__(self, x: np.ndarray[Any, Any]) -> None:
        self._rest: Iterator[Any] = iter(x)

    def get_next(self) -> dict[str, Any] | None:
        """Return the next sample, or None."""
        one = next(self._rest, None)
        return None if one is None else {"x": one[None]}


def runtime_int8(model: bytes, x: np.ndarray[Any, Any], form: str) -> bytes:
    """Return a "QDQ" or "QOperator" file: int8 weights by filter, activations calibrated on x."""
    from onnxruntime.quantization import QuantFormat, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    logging.getLogger().setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        names = [str(Path(folder) / f"{name}.onnx") for name in ("float", "ready", "int8")]
        Path(names[0]).write_bytes(model)
        quant_pre_process(names[0], names[1], skip_symbolic_shape=True)
        quantize_static(
            names[1], names[2], _Samples(x), quant_format=QuantFormat[form], per_channel=True
        )
        return Path(names[2]).read_bytes()


def openvino_int8(model: bytes, threads: int, x: np.ndarray[Any, Any]) -> Work:
    """Return an inference of a model that nncf quantizes with the samples x."""
    import nncf
    import openvino

    nncf.set_log_level(logging.ERROR)
    read = openvino.Core().read_model(model)
    made = nncf.quantize(read, nncf.Dataset([one[None] for one in x], lambda one: {"x": one}))
    return partial(by_openvino(made, threads, "f32", x.shape), x)


def torch_int8(peer: Any, x: np.ndarray[Any, Any]) -> Work:
    """Return an inference of PyTorch's static quantization for x86, or of its affine maps alone.

    A module that FX cannot trace, such as a transformer, gets its affine maps quantized row by row.
    """
    import torch
    from torch.ao.quantization import get_default_qconfig_mapping, quantize_dynamic
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    torch.backends.quantized.engine, tensor = "x86", torch.from_numpy(x)
    try:
        made = prepare_fx(peer, get_default_qconfig_mapping("x86"), (tensor,))
        with torch.inference_mode():
            made(tensor)
        made = convert_fx(made)
    except Exception:  # tracing raises many kinds
        torch.backends.mha.set_fastpath_enabled(False)
        made = quantize_dynamic(peer, {torch.nn.Linear})

    def run() -> object:
        with torch.inference_mode():
            return made(tensor)

    return run
