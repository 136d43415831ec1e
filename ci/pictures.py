"""Draw the picture of README.md: ``python -m ci.pictures`` writes ``docs/figures/forecast.png``.

It is a forecast of simulated rain by `nowcast`'s own commands.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from nowcast.simulate import simulate

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
#: The simulated rain's seed and hours, and the time of the forecast.
SEED, HOURS, AT = 3, 3, "2020-06-01T02:20"


def nowcast(*arguments: str | Path) -> None:
    """Run one of nowcast's commands."""
    subprocess.run(["nowcast", *map(str, arguments)], check=True)


def smaller(path: Path, to: Path, width: int = 1000) -> None:
    """Write a picture with 256 colours and at most so many pixels across."""
    with Image.open(path) as image:
        image.thumbnail((width, 10 * width))
        image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(to, optimize=True)


def draw_forecast(to: Path) -> None:
    """Simulate, ingest, predict, plot."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store, forecast, picture = (folder / n for n in ("rain.zarr", "f.nc", "forecast.png"))
        simulate(folder / "scans", hours=HOURS, step_minutes=10, seed=SEED)
        nowcast("ingest", folder / "scans", "--out", store, "--size", 120, "--spacing", 2000)
        nowcast("predict", store, "--at", AT, "--lead", "30min", "--out", forecast)
        nowcast("plot", forecast, "--observed", store, "--members", 0, "--out", picture)
        smaller(picture, to)


def main() -> None:
    """Draw it."""
    draw_forecast(FIGURES / "forecast.png")


if __name__ == "__main__":
    main()
