"""OGC API - Common (19-072, 20-024): landing page, conformance, the forecast as a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nowcast.web.answers import iso

if TYPE_CHECKING:
    from nowcast.web.case import Case

SPECIFICATION = "http://www.opengis.net/spec/ogcapi-common"
CONFORMANCE = [f"{SPECIFICATION}-1/1.0/conf/{name}" for name in ("core", "landing-page", "json")]
CONFORMANCE += [f"{SPECIFICATION}-2/1.0/conf/{name}" for name in ("collections", "json")]
CONFORMS = "http://www.opengis.net/def/rel/ogc/1.0/conformance"
CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
GREGORIAN = "http://www.opengis.net/def/uom/ISO-8601/0/Gregorian"


def answers(case: Case, server: str) -> dict[str, dict[str, Any]]:
    """Return the documents of a server, whose address ends in a slash, by paths below ``v1/``."""

    def link(relation: str, path: str, title: str, **more: bool) -> dict[str, Any]:
        kind = "application/json"
        return {"href": server + path, "rel": relation, "type": kind, "title": title} | more

    times = [iso(time) for time in case.shown]
    box = [case.bounds[side] for side in ("west", "south", "east", "north")]
    coordinates = {"cellsCount": len(times), "coordinates": times}
    temporal = {"interval": [[times[0], times[-1]]], "trs": GREGORIAN, "grid": coordinates}
    rain = {
        "id": "rain",
        "title": f"Observed and forecast rain {case.about.get('station', '')}".strip(),
        "description": f"From {iso(case.start)}, by {case.about['method']}",
        "crs": [CRS84],
        "extent": {"spatial": {"bbox": [box], "crs": CRS84}, "temporal": temporal},
        "links": [
            link("self", "v1/collections/rain", "this document"),
            link("describedby", "v1/latest", "start, lead times, method, grid"),
            link("data", "v1/point?lat={lat}&lon={lon}", "rain at a place", templated=True),
            link("data", "v1/area", "rain in areas, as GeoJSON"),
        ],
    }
    links = [
        link("self", "v1/", "this document"),
        link("service-desc", "openapi.json", "OpenAPI 3.1"),
        link("service-doc", "api.html", "the same to read") | {"type": "text/html"},
        link(CONFORMS, "v1/conformance", "what it conforms to"),
        link("data", "v1/collections", "the forecast as a collection"),
    ]
    listed = [link("self", "v1/collections", "this document")]
    return {
        "": {"title": "Rain nowcast", "description": "The newest rain forecast", "links": links},
        "conformance": {"conformsTo": CONFORMANCE},
        "collections": {"links": listed, "collections": [rain]},
        "collections/rain": rain,
    }
