"""``python -m ci.bench.images``: images a second on one core, beside OpenCV and loops over Pillow.

Photographs that come with scikit-image, cut to the sizes of ImageNet's. Every contestant makes the
same float32 arrays (to within its own rounding and filter) of the same bytes or pixels; OpenCV runs
on one thread, its fastest way of each step that was found. Ratios above 1 are ours.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ci.bench.timing import Case, Row, geometric_mean, race, write_json
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
from daskdl.kernels.runtime.threads import thread_budget

MEAN = 255 * np.array(IMAGENET_MEAN, np.float32)
SCALE = 1 / (255 * np.array(IMAGENET_STD, np.float32))
#: Heights and widths, as ImageNet's are: 500 x 375 upright and lying, and others.
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
#: Images of a step alone, whose one call for all of them is part of what it takes.
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
    """The steps with OpenCV, on images that are mostly of different sizes."""

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
        """Write what NumPy, faster at this than OpenCV, makes of an image."""
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
    """Do as a torchvision pipeline does with Pillow: image by image, step by step."""
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
    """Yield the pipelines, and the steps of which there is one in OpenCV."""
    images, linear, area = photographs(), OpenCV("INTER_LINEAR"), OpenCV("INTER_AREA")
    records = [as_jpeg(image) for image in images]
    steps = CenterCrop(SIDE) | Normalize()
    smooth, sharp = ShortestSide(SHORT) | steps, ShortestSide(SHORT, antialias=False) | steps

    def rivals(work: Callable[[OpenCV], Any]) -> dict[str, Callable[[], Any]]:
        return {"OpenCV": lambda: work(linear)}

    yield Case(
        "resize crop normalise/as OpenCV's linear", lambda: sharp(images),
        rivals(lambda cv: cv.evaluate(images)),
    )  # fmt: skip
    yield Case(
        "resize crop normalise/all pixels count", lambda: smooth(images),
        rivals(lambda cv: cv.evaluate(images)),
    )  # fmt: skip
    yield Case(
        "resize crop normalise/beside INTER_AREA", lambda: smooth(images),
        {"OpenCV": lambda: area.evaluate(images)},
    )  # fmt: skip
    yield Case(
        "resize crop normalise/beside Pillow", lambda: smooth(images),
        {"Pillow": lambda: pillow(images)},
    )  # fmt: skip

    random = RandomResizedCrop(SIDE) | HorizontalFlip() | Normalize()
    sizes = np.array([image.shape[:2] for image in images])

    def drawn(cv: OpenCV) -> np.ndarray:
        rng = np.random.default_rng(0)
        windows = RandomResizedCrop(SIDE).windows(sizes, rng)
        return cv.train(images, windows, rng.random(len(images)) < 0.5)

    yield Case(
        "random resized crop flip normalise", lambda: random(images, np.random.default_rng(0)),
        rivals(drawn),
    )  # fmt: skip

    whole = Decode() | smooth
    yield Case(
        "decode resize crop normalise", lambda: whole(records),
        rivals(lambda cv: cv.evaluate([cv.decode(record) for record in records])),
    )  # fmt: skip
    yield Case(
        "decode resize crop normalise/beside Pillow", lambda: whole(records),
        {"Pillow": lambda: pillow(records)},
    )  # fmt: skip
    yield Case(
        "decode", lambda: Decode()(records),
        rivals(lambda cv: [cv.decode(record) for record in records]),
    )  # fmt: skip

    tall = [as_jpeg(linear.resize(image, 1200, 1600)) for image in images]
    reduced = Decode(at_least=SHORT) | smooth

    def at_a_quarter(cv: OpenCV) -> np.ndarray:
        flag = cv.cv2.IMREAD_REDUCED_COLOR_4
        return cv.evaluate([cv.cv2.imdecode(np.frombuffer(r, np.uint8), flag) for r in tall])

    yield Case("decode 1600x1200 at 1/4 ...", lambda: reduced(tall), rivals(at_a_quarter))

    small = np.stack([linear.resize(image, SIDE, SIDE) for image in images])
    yield from steps_alone(linear, np.concatenate([small] * (BATCH // len(small))))


def steps_alone(cv: OpenCV, small: np.ndarray) -> Iterator[Case]:
    """Yield each step on images of one size beside OpenCV's own, image by image."""
    cv2, half = cv.cv2, SIDE // 2
    rng = np.random.default_rng

    def case(name: str, ours: Callable[[], Any], each: Callable[[np.ndarray], Any]) -> Case:
        return Case(f"step/{name}", ours, {"OpenCV": lambda: [each(image) for image in small]})

    def pasted(image: np.ndarray) -> np.ndarray:
        return cv2.copyMakeBorder(image, 38, 38, 38, 38, cv2.BORDER_CONSTANT, value=(9, 9, 9))

    def covered(image: np.ndarray) -> np.ndarray:
        image = image.copy()
        cv2.rectangle(image, (0, 0), (half - 1, half - 1), (255, 255, 255), -1)
        return image

    matrix, plain = np.eye(3, 4, dtype=np.float32), np.eye(3, 4, dtype=np.float32)
    matrix[:, 3] = 10
    turn = cv2.getRotationMatrix2D((SIDE / 2 - 0.5,) * 2, 20, 1)
    jitter, light = ColorJitter(0.4, 0, 0.4, 0.1), Lighting(0.1)
    yield case("resize 224 to 300", lambda: Resize(300)(small), lambda i: cv.resize(i, 300, 300))
    yield case("resize 224 to 96", lambda: Resize(96, antialias=False)(small),
               lambda i: cv.resize(i, 96, 96))  # fmt: skip
    yield case("flip", lambda: HorizontalFlip(1)(small), lambda i: cv2.flip(i, 1))
    yield case("upside down", lambda: VerticalFlip(1)(small), lambda i: cv2.flip(i, 0))
    yield case("crop", lambda: CenterCrop(half)(small),
               lambda i: i[56 : 56 + half, 56 : 56 + half].copy())  # fmt: skip
    yield case("random crop", lambda: RandomCrop(half)(small, rng(0)),
               lambda i: i[56 : 56 + half, 56 : 56 + half].copy())  # fmt: skip
    yield case("pad", lambda: Pad(300, fill=9 / 255)(small), pasted)
    yield case("pad with a colour", lambda: Pad(300, fill=IMAGENET_MEAN)(small), pasted)
    yield case("fill", lambda: Fill(0, 0, 0.5, 0.5)(small), covered)
    yield case("erase", lambda: RandomErasing(1.0)(small, rng(0)), covered)
    yield case("normalise", lambda: Normalize()(small),
               lambda i: cv.normalise(i, np.empty(i.shape, "f4")))  # fmt: skip
    yield case("to float", lambda: ToFloat()(small),
               lambda i: np.multiply(i, np.float32(1 / 255), dtype=np.float32))  # fmt: skip
    yield case("channel order", lambda: ChannelOrder((2, 1, 0))(small),
               lambda i: cv2.cvtColor(i, cv2.COLOR_RGB2BGR))  # fmt: skip
    yield case("brightness", lambda: ColorJitter(brightness=0.4)(small, rng(0)),
               lambda i: cv2.convertScaleAbs(i, alpha=1.2))  # fmt: skip
    yield case("contrast", lambda: ColorJitter(contrast=0.4)(small, rng(0)),
               lambda i: cv2.convertScaleAbs(i, alpha=1.2, beta=-0.2 * cv2.mean(i)[0]))  # fmt: skip
    yield case("colours by a matrix", lambda: jitter(small, rng(0)),
               lambda i: cv2.transform(i, matrix))  # fmt: skip
    yield case("lighting", lambda: light(small, rng(0)), lambda i: cv2.transform(i, plain))
    yield case("rotate", lambda: Rotate(20)(small), lambda i: cv2.warpAffine(i, turn, (SIDE, SIDE)))


def table(seconds: float, only: str = "") -> list[Row]:
    """Race the cases and print a line for each."""
    print(f"{'case':<44} {'ours /s':>9} {'theirs /s':>9} {'ratio':>6} {'median':>6}  beside")
    rows = []
    with thread_budget(1):
        for case in cases():
            if only not in case.name:
                continue
            row = Row.of(case.name, 1, race(case, seconds))
            rows.append(row)
            each = 1000 * (BATCH if row.name.startswith("step/") else len(SIZES))
            print(
                f"{row.name:<44} {each / row.ours_ms:>9.0f} {each / row.peer_ms:>9.0f} "
                f"{row.ratio:>6.2f} {row.peer_median_ms / row.ours_median_ms:>6.2f}  {row.peer}",
                flush=True,
            )
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each contestant of a case")
    parser.add_argument("--json", type=Path, help="file for the rows")
    options = parser.parse_args()
    rows = table(options.seconds, options.only)
    pipelines = [row.ratio for row in rows if "OpenCV" in row.peer and "step/" not in row.name]
    if pipelines:
        print(f"geometric mean of the pipelines beside OpenCV: {geometric_mean(pipelines):.2f}")
    if options.json:
        write_json(rows, options.json)


if __name__ == "__main__":
    main()
