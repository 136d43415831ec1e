"""``nowcast serve``."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from daskdl.errors import DataError, SettingsError, needed
from nowcast.commands.talk import progress_bar, say
from nowcast.rain.texts import utc_text

if TYPE_CHECKING:
    from nowcast.web.folder import Folder


def serve(
    source: Annotated[
        Path, typer.Argument(help="Folder that 'nowcast watch' makes, or a forecast of 'predict'.")
    ],
    observed: Annotated[
        Path | None,
        typer.Option(help="Rain store that shows the past; by default rain.zarr in the folder."),
    ] = None,
    areas: Annotated[
        Path | None,
        typer.Option(help="GeoJSON of areas with names; by default areas.geojson in the folder."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for other machines too.")
    ] = "127.0.0.1",
    export: Annotated[
        Path | None,
        typer.Option(help="Write the page to this folder, for any web server, and end."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
) -> None:
    """Show a folder of forecasts as a page, and to programs as JSON.

    A newer forecast is shown as soon as it is there. Ctrl-C ends it. With --export it writes the
    page as files instead.
    """
    from nowcast.web.folder import Folder

    if export is None:
        require_server()
    for path in filter(None, (source, observed, areas)):
        if not path.exists():
            raise DataError(f"{path}: expected a folder or a file, found nothing there")
    folder = Folder(source, observed, areas)
    if export is not None:
        _export(folder, export)
        return
    import uvicorn

    from nowcast.web.app import application

    with _listening(host, port) as listener:
        folder.refresh()
        if folder.problem:
            say(f"nothing to show yet: {folder.problem}")
        say(f"page on http://{host}:{listener.getsockname()[1]}/ (Ctrl-C ends it)")
        settings = uvicorn.Config(application(folder), log_level="warning", backlog=1024)
        uvicorn.Server(settings).run(sockets=[listener])


def _export(folder: Folder, site: Path) -> None:
    from nowcast.web.export import export

    folder.refresh()
    if folder.problem:
        raise DataError(folder.problem)
    try:
        with progress_bar("export") as advance:
            size = export(folder.shown(), site, advance)
    except OSError as error:
        raise SettingsError(
            f"--export: expected a folder that can be written, found {site} ({error})"
        ) from error
    say(f"page of {utc_text(folder.shown().start)} in {site}, {size / 1e6:.1f} MB")


def require_server() -> None:
    """Raise an error that names the extra when there is no server."""
    with needed(
        "the page needs starlette and uvicorn ({error}); pip install 'daskdl[nowcast,serve]'"
    ):
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens."""
    try:
        return socket.create_server((host, port), backlog=1024)
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"--host, --port: expected an address that is free, found {host}:{port} "
            f"({error}); choose another --port, or 0 for any"
        ) from error
