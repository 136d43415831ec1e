"""The command line: scans in, a trained model and verified forecasts out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from daskdl import console

app = console.application(
    "nowcast", "Rain forecasts for the next hour from weather-radar scans, on CPUs, with Dask."
)

Cluster = Annotated[
    str,
    typer.Option(
        help="Where to compute: 'local', a scheduler's address, its scheduler file (.json), or a "
        "job queue described in YAML."
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Workers to start; by default one a core.")
]
Rain = Annotated[Path, typer.Argument(help="Rain store that 'nowcast ingest' wrote.")]
Model = Annotated[Path, typer.Argument(help="Folder of a model that 'nowcast train' wrote.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.command()
def ingest(
    sources: Annotated[list[str], typer.Argument(help="Radar files, folders or glob patterns.")],
    out: Annotated[Path, typer.Option(help="Rain store (zarr) to make or to append to.")],
    size: Annotated[str, typer.Option(help="Cells of the grid, 256 or 200x300.")] = "256",
    spacing: Annotated[float, typer.Option(help="Metres between cells.")] = 1000.0,
    centre: Annotated[
        str | None, typer.Option(help="LAT,LON of the grid's centre; by default the radar.")
    ] = None,
    site: Annotated[
        str | None, typer.Option(help="LAT,LON[,ALT] of the radar, for files without it.")
    ] = None,
    sweeps: Annotated[int, typer.Option(help="Number of lowest elevations to use.")] = 1,
    combine: Annotated[
        str, typer.Option(help="With several: the 'lowest' that sees a cell, or the 'max'.")
    ] = "lowest",
    zr: Annotated[
        str,
        typer.Option(help="Z-R relation: marshall-palmer, wsr88d, fmi, or 'a,b' of Z = a R^b."),
    ] = "marshall-palmer",
    hail_cap: Annotated[float, typer.Option(help="Reflectivity above which it is hail, dBZ.")] = 53,
    noise: Annotated[float, typer.Option(help="Reflectivity below which it is dry, dBZ.")] = 7,
    rhohv: Annotated[
        float, typer.Option(help="Echo of a lower correlation coefficient is no rain.")
    ] = 0.8,
    fill: Annotated[
        str,
        typer.Option(
            help="Gates without a number in files with one code for both: 'missing', 'no echo', or "
            "'auto' by what else the file has."
        ),
    ] = "auto",
    step: Annotated[
        str | None, typer.Option(help="Round times to multiples of it, e.g. 5min.")
    ] = None,
    cluster: Cluster = "local",
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Turn radar scans, polar volumes or composites, into a rain store.

    Polar volumes: NEXRAD Level II, ODIM_H5, Sigmet/IRIS, CfRadial, Rainbow, UF. Composites: ODIM_H5
    (OPERA), KNMI HDF5, CF netCDF, FMI PGM and GeoTIFF, RADOLAN, GRIB2 (MRMS). Scans that are in the
    store already are skipped; files that cannot be read are named, counted, and make the command
    end with exit code 3.
    """
    from nowcast.commands.ingest import run

    run(
        sources, out, size=size, spacing=spacing, centre=centre, site=site, sweeps=sweeps,
        combine=combine, zr=zr, hail_cap=hail_cap, noise=noise, rhohv=rhohv, fill=fill, step=step,
        cluster=cluster, workers=workers, as_json=as_json,
    )  # fmt: skip


@app.command()
def export(
    rain: Rain,
    out: Annotated[Path, typer.Option(help="Zarr store to write.")],
    identifier: Annotated[
        str, typer.Option(help="COUNTRY-INSTITUTION-QUANTITY, such as NL-knmi-rain_rate.")
    ],
    created_by: Annotated[str, typer.Option(help="'Name <name@example.org>'.")],
    created_with: Annotated[
        str, typer.Option(help="Repository of the data set's recipe at mlcast-community, @VERSION.")
    ],
    license: Annotated[str, typer.Option(help="SPDX identifier of the data's licence.")],
    version: Annotated[str, typer.Option(help="Version of the data set.")] = "0.1.0",
) -> None:
    """Write a rain store in mlcast's convention, for others to train on."""
    from nowcast.commands.export import run

    run(
        rain, out, identifier=identifier, created_by=created_by, created_with=created_with,
        license=license, version=version,
    )  # fmt: skip


@app.command()
def train(
    rain: Annotated[
        list[Path], typer.Argument(help="Rain stores that 'nowcast ingest' wrote; one or more.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to write the model to.")],
    validate: Annotated[
        list[Path] | None,
        typer.Option(help="Store to validate on; may be repeated. By default parts of the others."),
    ] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(help="Store to test on; may be repeated. By default parts of the others."),
    ] = None,
    init: Annotated[
        Path | None, typer.Option(help="Folder of a model to start from instead of chance.")
    ] = None,
    lead: Annotated[str | None, typer.Option(help="How far ahead to forecast, e.g. 60min.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the training windows.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings in YAML.")] = None,
    assign: Annotated[
        list[str] | None, typer.Option("--set", help="A setting as NAME=VALUE; may be repeated.")
    ] = None,
    cluster: Cluster = "local",
    workers: Workers = None,
    progress: Annotated[bool, typer.Option(help="Show progress.")] = True,
    as_json: Json = False,
) -> None:
    """Train an encoder-forecaster of ConvLSTM layers on rain stores.

    Stores are brought to one step and spacing, and without --validate and --test split by their
    rain into parts to train, to validate and to test on. It ends with a comparison with S-PROG on
    the test part, which decides what --method auto takes. The same command goes on where an
    interrupted one stopped.
    """
    from nowcast.commands.train import run

    run(
        rain, out, validate=validate or [], test=test or [], init=init, lead=lead, epochs=epochs,
        config=config, assignments=assign or [], cluster=cluster, workers=workers,
        progress=progress, as_json=as_json,
    )  # fmt: skip


