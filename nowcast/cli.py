"""The command line: scans in, a trained model and verified forecasts out."""

from __future__ import annotations

import warnings

from daskdl import console
from nowcast.commands.arguments import of_finite
from nowcast.commands.demo import demo
from nowcast.commands.derived import accumulate, adjust, cells
from nowcast.commands.info import info
from nowcast.commands.ingest import ingest
from nowcast.commands.plot import plot
from nowcast.commands.predict import predict
from nowcast.commands.serve import serve
from nowcast.commands.small import calibrate, climate, export, simulate
from nowcast.commands.train import train
from nowcast.commands.verify import verify
from nowcast.commands.watch import config, watch

app = console.application(
    "nowcast", "Rain forecasts for the next hour from weather-radar scans, on CPUs, with Dask."
)
for command in (
    ingest, info, export, calibrate, climate, train, predict, watch, config, accumulate, adjust,
    cells, verify, plot, serve, simulate, demo,
):  # fmt: skip
    app.command()(of_finite(command))


def main() -> int:
    """Run the command line and return its exit code."""
    # CF has no place for this angle; the WKT among its attributes, which readers use, has one.
    warnings.filterwarnings("ignore", "angle from rectified to skew grid", UserWarning)
    return console.run(app, install="daskdl[nowcast]")
