r"""Inception-v1, GoogLeNet, on pictures of classes.

Run: python examples/inception.py imagenet/ --auxiliary --cluster queue.yaml --workers 32 \
         --batch-size 1024 --checkpoint run/ --save inception.safetensors
Data: see examples/pictures.py; --help shows it.
"""

from __future__ import annotations

import pictures

from daskdl.console import script
from daskdl.models import AuxiliaryLoss, InceptionV1


def main(arguments: list[str] | None = None) -> float:
    """Train, and return the top-1 accuracy on the pictures of `val`."""
    # Without normalisation a higher rate would diverge.
    parser = pictures.arguments(__doc__, rate=0.02, epochs=70)
    parser.add_argument("--auxiliary", action="store_true", help="two more classifiers")
    options = parser.parse_args(arguments)
    if options.auxiliary and not 208 < options.size <= 224:
        parser.error(f"--auxiliary: expected a --size of 209 to 224, found {options.size}")
    model = InceptionV1(options.classes, auxiliary=options.auxiliary, seed=options.seed)
    loss = AuxiliaryLoss(smoothing=options.smoothing)
    return pictures.train(model, loss, options, decay=2e-4)


if __name__ == "__main__":
    script(main)