@app.command()
def predict(
    rain: Annotated[
        Path, typer.Argument(help="Rain store that 'nowcast ingest' wrote, or a folder of scans.")
    ],
    out: Annotated[Path, typer.Option(help="Forecast to write: zarr, or netCDF if it ends in .nc")],
    method: Annotated[
        str,
        typer.Option(
            help="persistence, extrapolation, sprog, steps, pysteps:NAME (extrapolation, sprog, "
            "anvil, steps, linda), model, or auto: a model that proved better than sprog, or sprog."
        ),
    ] = "auto",
    model: Annotated[
        Path | None, typer.Option(help="Folder of a model that 'nowcast train' wrote.")
    ] = None,
    at: Annotated[
        str, typer.Option(help="Time of the last frame to read (UTC), or 'latest'.")
    ] = "latest",
    lead: Annotated[str | None, typer.Option(help="How far ahead, e.g. 60min.")] = None,
    thresholds: Annotated[
        str, typer.Option(help="Rain rates whose exceedance is forecast, mm h-1; '' for none.")
    ] = "0.1,0.5,1,2,5,10,20",
    members: Annotated[
        int, typer.Option(min=0, help="Members of an ensemble, of methods that give them.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Decides all that is random.")] = 0,
) -> None:
    """Forecast rain from the frames of a store, or of a folder of scans, up to a time.

    Needs no trained model.
    """
    from nowcast.commands.predict import run

    run(
        rain, out, method=method, model=model, at=at, lead=lead, thresholds=thresholds,
        members=members, seed=seed,
    )  # fmt: skip


@app.command()
def verify(
    rain: Annotated[list[Path], typer.Argument(help="Rain stores that 'nowcast ingest' wrote.")],
    method: Annotated[
        str | None,
        typer.Option(
            help="Methods with commas between them, as for 'predict'; by default the model, if one "
            "is given, persistence, extrapolation and sprog."
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Folder of a model that 'nowcast train' wrote.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Method that the others are compared with; by default sprog."),
    ] = None,
    lead: Annotated[
        str | None, typer.Option(help="How far ahead; by default as the model, or 60min.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for verify.json, verify.png and the report verify.html."),
    ] = None,
    thresholds: Annotated[
        str, typer.Option(help="Rain rates that make an event, mm h-1.")
    ] = "0.1,1,5,10",
    scales: Annotated[str, typer.Option(help="Neighbourhoods of the FSS, km.")] = "1,5,20",
    start: Annotated[
        str | None,
        typer.Option("--from", help="First time; by default all, or the model's test part."),
    ] = None,
    stop: Annotated[str | None, typer.Option("--to", help="Last time.")] = None,
    every: Annotated[
        int,
        typer.Option(min=1, help="Frames between two forecasts; leads that it divides are scored."),
    ] = 1,
    members: Annotated[
        int, typer.Option(min=0, help="Members of an ensemble, of methods that give them.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Decides all that is random.")] = 0,
    as_json: Json = False,
) -> None:
    """Score forecasting methods on what was observed; needs no trained model.

    CSI, POD, FAR, frequency bias, MAE, Brier score and CRPS by lead time and threshold, FSS by
    scale, reliability, rank histogram, ROC and spectra, at the same valid times for all leads; with
    intervals over events, and sentences that say who is better where.
    """
    from nowcast.commands.verify import run

    run(
        rain, methods=method, model=model, against=against, lead=lead, out=out,
        thresholds=thresholds, scales=scales, start=start, stop=stop, every=every, members=members,
        seed=seed, as_json=as_json,
    )  # fmt: skip


@app.command()
def plot(
    forecast: Annotated[
        list[Path], typer.Argument(help="Forecasts that 'nowcast predict' wrote, a row each.")
    ],
    out: Annotated[Path, typer.Option(help="Picture: .png, or .gif for an animation.")],
    observed: Annotated[
        Path | None, typer.Option(help="Rain store with what was observed, shown beside it.")
    ] = None,
    threshold: Annotated[
        list[float] | None,
        typer.Option(
            help="Show the probability of this rain rate too, mm h-1; may be repeated. By default "
            "1, of a forecast that has it."
        ),
    ] = None,
    members: Annotated[int, typer.Option(min=0, help="Show so many members too.")] = 2,
) -> None:
    """Show forecasts beside what was observed: rain, probabilities and members."""
    from nowcast.commands.plot import run

    run(forecast, out, observed=observed, thresholds=threshold, members=members)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for all that is made.")] = Path("nowcast-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated weather.")] = 0,
    cluster: Cluster = "local",
    workers: Workers = None,
) -> None:
    """Simulate a day of radar scans, then ingest, train, predict, verify and plot it."""
    from nowcast.commands.demo import run

    run(out, seed=seed, cluster=cluster, workers=workers)


def main() -> int:
    """Run the command line and return its exit code."""
    return console.run(app, install="daskdl[nowcast]")
