"""The networks of the inference benchmark: ours, and PyTorch's module with the same work.

Networks that the zoo does not have are exported from PyTorch's modules as ONNX files, and run as
:class:`daskdl.nn.Graph`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.scaling.workloads import WORDS, workload

SEED = 0


@dataclass(frozen=True)
class Inferred:
    """A network, and how each contestant gets it.

    Parameters
    ----------
    name : str
    peer : callable
        Returns PyTorch's module.
    sample : callable
        Returns n samples for PyTorch, given a Generator and n.
    ours : callable, optional
        Returns our module; without it the ONNX file is read.
    turned : callable, optional
        Maps PyTorch's samples to ours.
    image : bool
        Whether samples are (N, C, H, W); PyTorch then runs with channels last.
    opencv : bool
        Whether OpenCV can read the ONNX file.
    """

    name: str
    peer: Callable[[], Any]
    sample: Callable[[np.random.Generator, int], np.ndarray[Any, Any]]
    ours: Callable[[], Any] | None = None
    turned: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] | None = None
    image: bool = False
    opencv: bool = False

    def exported(self, peer: Any, batch: int = 2) -> bytes:
        """Return PyTorch's module as an ONNX file, exported with a batch of that size."""
        import torch

        x = torch.from_numpy(self.sample(np.random.default_rng(SEED), batch))
        axis = 1 if self.name == "ConvLSTM" else 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            torch.onnx.export(
                peer, (x,), str(path), dynamo=False, input_names=["x"], output_names=["y"],
                dynamic_axes={"x": {axis: "n"}, "y": {axis: "n"}}, opset_version=17,
            )  # fmt: skip
            return path.read_bytes()


def _images(rng: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
    return rng.standard_normal((n, 3, 224, 224), np.float32)


def _last(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def _torch(name: str, *arguments: Any) -> Callable[[], Any]:
    def make() -> Any:
        import torch

        from ci.bench.inference import peers as inference_peers
        from ci.bench.training import peers as training_peers

        torch.manual_seed(SEED)
        network = getattr(training_peers, name, None) or getattr(inference_peers, name)
        return _settled(network(*arguments)).eval()

    return make


def _settled(net: Any) -> Any:
    """Give batch norms statistics as after training."""
    import torch

    generator = torch.Generator().manual_seed(SEED)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1, generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
    return net


def _zoo(name: str) -> Callable[[], Any]:
    return lambda: workload(name).build()[0]


def _encoder() -> Any:
    import torch

    layer = torch.nn.TransformerEncoderLayer(
        768, 12, 3072, 0.1, activation="gelu", batch_first=True
    )
    return torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).eval()


def _blocks() -> Any:
    from daskdl.nn import Sequential, TransformerBlock

    return Sequential(
        *(TransformerBlock(768, 12, 3072, 0.1, activation="gelu", seed=i) for i in range(12))
    )


CASES = [
    Inferred(
        "ResNet-50", _torch("resnet50"), _images, _zoo("resnet50"), _last, image=True, opencv=True
    ),
    Inferred(
        "Inception-v1",
        _torch("inception_v1"),
        _images,
        _zoo("inception"),
        _last,
        image=True,
        opencv=True,
    ),
    *(
        Inferred(title, _torch(name), _images, image=True, opencv=True)
        for title, name in (
            ("SqueezeNet", "squeezenet"),
            ("VGG-19", "vgg19"),
            ("DenseNet-121", "densenet121"),
            ("ShuffleNet-v2", "shufflenet"),
            ("MobileNet-v2", "mobilenet"),
        )
    ),
    Inferred(
        "ConvLSTM",
        _torch("ConvLSTMForecaster", 10, (64, 64), 4),
        lambda rng, n: rng.random((10, n, 1, 64, 64), np.float32),
        _zoo("convlstm"),
        lambda x: np.ascontiguousarray(x.transpose(1, 0, 3, 4, 2)),
    ),
    Inferred(
        "BERT-size encoder",
        _encoder,
        lambda rng, n: rng.standard_normal((n, 128, 768), np.float32),
        _blocks,
    ),
    Inferred(
        "text LSTM",
        _torch("TextClassifier", WORDS, 20, 200, 128),
        lambda rng, n: rng.integers(1, WORDS, (n, 200)),
        _zoo("text"),
    ),
]
