"""The page in a real browser: animation, slider, clicks, widths, and forecasts that change."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("selenium")
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait
from starlette.staticfiles import StaticFiles

from nowcast.rain.store import write_netcdf
from nowcast.web import answers
from nowcast.web.app import application
from nowcast.web.export import export
from nowcast.web.folder import Folder
from tests.nowcast.stores import N_OUT, SIZE
from tests.nowcast.web.conftest import LAT, LON, a_forecast, served

DRIVER = shutil.which("chromedriver")
FRAMES = 12 + N_OUT
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("chromium") and DRIVER), reason="no chromium here"),
]


class Page:
    """The page of a folder in a browser.

    Parameters
    ----------
    chromium : webdriver.Chrome
    address : str
    """

    def __init__(self, chromium: webdriver.Chrome, address: str) -> None:
        self.chromium = chromium
        self.address = address

    def open(self, state: str = "", frame: int | None = 11, width: int = 1280) -> None:
        """Open the page with its state after the #; wait until it shows a frame."""
        self.widen(width)
        self.chromium.get("about:blank")
        self.chromium.get(f"{self.address}#{state}")
        if frame is not None:
            self.shows(frame)

    def widen(self, width: int) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def __getitem__(self, name: str) -> Any:
        return self.chromium.find_element("id", name)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.chromium.execute_script(script, *arguments)

    def until(self, true: Callable[[], Any]) -> None:
        WebDriverWait(self.chromium, 10, 0.02).until(lambda _: true())

    def shows(self, n: int) -> None:
        """Wait until a frame is drawn."""
        self.until(lambda: self["field"].get_attribute("data-shown") == str(n % FRAMES))

    def box(self, name: str) -> dict[str, float]:
        return self.run(
            "return document.getElementById(arguments[0]).getBoundingClientRect()", name
        )


@pytest.fixture(scope="module")
def chromium():
    options = webdriver.ChromeOptions()
    for name in ("headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{name}")
    options.binary_location = str(shutil.which("chromium"))
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield browser
    browser.quit()


@contextmanager
def opened(app: Any, chromium: webdriver.Chrome) -> Iterator[Page]:
    """Serve an application to the browser, whose log must have no unexpected errors."""
    with served(app) as address:
        yield Page(chromium, address)
        chromium.get("about:blank")  # open connections would keep the server
    messages = [line["message"] for line in chromium.get_log("browser")]
    expected = ("status of 503", "status of 404")
    assert [line for line in messages if not any(part in line for part in expected)] == []


@pytest.fixture
def page(shown, chromium):
    with opened(application(shown), chromium) as page:
        yield page


def test_the_address_holds_frame_quantity_and_place(page):
    page.open(f"quantity=p1&lead=20&lat={LAT}&lon={LON}", frame=13)
    page.until(lambda: page["chart"].is_displayed())
    assert page["utc"].text == "2020-06-01 02:10 UTC"
    assert page["quantity"].get_attribute("value") == "p1"
    assert "Rain in 20 minutes" in page["arrival"].text
    page["slider"].send_keys(Keys.ARROW_RIGHT)
    page.shows(14)
    assert "lead=30" in page.chromium.current_url


def test_the_page_plays_each_frame_and_begins_again(page):
    page.open()
    page.run("""
        const wait = window.setTimeout, field = document.getElementById("field");
        window.setTimeout = (call, milliseconds) => wait(call, milliseconds / 10);
        window.drawn = [];
        new MutationObserver(() => window.drawn.push(Number(field.dataset.shown)))
            .observe(field, { attributes: true, attributeFilter: ["data-shown"] });
    """)
    page["play"].click()
    page.until(lambda: len(page.run("return window.drawn")) > FRAMES)
    page["play"].click()
    drawn = page.run("return window.drawn")
    assert drawn == [(12 + k) % FRAMES for k in range(len(drawn))]
    assert page["play"].text == "▶ Play"
    stopped = drawn[-1]
    page["back"].click()
    page.shows(stopped - 1)
    page["next"].click()
    page.shows(stopped)


