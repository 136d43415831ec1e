"""Scenes for the examples that detect objects: photographs with objects pasted at known boxes.

Objects are QR codes (drawn by `segno`), and discs and triangles with stripes, checks or noise, in
random colours, rotated and partly transparent. Photographs come with scikit-image and Debian's
package `opencv-doc`; training and test photographs show different scenes.
Both Python packages: pip install scikit-image segno
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from daskdl.data import Ragged
from daskdl.errors import DataError, MissingExtraError

CLASSES = ("qr", "disc", "triangle")
OPENCV = Path("/usr/share/doc/opencv-doc/examples")
#: No scene is in both parts, not even from another viewpoint.
TEST = (
    "coffee.png", "camera.png", "motorcycle_left.png", "gravel.png",
    "fruits.jpg", "home.jpg", "messi5.jpg", "leuvenA.jpg", "aero1.jpg", "building.jpg",
)  # fmt: skip
TRAIN = (
    "astronaut.png", "chelsea.png", "rocket.jpg", "hubble_deep_field.jpg", "retina.jpg", "ihc.png",
    "coins.png", "brick.png", "grass.png", "moon.png", "page.png", "text.png", "cell.png",
    "baboon.jpg", "squirrel_cls.jpg", "aloeL.jpg", "board.jpg", "starry_night.jpg", "orange.jpg",
    "apple.jpg", "stuff.jpg", "smarties.png", "graf1.png", "basketball1.png", "rubberwhale1.png",
    "butterfly.jpg", "left01.jpg", "chicky_512.png", "licenseplate_motion.jpg", "cards.png",
    "plant.jpg", "sudoku.png", "box_in_scene.png", "ela_original.jpg", "scenetext01.jpg",
)  # fmt: skip


def photographs(part: str, longest: int = 640) -> list[np.ndarray]:
    """Return the photographs of "train" or "test", uint8 (H, W, 3), with sides up to ``longest``.

    Missing files are left out; scikit-image's photographs are enough for a try.
    """
    try:
        import segno  # noqa: F401 - draws later, on workers
        import skimage
    except ImportError as error:
        raise MissingExtraError(
            f"expected scikit-image, whose photographs are pasted on, and segno, which draws QR "
            f"codes, found no {error.name}; pip install scikit-image segno"
        ) from error

    folders = [Path(skimage.__file__).parent / "data", OPENCV]
    files = {path.name: path for folder in folders for path in sorted(folder.rglob("*.*"))}
    pictures = []
    for name in TRAIN if part == "train" else TEST:
        if name in files:
            with Image.open(files[name]) as image:
                image.thumbnail((longest, longest))
                pictures.append(np.asarray(image.convert("RGB")))
    if not pictures:
        raise DataError(f"{folders}: expected photographs such as {TEST[0]}, found none")
    return pictures


class Scenes:
    """Function for `SampleSet.map`: a new scene `x` for every sample, its `boxes` and `labels`.

    Parameters
    ----------
    pictures : list of uint8 (H, W, 3)
    size : int
        Rows and columns of a scene.
    most : int
        Largest number of objects in a scene; the least is one.
    """

    def __init__(self, pictures: list[np.ndarray], size: int = 224, most: int = 4) -> None:
        self.pictures, self.size, self.most = pictures, size, most

    def __call__(self, batch: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Draw as many scenes as there are samples."""
        scenes = [self.draw(rng) for _ in range(len(batch["x"]))]
        if not scenes:
            raise DataError("expected at least one scene to draw, found none; ask for 1 or more")
        pixels, boxes, labels = zip(*scenes, strict=True)
        return {
            "x": np.stack(pixels),
            "boxes": Ragged.of([np.reshape(b, (-1, 4)) for b in boxes]),
            "labels": Ragged.of(labels),
        }

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a scene uint8 (size, size, 3), boxes float32 (k, 4) in pixels, labels (k,)."""
        canvas = self.background(rng)
        boxes: list[tuple[int, int, int, int]] = []
        labels: list[int] = []
        for _ in range(int(rng.integers(1, self.most + 1))):
            label, side = int(rng.integers(len(CLASSES))), int(self.size * rng.uniform(0.13, 0.5))
            pasted = qr_code(side, rng) if label == 0 else shape(label, side, rng)
            pasted = pasted.rotate(rng.uniform(-30, 30), Image.Resampling.BILINEAR, expand=True)
            solid = pasted.getchannel("A").point(lambda level: 255 * (level > 100)).getbbox()
            if solid is None:
                continue
            pasted = pasted.crop(solid)
            if max(pasted.size) >= self.size:
                continue
            for _ in range(10):  # try places until one is free
                left, top = (int(rng.integers(0, self.size - n)) for n in pasted.size)
                box = left, top, left + pasted.width, top + pasted.height
                if all(apart(box, other) for other in boxes):
                    canvas.paste(pasted, (left, top), pasted)
                    boxes.append(box)
                    labels.append(label)
                    break
        return np.asarray(canvas), np.array(boxes, np.float32), np.array(labels, np.int64)

    def background(self, rng: np.random.Generator) -> Image.Image:
        """Return a part of a photograph, brighter or darker."""
        picture = self.pictures[rng.integers(len(self.pictures))]
        height, width = picture.shape[:2]
        side = int(min(height, width) * rng.uniform(0.4, 1))
        top, left = rng.integers(0, height - side + 1), rng.integers(0, width - side + 1)
        part = Image.fromarray(picture[top : top + side, left : left + side])
        part = part.resize((self.size, self.size), Image.Resampling.BILINEAR)
        factor = rng.uniform(0.6, 1.3)
        return part.point(lambda level: min(255, level * factor))


def apart(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Return whether two boxes share less than a twentieth of the smaller one."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return max(width, 0) * max(height, 0) < 0.05 * min(areas)


def qr_code(side: int, rng: np.random.Generator) -> Image.Image:
    """Return a QR code of random text, dark on light, with its quiet zone."""
    import segno

    text = "".join(rng.choice(list("ABCDEFGHJKLMNPQRSTUVWXYZ0123456789"), rng.integers(4, 40)))
    cells = np.array(segno.make(text, micro=False).matrix, bool)
    cells = np.pad(cells, int(rng.integers(1, 4)))
    dark, light = rng.integers(0, 90, 3), rng.integers(190, 256, 3)
    colours = np.where(cells[..., None], dark, light).astype(np.uint8)
    whole = np.dstack([colours, np.full(cells.shape, 255, np.uint8)])
    return Image.fromarray(whole, "RGBA").resize((side, side), Image.Resampling.BOX)


def shape(label: int, side: int, rng: np.random.Generator) -> Image.Image:
    """Return a disc or a triangle with a texture."""
    y, x = np.mgrid[:side, :side] / side
    kind, step = rng.integers(3), rng.uniform(3, 9)
    if kind == 0:
        turn = rng.uniform(0, np.pi)
        share = 0.5 + 0.5 * np.sin(2 * np.pi * step * (x * np.cos(turn) + y * np.sin(turn)))
    elif kind == 1:
        share = ((x * step).astype(int) + (y * step).astype(int)) % 2
    else:
        small = rng.random((6, 6, 1)).repeat(3, 2)
        noise = Image.fromarray((255 * small).astype(np.uint8)).resize((side, side))
        share = np.asarray(noise, float)[..., 0] / 255
    first, second = rng.integers(0, 256, 3), rng.integers(0, 256, 3)
    colours = share[..., None] * first + (1 - share[..., None]) * second
    mask = Image.new("L", (side, side), 0)
    pen = ImageDraw.Draw(mask)
    opaque = int(rng.uniform(215, 256))
    if label == 1:
        pen.ellipse((0, 0, side - 1, side - 1), fill=opaque)
    else:
        pen.polygon([(side // 2, 0), (side - 1, side - 1), (0, side - 1)], fill=opaque)
    return Image.fromarray(np.dstack([colours.astype(np.uint8), np.asarray(mask)]), "RGBA")
