"""The server: routes of the page and of the interface for programs, all read-only."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from daskdl.errors import DataError
from nowcast.web import answers
from nowcast.web.basemap import basemap_of, cells
from nowcast.web.case import Case
from nowcast.web.export import PAGE
from nowcast.web.folder import Folder

#: Seconds between two checks of the folder.
LOOK = 1.0
#: A browser checks each time whether its copy is current; a picture of one case never changes.
ASK, KEEP = "no-cache", "public, max-age=86400, immutable"
HEADERS = {
    b"content-security-policy": b"default-src 'self'; img-src 'self' data:",
    b"x-content-type-options": b"nosniff",
    b"access-control-allow-origin": b"*",
    b"cache-control": ASK.encode(),  # unless an answer has its own
}


def application(folder: Folder) -> Starlette:
    """Return the ASGI application that shows a folder.

    It looks for a new forecast every second, and reads it in a separate thread.
    """

    async def watch() -> None:
        while True:
            await run_in_threadpool(folder.refresh)
            await asyncio.sleep(LOOK)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(folder.refresh)
        looking = asyncio.create_task(watch())
        yield
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking

    async def frames(request: Request) -> Response:
        return _json(request, answers.frames(folder.shown()))

    making: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def once(request: Request, key: str, make: Callable[[Case], dict[str, Any]]) -> Response:
        """Return an answer that one thread makes and packs once for a case; others wait."""
        case = folder.shown()
        async with making[key]:
            if key not in case.bodies:
                case.bodies[key] = await run_in_threadpool(lambda: _packed(make(case)))
        return _unless_known(request, *case.bodies[key])

    async def map_lines(request: Request) -> Response:
        return await once(request, "map", basemap_of)

    async def map_cells(request: Request) -> Response:
        return await once(request, "cells", cells)

    async def frame(request: Request) -> Response:
        case = folder.shown()
        wanted = request.query_params.get("case", case.name)
        quantity, n = request.path_params["quantity"], request.path_params["n"]
        if wanted != case.name:
            return _error(404, f"expected case {case.name}, found {wanted}; read /frames again")
        tag = f'"{case.name}-{quantity}-{n}"'
        headers = {"etag": tag, "cache-control": KEEP if "case" in request.query_params else ASK}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        try:
            png = await run_in_threadpool(case.picture, quantity, n)
        except KeyError:
            names = ", ".join(case.quantities)
            return _error(
                404,
                f"expected a quantity among {names} and a frame below {len(case.shown)} "
                f"that it has, found {quantity} and {n}; /frames lists them",
            )
        return Response(png, media_type="image/png", headers=headers)

    async def latest(request: Request) -> Response:
        status = await run_in_threadpool(folder.status)
        return _json(request, answers.latest(folder.shown(), status))

    async def point(request: Request) -> Response:
        degrees = []
        for name, most in (("lat", 90.0), ("lon", 360.0)):
            text = request.query_params.get(name, "")
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            if not abs(value) <= most:
                return _error(400, f"{name}: expected degrees within ±{most:g}, found {text!r}")
            degrees.append(value)
        try:
            return _json(request, answers.point(folder.shown(), *degrees))
        except DataError as error:
            return _error(404, str(error))

    async def area(request: Request) -> Response:
        name = request.query_params.get("name")
        if name is None:
            return await once(request, "areas", answers.areas)
        try:
            return _json(request, await run_in_threadpool(answers.area, folder.shown(), name))
        except DataError as error:
            return _error(404, str(error))

    async def common(request: Request) -> Response:
        made = answers.common(folder.shown(), str(request.base_url))
        return _json(request, made[request.url.path.removeprefix("/v1/")])

    async def health(request: Request) -> Response:
        problem = folder.problem
        state = {"status": "fails" if problem else "ok", "problem": problem or None}
        if folder.case is not None:
            state["start"] = answers.iso(folder.case.start)
        return Response(json.dumps(state), 503 if problem else 200, media_type="application/json")

    async def sentence(request: Request, error: Exception) -> Response:
        return _error(503, str(error))

    packed = [Middleware(GZipMiddleware, minimum_size=2000)]
    page = StaticFiles(directory=PAGE, html=True)
    return Starlette(
        routes=[
            Route("/frames", frames, middleware=packed),
            Route("/map", map_lines),
            Route("/cells", map_cells),
            Route("/frame/{quantity}/{n:int}.png", frame),
            *(
                Route(f"/v1/{path}", _strict(common))
                for path in ("", "conformance", "collections", "collections/rain")
            ),
            Route("/v1/latest", _strict(latest)),
            Route("/v1/point", _strict(point, "lat", "lon")),
            Route("/v1/area", _strict(area, "name"), middleware=packed),
            Route("/healthz", health),
            Mount("/", page, middleware=packed),
        ],
        middleware=[Middleware(_Headers)],
        exception_handlers={DataError: sentence},
        lifespan=lifespan,
    )


def _strict(answer: Callable[[Request], Any], *names: str) -> Callable[[Request], Any]:
    """Return an answer that refuses unknown parameters, as OGC API - Common requires."""

    async def strict(request: Request) -> Response:
        if others := sorted({*request.query_params} - {*names}):
            known = " and ".join(names) or "no parameters"
            return _error(400, f"expected {known}, found {', '.join(others)}")
        return await answer(request)

    return strict


def _json(request: Request, content: dict[str, Any]) -> Response:
    """Answer with JSON, or that nothing has changed."""
    return _unless_known(request, answers.text(content))


def _packed(content: dict[str, Any]) -> tuple[bytes, bytes]:
    """Return JSON, and the same in gzip."""
    body = answers.text(content)
    return body, gzip.compress(body, 6)


def _unless_known(request: Request, body: bytes, packed: bytes | None = None) -> Response:
    """Answer with a body, or that nothing has changed."""
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"etag": tag, "cache-control": ASK}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        body, headers = packed, headers | {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(body, media_type="application/json", headers=headers)


def _error(status: int, sentence: str) -> Response:
    return Response(json.dumps({"error": sentence}), status, media_type="application/json")


class _Headers:
    """Middleware that adds the common headers of all answers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name for name, _ in message["headers"]}
                extra = [item for item in HEADERS.items() if item[0] not in known]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        await self.app(scope, receive, sending)
