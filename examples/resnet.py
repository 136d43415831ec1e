r"""ResNet-18, 34, 50, 101 or 152 on pictures of classes.

Run: python examples/resnet.py imagenet/ --depth 50 --cluster queue.yaml --workers 64 \
         --batch-size 8192 --checkpoint run/ --save resnet50.safetensors
Data: see examples/pictures.py; --help shows it.
"""

from __future__ import annotations

import pictures

from daskdl.console import positive, script
from daskdl.models import ResNet
from daskdl.nn import CrossEntropyLoss


def main(arguments: list[str] | None = None) -> float:
    """Train, and return the top-1 accuracy on the pictures of `val`."""
    parser = pictures.arguments(__doc__)
    parser.add_argument("--depth", type=int, default=50)
    parser.add_argument("--stem", default="imagenet", help="or small, for pictures of 32x32")
    parser.add_argument("--width", type=positive, default=64, help="channels of the first stage")
    options = parser.parse_args(arguments)
    model = ResNet(options.depth, options.classes, options.stem, options.width, seed=options.seed)
    loss = CrossEntropyLoss(smoothing=options.smoothing)
    return pictures.train(model, loss, options, decay=1e-4)


if __name__ == "__main__":
    script(main)