def test_keys_play_and_step(page):
    page.open()
    for key, frame in (
        (Keys.HOME, 0),
        (Keys.ARROW_LEFT, -1),
        (Keys.ARROW_RIGHT, 0),
        (Keys.END, -1),
    ):
        page["map"].send_keys(key)
        page.shows(frame)
    page["map"].send_keys(" ")
    assert page["play"].text == "❚❚ Pause"
    page["map"].send_keys(" ")
    assert page["play"].text == "▶ Play"


def test_the_slider_chooses_the_frame_and_names_it(page):
    page.open()
    slider = page["slider"]
    slider.send_keys(Keys.END)
    page.shows(-1)
    assert slider.get_attribute("aria-valuetext") == "2020-06-01 02:20 UTC, +30 min"
    assert page["lead"].text == "+30 min"
    slider.send_keys(Keys.HOME)
    page.shows(0)
    assert page["lead"].text == "observed −110 min"


@pytest.mark.parametrize("width", [1280, 390])
def test_a_click_gives_the_curve_of_that_cell(page, width):
    page.open(width=width)
    size = page.box("map")["width"]
    row, column = 24, 9
    # Selenium counts from the middle of the map.
    x, y = ((k + 0.5) / SIZE * size - size / 2 for k in (column, SIZE - 1 - row))
    mouse = webdriver.ActionChains(page.chromium)
    mouse.move_to_element_with_offset(page["map"], round(x), round(y)).click().perform()
    page.until(lambda: page["chart"].is_displayed())
    assert page.run("return [state.cell.row, state.cell.column]") == [row, column]
    mark, field = page.box("mark"), page.box("field")
    assert mark["x"] + mark["width"] / 2 == pytest.approx(
        field["x"] + size / 2 + x, abs=size / SIZE
    )
    page["numbers"].click()
    rows = page["numbers"].find_elements("css selector", "tr")
    assert len(rows) == 1 + FRAMES
    assert rows[-1].text.split()[:2] == ["02:20", "2.0"]


def test_zoomed_a_click_finds_its_cell_and_a_drag_moves(page):
    page.open("view=2,16,0")  # the north-eastern quarter
    mouse = webdriver.ActionChains(page.chromium)
    mouse.move_to_element_with_offset(page["map"], 4, 4).click().perform()
    page.until(lambda: page["chart"].is_displayed())
    assert page.run("return [state.cell.row, state.cell.column]") == [SIZE - 9, 24]
    mouse.move_to_element_with_offset(page["map"], 0, 0).click_and_hold()
    mouse.move_by_offset(round(page.box("map")["width"] / 4), 0).release().perform()
    page.until(lambda: page.run("return state.view.x") == pytest.approx(12, abs=0.1))
    assert page.run("return state.cell.column") == 24  # a drag is no click
    page["in"].click()
    assert page.run("return state.view.k") == 4
    page["map"].send_keys("0")
    assert page.run("return state.view") == {"k": 1, "x": 0, "y": 0}


def test_cells_are_outlined_in_each_frame(page):
    page.open("lead=-50", frame=6)
    page["outlined"].click()
    page.until(lambda: page["outlines"].find_elements("css selector", "td"))
    kinds = [p.get_attribute("class") for p in page["cells"].find_elements("css selector", "path")]
    assert kinds == ["cell", "way", "trail"]
    assert "km/h E" in page["outlines"].text
    page.run("point(...degreesAt(...state.cells.frames[state.n][0].trail.slice(-2)))")
    page.until(lambda: "in 0 to" in page["outlines"].text)  # the point is on the trail
    page["next"].click()
    page.until(lambda: page["outlines"].text == "No rain cells.")


def test_an_area_of_the_list_gives_its_curve(areas, page):
    page.open()
    page.until(lambda: len(page["areas"].find_elements("css selector", "button")) == 3)
    west, _, away = page["areas"].find_elements("css selector", "tr")[1:]
    assert west.text.split("\n")[-1].endswith("2.0 30 %")
    assert "missing" in away.text
    west.find_element("css selector", "button").click()
    page.until(lambda: page["arrival"].text.startswith("west: "))
    chosen = page.chromium.find_element("css selector", "path.area.chosen")
    assert chosen.get_attribute("data-name") == "west"
    assert "area=west" in page.chromium.current_url


