"""Your own classifier, trained on two Dask workers: whether two coins landed alike.

Run: python examples/own_network.py
"""

from __future__ import annotations

import numpy as np

from daskdl import SampleSet, Trainer, connect
from daskdl.console import argument_parser, script
from daskdl.nn import CrossEntropyLoss, Linear, ReLU, Sequential
from daskdl.optim import Adam


def make_samples(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features (count, 20) and labels: 1 if the first two features have the same sign."""
    x = np.random.default_rng(seed).normal(size=(count, 20)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int64)


def main() -> float:
    """Train, and return the accuracy on new samples."""
    x, y = make_samples(4000, seed=0)
    model = Sequential(Linear(20, 64, seed=0), ReLU(), Linear(64, 2, seed=1))
    samples = SampleSet.from_arrays(x=x, y=y, partitions=2)
    with connect("local", workers=2) as client:
        history = Trainer(model, CrossEntropyLoss(), Adam(3e-3)).fit(
            samples, epochs=12, batch_size=100, client=client
        )
    print(history)
    new_x, new_y = make_samples(1000, seed=1)
    accuracy = float((model(new_x).data.argmax(1) == new_y).mean())
    print(f"accuracy on new samples: {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    argument_parser(__doc__).parse_args()  # there is nothing to set
    script(main)
