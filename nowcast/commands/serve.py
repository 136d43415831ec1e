"""``nowcast serve``."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from daskdl.errors import DataError, MissingExtraError, SettingsError
from nowcast.commands.talk import say


def serve(
    source: Annotated[
        Path,
        typer.Argument(help="Folder that 'nowcast watch' makes, or a forecast of 'predict'."),
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
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
) -> None:
    """Show a folder of forecasts as a page, and to programs as JSON. Nothing is written.

    A newer forecast is shown as soon as it is there. Ctrl-C ends it.
    """
    require_server()
    import uvicorn

    from nowcast.web.app import application
    from nowcast.web.folder import Folder

    for path in filter(None, (source, observed, areas)):
        if not path.exists():
            raise DataError(f"{path}: expected a folder or a file, found nothing there")
    folder = Folder(source, observed, areas)
    with _listening(host, port) as listener:
        folder.refresh()
        if folder.problem:
            say(f"nothing to show yet: {folder.problem}")
        say(f"page on http://{host}:{listener.getsockname()[1]}/ (Ctrl-C ends it)")
        settings = uvicorn.Config(application(folder), log_level="warning", backlog=1024)
        uvicorn.Server(settings).run(sockets=[listener])


def require_server() -> None:
    """Raise an error that names the extra when there is no server."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"the page needs starlette and uvicorn ({error}); pip install 'daskdl[nowcast,serve]'"
        ) from error


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens."""
    try:
        return socket.create_server((host, port), backlog=1024)
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"--host, --port: expected an address that is free, found {host}:{port} "
            f"({error}); choose another --port, or 0 for any"
        ) from error