def test_exported_files_show_the_same(areas, shown, chromium, tmp_path):
    shown.refresh()
    case = shown.shown()
    export(case, tmp_path / "site")
    with opened(StaticFiles(directory=tmp_path / "site", html=True), chromium) as page:
        page.open("lat=50.02&lon=5.02&cells=1&lead=-50", frame=6)
        page.until(lambda: page["chart"].is_displayed())
        page.until(lambda: page["outlines"].find_elements("css selector", "td"))
        expected = answers.point(case, 50.02, 5.02)
        answer = page.run("return state.asked()")
        assert answer["arrival"].pop("probability") == pytest.approx(0.8, abs=1e-3)
        expected["arrival"].pop("probability")
        assert answer["arrival"] == expected["arrival"]
        assert answer["cell"] == expected["cell"]
        for part in ("observed", "forecast"):
            for entry, other in zip(answer[part], expected[part], strict=True):
                assert entry["time"] == other["time"]
                assert entry["rain_rate"] == pytest.approx(other["rain_rate"], abs=6e-3)
        second, other = answer["forecast"][1], expected["forecast"][1]
        for name in ("quantiles", "exceedance_probability"):
            assert second[name] == pytest.approx(other[name], abs=6e-3)
        page["areas"].find_element("css selector", "button").click()
        page.until(lambda: page["arrival"].text.startswith("west: "))


def test_the_interface_has_a_page_for_readers(page):
    page.chromium.get(f"{page.address}/api.html")
    page.until(lambda: "GET /v1/point" in page["operations"].text)
    assert "lat: number from -90 to 90, required" in page["operations"].text
    page.chromium.find_element("css selector", "a[href='v1/latest']").click()
    page.until(lambda: "/v1/latest" in page.chromium.current_url)


def test_at_any_width_nothing_overflows(page):
    page.open(f"lat={LAT}&lon={LON}")
    page.until(lambda: page["chart"].is_displayed())
    heights = []
    for width in (1280, 390, 320, 1280):
        page.widen(width)
        page.until(lambda width=width: page.run("return innerWidth") == width)
        assert page.run("return document.documentElement.scrollWidth") <= width
        page.until(lambda: abs(page.box("mark")["width"] - 22) < 3)  # redrawn at its size
        heights.append(page.box("show")["width"])
    assert heights[0] == heights[-1] > heights[1] > heights[2]


def test_an_empty_folder_says_so_until_there_is_a_forecast(tmp_path, chromium):
    shown = Folder(tmp_path)
    with opened(application(shown), chromium) as page:
        page.open(frame=None)
        page.until(lambda: "expected latest.json or forecasts/*.nc" in page["notes"].text)
        assert page["utc"].text == "no forecast yet"
        assert not page["play"].is_enabled()
        page["map"].click()
        (tmp_path / "forecasts").mkdir()
        write_netcdf(a_forecast(), tmp_path / "forecasts" / "20200601T0150Z.nc")
        shown.refresh()  # unless the server was quicker
        page.run("look()")
        page.shows(0)
        assert "expected" not in page["notes"].text
        assert page["play"].is_enabled()


def test_a_forecast_is_replaced_under_an_open_page(page, folder, shown):
    page.open(f"lead=10&lat={LAT}&lon={LON}", frame=12)
    page.until(lambda: page["chart"].is_displayed())
    write_netcdf(a_forecast(14), folder / "forecasts" / "20200601T0220Z.nc")
    shown.refresh()  # unless the server was quicker
    page["next"].click()
    page["next"].click()  # a picture not fetched before comes from the new forecast
    page.until(lambda: "from 2020-06-01 02:20 UTC" in page["about"].text)
    page.until(lambda: page["utc"].text == "2020-06-01 02:20 UTC")
    assert page.run("return state.frames.observed") == 13
    page.until(lambda: page.run("return state.cell && document.getElementById('mark')"))
