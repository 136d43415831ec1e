"""``python -m ci.bench.images``: images a second on one core, against OpenCV and loops over Pillow.

Photographs that come with scikit-image, resized to sizes of ImageNet's. Every contestant makes the
same float32 arrays (up to rounding and filters) from the same bytes or pixels; OpenCV runs on one
thread, with the fastest function known for each step. With a ratio above 1 ours is faster.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from statistics import geometric_mean
from typing import Any

import numpy as np

from ci.bench.timing import Case, Row, options_of, raced
from daskdl.data.image import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    CenterCrop,
    ChannelOrder,
    ColorJitter,
    Decode,
    Fill,
    HorizontalFlip,
    Lighting,
    Normalize,
    Pad,
    RandomCrop,
    RandomErasing,
    RandomResizedCrop,
    Resize,
    Rotate,
    ShortestSide,
    ToFloat,
    VerticalFlip,
)

MEAN = 255 * np.array(IMAGENET_MEAN, np.float32)
SCALE = 1 / (255 * np.array(IMAGENET_STD, np.float32))
#: Heights and widths like those of ImageNet: 500 x 375 upright and lying, and others.
SIZES = (
    (375, 500),
    (500, 375),
    (333, 500),
    (375, 500),
    (400, 400),
    (375, 500),
    (427, 640),
    (250, 350),
)
SHORT, SIDE = 256, 224
CV = "OpenCV"
#: Images in a batch for single steps; the cost of the call for a batch counts.
BATCH = 64


def photographs() -> list[np.ndarray]:
    """Return photographs of :data:`SIZES`."""
    import skimage.data
    from PIL import Image

    sources = [skimage.data.coffee(), skimage.data.astronaut(), skimage.data.chelsea()]
    return [
        np.array(Image.fromarray(sources[i % 3]).resize((w, h))) for i, (h, w) in enumerate(SIZES)
    ]


def as_jpeg(image: np.ndarray) -> bytes:
    """Return the bytes of a JPEG of the usual quality."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def window(height: int, width: int) -> tuple[int, int, int, int]:
    """Return the size by the shorter side, and the corner of the window in the middle."""
    unit = SHORT / min(height, width)
    rows, columns = round(height * unit), round(width * unit)
    return rows, columns, (rows - SIDE) // 2, (columns - SIDE) // 2


class OpenCV:
    """The steps with OpenCV, image by image."""

    def __init__(self, interpolation: str) -> None:
        import cv2

        cv2.setNumThreads(1)
        self.cv2, self.interpolation = cv2, getattr(cv2, interpolation)
        shape = (SIDE, SIDE, 3)
        self.mean, self.scale = (np.broadcast_to(a, shape).copy() for a in (MEAN, SCALE))

    def decode(self, record: bytes) -> np.ndarray:
        """Return the pixels of a file, red first."""
        cv2 = self.cv2
        return cv2.imdecode(np.frombuffer(record, np.uint8), cv2.IMREAD_COLOR_RGB)

    def resize(self, image: np.ndarray, rows: int, columns: int) -> np.ndarray:
        """Return an image of this size."""
        return self.cv2.resize(image, (columns, rows), interpolation=self.interpolation)

    def normalise(self, image: np.ndarray, out: np.ndarray) -> None:
        """Write the normalised image to ``out`` by NumPy, which is faster at this than OpenCV."""
        np.subtract(image, self.mean, out=out, dtype=np.float32)
        out *= self.scale

    def evaluate(self, images: list[np.ndarray]) -> np.ndarray:
        """Resize by the shorter side, crop the middle, normalise."""
        out = np.empty((len(images), SIDE, SIDE, 3), np.float32)
        for image, result in zip(images, out, strict=True):
            rows, columns, y, x = window(*image.shape[:2])
            self.normalise(self.resize(image, rows, columns)[y : y + SIDE, x : x + SIDE], result)
        return out

    def train(self, images: list[np.ndarray], windows: np.ndarray, flips: np.ndarray) -> np.ndarray:
        """Cut windows, resize, mirror, normalise."""
        out = np.empty((len(images), SIDE, SIDE, 3), np.float32)
        for image, (y, x, h, w), flip, result in zip(images, windows, flips, out, strict=True):
            resized = self.resize(image[y : y + h, x : x + w], SIDE, SIDE)
            self.normalise(self.cv2.flip(resized, 1) if flip else resized, result)
        return out


