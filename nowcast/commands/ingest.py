"""``nowcast ingest``."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from daskdl.errors import DataError, SettingsError
from nowcast.commands.arguments import Cluster, Json, Workers
from nowcast.commands.talk import print_json, progress_bar, say


def ingest(
    context: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(help="Radar files, folders, archives, patterns, or addresses of them."),
    ],
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
        str, typer.Option(help="Z-R relation: marshall-palmer, wsr88d, fmi, or 'a,b' of Z = a R^b.")
    ] = "marshall-palmer",
    hail_cap: Annotated[float, typer.Option(help="Reflectivity above which it is hail, dBZ.")] = 53,
    noise: Annotated[float, typer.Option(help="Reflectivity below which it is dry, dBZ.")] = 7,
    rhohv: Annotated[
        float | None,
        typer.Option(help="Echo of a lower correlation coefficient is no rain, such as 0.8."),
    ] = None,
    clean: Annotated[
        str,
        typer.Option(
            help="Steps that take out echo that is no rain, such as spikes,speckle; default, all "
            "or none."
        ),
    ] = "default",
    climate: Annotated[
        list[Path] | None,
        typer.Option(help="File of 'nowcast climate': its ground is taken out, blockage added."),
    ] = None,
    attenuation: Annotated[
        str | None, typer.Option(help="Add what rain took of the echo behind it, at band C or X.")
    ] = None,
    freezing: Annotated[
        str | None,
        typer.Option(
            help="Metres above the sea of 0 degrees Celsius, or a CSV of time,height: a bright "
            "band's excess is taken off."
        ),
    ] = None,
    keep_flags: Annotated[
        bool, typer.Option("--keep-flags", help="Keep which steps took echo out, clean_flags.")
    ] = False,
    fill: Annotated[
        str,
        typer.Option(
            help="Gates without a number in files with one code for both: 'missing', 'no echo', or "
            "'auto' by what else the file has."
        ),
    ] = "auto",
    moment: Annotated[
        str | None, typer.Option(help="Moment of volumes, such as TH; by default DBZH or its kin.")
    ] = None,
    mosaic: Annotated[
        str | None,
        typer.Option(
            help="Several radars in one map: the mean by 'quality' (distance, height), the "
            "'maximum', or the 'nearest' radar."
        ),
    ] = None,
    within: Annotated[
        str, typer.Option(help="Of a mosaic: how near to a frame's time scans begin; 5 is 5min.")
    ] = "5min",
    offset: Annotated[
        list[str] | None,
        typer.Option(help="NAME=DB to add to a radar's reflectivity, such as behel=-1.5."),
    ] = None,
    step: Annotated[
        str | None, typer.Option(help="Round times to multiples of it, e.g. 5min; 5 is 5min.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="Of addresses: first time, by the files' names.")
    ] = None,
    stop: Annotated[
        str | None, typer.Option("--to", help="Of addresses: last time, such as 2026-05-20T12:00.")
    ] = None,
    storage: Annotated[
        list[str] | None,
        typer.Option(help="Of addresses: an option of fsspec, such as anon=true; several times."),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder to keep copies of remote files in.")
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
    from daskdl.cluster import connect
    from daskdl.files import check_local
    from nowcast.ingest.ingest import ingest
    from nowcast.ingest.remote import Access, is_remote
    from nowcast.ingest.settings import IngestSettings
    from nowcast.ingest.sources import find_files
    from nowcast.radar.guard import ReaderError
    from nowcast.rain.texts import assigned, parse_utc

    known = IngestSettings.model_fields.keys() & context.params.keys()
    stated = {name: context.params[name] for name in known if context.params[name] is not None}
    settings = IngestSettings.of(**stated)
    first, last = (
        None if text is None else parse_utc(option, text).astype("datetime64[s]")
        for option, text in (("--from", start), ("--to", stop))
    )
    access = Access(assigned("--storage", storage or ()), first, last)
    # Refuse missing sources before workers are started.
    check_local(out)
    of_addresses = {"--from": start, "--to": stop, "--storage": storage, "--cache": cache}
    useless = [name for name, value in of_addresses.items() if value]
    if useless and not any(map(is_remote, sources)):
        raise SettingsError(
            f"{useless[0]}: expected an address or an archive among the sources, found files and "
            "folders alone, for which it does nothing; name files by a pattern, or leave it out"
        )
    find_files([source for source in sources if not is_remote(source)])
    _print_warnings()
    with connect(cluster, workers=workers) as client, progress_bar("ingest") as advance:
        report = ingest(
            sources, out, settings, client=client, progress=advance, access=access, cache=cache
        )
    made = "frames" if mosaic else "scans"
    say(
        f"{out}: {report.written} {made} written, {report.existing} there before, "
        + (f"{report.anew} made anew, " if report.anew else "")
        + f"{report.repeated} repeated, {len(report.failed)} files not read"
    )
    if report.written or report.anew:
        say(f"{out}: of {report.area}, {report.coverage}")
        for line in report.mosaic():
            say(f"{out}: {line}")
        if cleaning := report.cleaning():
            say(f"{out}: {cleaning}")
    if as_json:
        print_json(asdict(report))
    if report.mistakes:
        raise typer.Exit(ReaderError.exit_code)
    if report.failed:
        raise typer.Exit(DataError.exit_code)


def _print_warnings() -> None:
    """Print the names of skipped files on standard error."""
    log = logging.getLogger("nowcast")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
        log.propagate = False
