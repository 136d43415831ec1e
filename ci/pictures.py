"""Draw pictures of the documentation: ``python -m ci.pictures`` writes ``docs/figures/*.png``.

``forecast`` is a forecast of simulated rain by `nowcast`'s own commands; ``dashboard`` is Dask's
dashboard during a fit, photographed by a Chromium (``pip install playwright bokeh``, and a
``chromium`` on the PATH).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import numpy as np
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


def draw_dashboard(to: Path) -> None:
    """Fit LeNet-5 on two workers, and photograph their dashboard meanwhile."""
    from distributed import Client, LocalCluster
    from playwright.sync_api import sync_playwright

    from daskdl import SampleSet, Trainer
    from daskdl.models import LeNet5
    from daskdl.nn import CrossEntropyLoss
    from daskdl.optim import SGD
    from daskdl.train import Callback

    done = threading.Event()

    class UntilDone(Callback):
        """Ends the fit when the picture is there."""

        def on_epoch_end(self, trainer: Trainer, epoch: int, logs: object) -> bool:
            return done.is_set()

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4000, 28, 28, 1)).astype(np.float32), rng.integers(0, 10, 4000)
    samples = SampleSet.from_arrays(x=x, y=y, partitions=8)
    trainer = Trainer(LeNet5(), CrossEntropyLoss(), SGD(0.01))
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**local) as cluster, Client(cluster) as client:
        settings = {"epochs": 1000, "batch_size": 64, "client": client, "progress": False}
        fit = threading.Thread(
            target=trainer.fit, args=[samples], kwargs=settings | {"callbacks": [UntilDone()]}
        )
        fit.start()
        with sync_playwright() as players, tempfile.TemporaryDirectory() as name:
            browser = players.chromium.launch(executable_path=shutil.which("chromium"))
            page = browser.new_page(viewport={"width": 1400, "height": 760})
            page.goto(cluster.dashboard_link)
            page.wait_for_timeout(20_000)
            page.screenshot(path=Path(name) / "page.png")
            browser.close()
            done.set()
            smaller(Path(name) / "page.png", to)
        fit.join()


def main() -> None:
    """Draw what is asked for."""
    drawn = {"forecast": draw_forecast, "dashboard": draw_dashboard}
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m ci.pictures")
    parser.add_argument("names", nargs="*", metavar="NAME", help="by default all")
    names = parser.parse_args().names or list(drawn)
    if unknown := set(names) - set(drawn):
        parser.error(f"expected {' or '.join(drawn)}, found {sorted(unknown)}")
    for name in names:
        drawn[name](FIGURES / f"{name}.png")


if __name__ == "__main__":
    main()
