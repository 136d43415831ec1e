"""Fine-tune a network from an ONNX file for other classes, and write it as ONNX again.

Usage: python examples/fine_tune_onnx.py MODEL.onnx DATA.npz FEATURES OUT.onnx [--freeze]

DATA.npz has x, samples in the network's layout, and y, labels from 0. FEATURES is the name of the
value (N, features) that the old head reads; `daskdl.load(MODEL).nodes` has the names of all values.
With --freeze only the new head learns; otherwise the whole network does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import daskdl
from daskdl import SampleSet, Trainer, nn
from daskdl.console import argument_parser, output, positive, script
from daskdl.errors import DataError
from daskdl.interop import onnx
from daskdl.metrics import Accuracy
from daskdl.optim import Adam


def fine_tune(
    model: Path, data: Path, features: str, out: Path, epochs: int = 5, freeze: bool = False
) -> float:
    """Train the new head, or the whole network; return the accuracy on the last fifth."""
    try:
        with np.load(data) as arrays:
            x, y = arrays["x"].astype(np.float32), arrays["y"].astype(np.int64)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{data}: expected .npz of x and y, arrays of numbers; {error}") from error
    first = len(x) * 4 // 5
    trunk = daskdl.load(model).until(features)
    if freeze:
        trunk.freeze()
    width = trunk.predict(x[:1]).shape[-1]
    net = nn.Sequential(trunk, nn.Linear(width, int(y.max()) + 1, seed=0))
    trainer = Trainer(net, nn.CrossEntropyLoss(), Adam(1e-3), seed=0)
    trainer.fit(
        SampleSet.from_arrays(x=x[:first], y=y[:first], partitions=2), epochs=epochs, batch_size=32
    )
    held_out = SampleSet.from_arrays(x=x[first:], y=y[first:], partitions=1)
    accuracy = net.evaluate(held_out, [Accuracy()])["accuracy"]
    onnx.save(net, out, x.shape[1:])
    return accuracy


def main() -> None:
    """Read the arguments, train, and print the accuracy."""
    parser = argument_parser(__doc__)
    parser.add_argument("model", type=Path, help="ONNX file")
    parser.add_argument("data", type=Path, help=".npz of x and y, samples and labels from 0")
    parser.add_argument("features", help="name of the value that the old head reads")
    parser.add_argument("out", type=output, help="ONNX file that is written")
    parser.add_argument("--epochs", type=positive, default=5)
    parser.add_argument("--freeze", action="store_true", help="only the new head learns")
    accuracy = fine_tune(**vars(parser.parse_args()))
    print(f"accuracy {accuracy:.3f}")


if __name__ == "__main__":
    script(main)
