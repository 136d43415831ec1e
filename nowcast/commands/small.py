"""Commands of one option or two: export, calibrate, climate, simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nowcast.commands.arguments import MaybeCluster, Rain, Workers, connected, lead_minutes
from nowcast.commands.talk import progress_bar, say


def export(
    context: typer.Context,
    rain: Rain,
    out: Annotated[Path, typer.Option(help="Zarr store to write.")],
    identifier: Annotated[
        str, typer.Option(help="COUNTRY-INSTITUTION-QUANTITY, such as NL-knmi-rain_rate.")
    ],
    created_by: Annotated[str, typer.Option(help="`Name <name@example.org>`.")],
    created_with: Annotated[
        str, typer.Option(help="Repository of the data set's recipe at mlcast-community, @VERSION.")
    ],
    license: Annotated[str, typer.Option(help="SPDX identifier of the data's licence.")],
    version: Annotated[str, typer.Option(help="Version of the data set.")] = "0.1.0",
) -> None:
    """Write a rain store in mlcast's convention, for others to train on."""
    from nowcast.ingest.mlcast import Origin, write_mlcast

    origin = Origin.of(**{name: context.params[name] for name in Origin.model_fields})
    missing = write_mlcast(rain, out, origin)
    say(f"{out}: written in mlcast's convention, {missing.size} missing times listed")


def calibrate(
    rain: Annotated[
        list[Path], typer.Argument(help="Rain stores that 'nowcast ingest' wrote; one or more.")
    ],
    out: Annotated[Path, typer.Option(help="File to write, JSON of a few kilobytes.")],
    starts: Annotated[
        int, typer.Option(min=1, help="Forecasts to learn from, at times with rain.")
    ] = 200,
    lead: Annotated[
        str, typer.Option(help="Longest lead time that is fitted, e.g. 60min.")
    ] = "60min",
    cluster: MaybeCluster = None,
    workers: Workers = None,
) -> None:
    """Fit the probabilities of sprog to one's own archive.

    Those that ship were fitted to events of five radars. Few data change them little: what the
    archive does not tell stays as it is. Give the file to predict, verify and train as
    --calibration.
    """
    from nowcast.model.calibration import calibrate, write_table

    minutes = lead_minutes(lead)
    assert minutes is not None
    with connected(cluster, workers) as client, progress_bar("calibrate") as advance:
        table, used = calibrate(
            rain, starts=starts, lead_minutes=minutes, progress=advance, client=client
        )
    write_table(table, out, {"fitted_on": [str(path) for path in rain], "starts": used})
    say(f"probabilities fitted to {used} forecasts written to {out}")


def climate(
    sources: Annotated[
        list[Path], typer.Argument(help="Polar scans of one radar: files, folders, patterns; days.")
    ],
    out: Annotated[Path, typer.Option(help="File to write, netCDF; its picture gets .png.")],
    terrain: Annotated[
        Path | None,
        typer.Option(
            help="Terrain model (GeoTIFF, netCDF, zarr), whose blockage is added; then one scan is "
            "enough."
        ),
    ] = None,
    cluster: MaybeCluster = None,
    workers: Workers = None,
) -> None:
    """Learn ground and obstacles around a radar from an archive, for 'nowcast ingest --climate'."""
    from nowcast.ingest.climate import learn
    from nowcast.plot.cleaning import plot_climate
    from nowcast.quality.climate import write_climate

    with connected(cluster, workers) as client, progress_bar("climate") as advance:
        learnt = learn(sources, client, advance, terrain)
    write_climate(learnt, out)
    plot_climate(learnt, out.with_suffix(".png"))
    say(
        f"{out}: {learnt.scans} scans, ground in {100 * learnt.ground.mean():.2g} % of the gates, "
        f"{(learnt.blockage > 0).any(axis=1).sum()} rays blocked; look at {out.with_suffix('.png')}"
    )


def simulate(
    out: Annotated[
        Path, typer.Option(help="Rain store to write, a new zarr folder; or one for --scans.")
    ],
    days: Annotated[int, typer.Option(min=1, help="Days, each of one kind of weather.")] = 1,
    hours: Annotated[float, typer.Option(help="Of each day that are written.")] = 24.0,
    step: Annotated[int, typer.Option(min=1, help="Minutes between frames.")] = 10,
    size: Annotated[int, typer.Option(min=16, help="Cells along each side.")] = 128,
    spacing: Annotated[float, typer.Option(help="Kilometres between cells.")] = 2.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the first day's weather.")] = 0,
    organised: Annotated[
        bool, typer.Option("--organised", help="Storms go through stages: cores, stratiform rain.")
    ] = False,
    radars: Annotated[
        int,
        typer.Option(
            min=1,
            help="That look in turn, each its own way; with --scans at once, 100 km apart, each "
            "with a folder of its own.",
        ),
    ] = 1,
    scans: Annotated[
        bool, typer.Option("--scans", help="Write polar volumes (ODIM_H5) of the first day.")
    ] = False,
    false_echo: Annotated[
        bool,
        typer.Option(
            "--false-echo",
            help="Scans have ground, speckle, spikes, blockage and attenuation, and the truth.",
        ),
    ] = False,
    bright_band: Annotated[
        float, typer.Option(help="Of scans: dB that melting snow echoes more, below 2500 m.")
    ] = 0.0,
) -> None:
    """Write a rain store of simulated weather, to try things out and to learn from.

    Storms are born, move, grow and fade; each day is fronts, mixed weather, showers or squalls,
    seen by a radar with errors and a limited range. Days have the seeds from --seed on.
    """
    from nowcast.simulate import FalseEcho
    from nowcast.simulate import simulate as simulate_scans
    from nowcast.simulate.archive import Days, simulate_archive
    from nowcast.simulate.scans import row_of_radars

    if scans or false_echo:
        amount = FalseEcho() if false_echo else None
        files: list[Path] = []
        for number, radar in enumerate(row_of_radars(radars, bright_band), start=1):
            name = f"radar{number}" if radars > 1 else ""
            with progress_bar(f"simulate {name}".strip()) as advance:
                files += simulate_scans(
                    out / name, hours=hours, step_minutes=step, seed=seed, radar=radar,
                    name=f"Simulated radar {number}" if name else "Simulated radar",
                    false_echo=amount, progress=advance,
                )  # fmt: skip
        say(f"{len(files)} simulated scans written to {out}")
        return
    chosen = Days(days, hours, step, size, 1000 * spacing, seed, organised, radars)
    with progress_bar("simulate") as advance:
        simulate_archive(out, chosen, advance)
    say(f"{days * chosen.per_day} frames of simulated rain written to {out}")
