"""Draw pictures of the documentation: ``python -m ci.pictures`` writes ``docs/figures/*.png``.

``forecast`` is a forecast of simulated rain by `nowcast`'s commands, and ``page`` is the page of
``nowcast serve``; ``dashboard`` is Dask's dashboard during a fit (``pip install bokeh``). The last
two are screenshots by ``chromium`` with its ``chromedriver``.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from nowcast.simulate import simulate

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
#: Seed and hours of the simulated rain, and time of the forecast.
SEED, HOURS, AT = 3, 3, "2020-06-01T02:20"


def nowcast(*arguments: str | Path) -> None:
    """Run one of nowcast's commands."""
    subprocess.run(["nowcast", *map(str, arguments)], check=True)


def smaller(path: Path, to: Path, width: int = 1000) -> None:
    """Write a picture with 256 colours and a limited width in pixels."""
    with Image.open(path) as image:
        image.thumbnail((width, 10 * width))
        image.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(to, optimize=True)


def draw_forecast(to: Path) -> None:
    """Simulate scans, ingest them, predict and plot."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store, forecast, picture = (folder / n for n in ("rain.zarr", "f.nc", "forecast.png"))
        simulate(folder / "scans", hours=HOURS, step_minutes=10, seed=SEED)
        nowcast("ingest", folder / "scans", "--out", store, "--size", 120, "--spacing", 2000)
        nowcast("predict", store, "--at", AT, "--lead", "30min", "--out", forecast)
        nowcast("plot", forecast, "--observed", store, "--members", 0, "--out", picture)
        smaller(picture, to)


@contextmanager
def photograph(address: str, to: Path, width: int, height: int) -> Iterator[Any]:
    """Open an address in a browser, and write a screenshot at the end of the context."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for name in ("headless", "no-sandbox", "hide-scrollbars", f"window-size={width},{height}"):
        options.add_argument(f"--{name}")
    options.binary_location = str(shutil.which("chromium"))
    browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(address)
        yield browser
        with tempfile.TemporaryDirectory() as name:
            browser.save_screenshot(str(Path(name) / "page.png"))
            smaller(Path(name) / "page.png", to)
    finally:
        browser.quit()


def draw_page(to: Path) -> None:
    """Run the tutorial for forecasters, and write a screenshot of the page that it makes."""
    import nbformat
    from nbclient import NotebookClient

    text = (FIGURES.parent / "tutorials" / "forecaster.md").read_text(encoding="utf-8")
    cells = re.findall(r"^```\{code-cell\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
        handler = partial(SimpleHTTPRequestHandler, directory=f"{folder}/page")
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever).start()
            state = "lat=50.3&lon=4.5&lead=20&cells=1"
            address = f"http://127.0.0.1:{server.server_port}/#{state}"
            with photograph(address, to, 1250, 980):
                time.sleep(5)
            server.shutdown()


def draw_dashboard(to: Path) -> None:
    """Write a screenshot of the dashboard during a fit of LeNet-5 on two workers."""
    from distributed import Client, LocalCluster

    from daskdl import SampleSet, Trainer
    from daskdl.models import LeNet5
    from daskdl.nn import CrossEntropyLoss
    from daskdl.optim import SGD
    from daskdl.train import Callback

    done = threading.Event()

    class UntilDone(Callback):
        """Ends the fit after the screenshot."""

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
        with photograph(cluster.dashboard_link, to, 1400, 760):
            time.sleep(20)
        done.set()
        fit.join()


def main() -> None:
    """Draw the named pictures."""
    drawn = {"forecast": draw_forecast, "page": draw_page, "dashboard": draw_dashboard}
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m ci.pictures")
    parser.add_argument("names", nargs="*", metavar="NAME", help="by default all")
    names = parser.parse_args().names or list(drawn)
    if unknown := set(names) - set(drawn):
        parser.error(f"expected {' or '.join(drawn)}, found {sorted(unknown)}")
    for name in names:
        drawn[name](FIGURES / f"{name}.png")


if __name__ == "__main__":
    main()