def pillow(records: list[Any]) -> np.ndarray:
    """Process as a torchvision pipeline does with Pillow: image by image, step by step."""
    from PIL import Image

    results = []
    for record in records:
        image = (
            Image.open(io.BytesIO(record)).convert("RGB")
            if isinstance(record, bytes)
            else Image.fromarray(record)
        )
        rows, columns, y, x = window(image.height, image.width)
        image = image.resize((columns, rows), Image.Resampling.BILINEAR)
        pixels = np.asarray(image.crop((x, y, x + SIDE, y + SIDE)), np.float32) / 255
        results.append((pixels - np.float32(IMAGENET_MEAN)) / np.float32(IMAGENET_STD))
    return np.stack(results)


def cases() -> Iterator[Case]:
    """Yield the pipelines, and the steps that OpenCV has too."""
    images, linear, area = photographs(), OpenCV("INTER_LINEAR"), OpenCV("INTER_AREA")
    records = [as_jpeg(image) for image in images]
    steps = CenterCrop(SIDE) | Normalize()
    smooth, sharp = ShortestSide(SHORT) | steps, ShortestSide(SHORT, antialias=False) | steps

    random = RandomResizedCrop(SIDE) | HorizontalFlip() | Normalize()
    sizes = np.array([image.shape[:2] for image in images])

    def drawn() -> np.ndarray:
        rng = np.random.default_rng(0)
        windows = RandomResizedCrop(SIDE).windows(sizes, rng)
        return linear.train(images, windows, rng.random(len(images)) < 0.5)

    def decoded() -> np.ndarray:
        return linear.evaluate([linear.decode(record) for record in records])

    def at_a_quarter() -> np.ndarray:
        cv2 = linear.cv2
        flag = cv2.IMREAD_REDUCED_COLOR_4
        return linear.evaluate([cv2.imdecode(np.frombuffer(r, np.uint8), flag) for r in tall])

    tall = [as_jpeg(linear.resize(image, 1200, 1600)) for image in images]
    reduced, whole = Decode(at_least=SHORT) | smooth, Decode() | smooth
    three, short = "resize crop normalise", "decode resize crop normalise"
    for name, ours, peer, theirs in (
        (f"{three}/as OpenCV's linear", lambda: sharp(images), CV, lambda: linear.evaluate(images)),
        (f"{three}/all pixels count", lambda: smooth(images), CV, lambda: linear.evaluate(images)),
        (f"{three}/beside INTER_AREA", lambda: smooth(images), CV, lambda: area.evaluate(images)),
        (f"{three}/beside Pillow", lambda: smooth(images), "Pillow", lambda: pillow(images)),
        ("random resized crop flip normalise",
         lambda: random(images, np.random.default_rng(0)), CV, drawn),
        (short, lambda: whole(records), CV, decoded),
        (f"{short}/beside Pillow", lambda: whole(records), "Pillow", lambda: pillow(records)),
        ("decode", lambda: Decode()(records), CV, lambda: [*map(linear.decode, records)]),
        ("decode 1600x1200 at 1/4 ...", lambda: reduced(tall), CV, at_a_quarter),
    ):  # fmt: skip
        yield Case(name, ours, {peer: theirs}, len(images), "images")

    small = np.stack([linear.resize(image, SIDE, SIDE) for image in images])
    yield from steps_alone(linear, np.concatenate([small] * (BATCH // len(small))))


def steps_alone(cv: OpenCV, small: np.ndarray) -> Iterator[Case]:
    """Yield each step on images of one size, against OpenCV's image by image."""
    cv2, half = cv.cv2, SIDE // 2
    rng = np.random.default_rng

    def cropped(image: np.ndarray) -> np.ndarray:
        return image[56 : 56 + half, 56 : 56 + half].copy()

    def pasted(image: np.ndarray) -> np.ndarray:
        return cv2.copyMakeBorder(image, 38, 38, 38, 38, cv2.BORDER_CONSTANT, value=(9, 9, 9))

    def covered(image: np.ndarray) -> np.ndarray:
        image = image.copy()
        cv2.rectangle(image, (0, 0), (half - 1, half - 1), (255, 255, 255), -1)
        return image

    matrix, identity = np.eye(3, 4, dtype=np.float32), np.eye(3, 4, dtype=np.float32)
    matrix[:, 3] = 10
    turn = cv2.getRotationMatrix2D((SIDE / 2 - 0.5,) * 2, 20, 1)
    jitter, light = ColorJitter(0.4, 0, 0.4, 0.1), Lighting(0.1)
    steps: dict[str, tuple[Callable[[], Any], Callable[[np.ndarray], Any]]] = {
        "resize 224 to 300": (lambda: Resize(300)(small), lambda i: cv.resize(i, 300, 300)),
        "resize 224 to 96": (
            lambda: Resize(96, antialias=False)(small), lambda i: cv.resize(i, 96, 96)
        ),
        "flip": (lambda: HorizontalFlip(1)(small), lambda i: cv2.flip(i, 1)),
        "upside down": (lambda: VerticalFlip(1)(small), lambda i: cv2.flip(i, 0)),
        "crop": (lambda: CenterCrop(half)(small), cropped),
        "random crop": (lambda: RandomCrop(half)(small, rng(0)), cropped),
        "pad": (lambda: Pad(300, fill=9 / 255)(small), pasted),
        "pad with a colour": (lambda: Pad(300, fill=IMAGENET_MEAN)(small), pasted),
        "fill": (lambda: Fill(0, 0, 0.5, 0.5)(small), covered),
        "erase": (lambda: RandomErasing(1.0)(small, rng(0)), covered),
        "normalise": (
            lambda: Normalize()(small), lambda i: cv.normalise(i, np.empty(i.shape, "f4"))
        ),
        "to float": (
            lambda: ToFloat()(small), lambda i: np.multiply(i, np.float32(1 / 255), dtype="f4")
        ),
        "channel order": (
            lambda: ChannelOrder((2, 1, 0))(small), lambda i: cv2.cvtColor(i, cv2.COLOR_RGB2BGR)
        ),
        "brightness": (
            lambda: ColorJitter(brightness=0.4)(small, rng(0)),
            lambda i: cv2.convertScaleAbs(i, alpha=1.2),
        ),
        "contrast": (
            lambda: ColorJitter(contrast=0.4)(small, rng(0)),
            lambda i: cv2.convertScaleAbs(i, alpha=1.2, beta=-0.2 * cv2.mean(i)[0]),
        ),
        "colours by a matrix": (lambda: jitter(small, rng(0)), lambda i: cv2.transform(i, matrix)),
        "lighting": (lambda: light(small, rng(0)), lambda i: cv2.transform(i, identity)),
        "rotate": (
            lambda: Rotate(20)(small), lambda i: cv2.warpAffine(i, turn, (SIDE, SIDE))
        ),
    }  # fmt: skip
    for name, (ours, each) in steps.items():
        peer = {CV: lambda each=each: [each(image) for image in small]}
        yield Case(f"step/{name}", ours, peer, len(small), "images")


def pipelines(rows: Sequence[Row]) -> list[str]:
    """Return a line with the geometric mean of the cases of several steps."""
    ratios = [row.ratio for row in rows if "OpenCV" in row.peer and "step/" not in row.name]
    mean = f"{geometric_mean(ratios):.2f}" if ratios else "none"
    return [f"geometric mean of the pipelines beside OpenCV: {mean}"]


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    options = options_of(__doc__, seconds=1.0, threads="1").parse_args(arguments)
    raced(options, cases, pipelines)


if __name__ == "__main__":
    main()
