"""Messages of alerts: sent to a command, a webhook, by mail, or as a CAP 1.2 file."""

from __future__ import annotations

import json
import smtplib
import subprocess
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import datetime
from email.message import EmailMessage
from functools import partial
from typing import Any

from daskdl.files import replacing
from nowcast.live.settings import Cap, Channels, Mail

#: Timeout of a receiver in seconds.
PATIENCE = 20.0
NAMESPACE = "urn:oasis:names:tc:emergency:cap:1.2"


def channels(send: Channels) -> dict[str, Callable[[dict[str, Any]], None]]:
    """Return the functions that send a message, by the names of their channels.

    They raise an exception if a message is not delivered.
    """
    senders: dict[str, Callable[..., None]]
    senders = {"command": _run, "webhook": _post, "mail": _mail, "cap": _write}
    receivers = {name: getattr(send, name) for name in senders}
    return {name: partial(senders[name], to) for name, to in receivers.items() if to is not None}


def _run(command: list[str], message: dict[str, Any]) -> None:
    text = json.dumps(message)
    subprocess.run(
        command, input=text, text=True, timeout=PATIENCE, check=True, capture_output=True
    )


def _post(address: str, message: dict[str, Any]) -> None:
    request = urllib.request.Request(
        address, json.dumps(message).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE):
        pass


def _mail(mail: Mail, message: dict[str, Any]) -> None:
    letter = EmailMessage()
    letter["Subject"], letter["From"] = message["headline"], mail.sender
    letter["To"] = ", ".join(mail.to)
    letter["Date"] = datetime.fromisoformat(message["issued"])
    letter["Message-ID"] = f"<{message['id']}@nowcast>"
    letter.set_content(f"{message['headline']}.\n\n{message['description']}\n")
    with smtplib.SMTP(mail.host, mail.port, timeout=PATIENCE) as server:
        if mail.tls:
            server.starttls()
        if mail.user is not None and mail.password_file is not None:
            server.login(mail.user, mail.password_file.read_text().splitlines()[0])
        server.send_message(letter)


def _write(cap: Cap, message: dict[str, Any]) -> None:
    with replacing(cap.folder / f"{message['id']}.xml") as temporary:
        temporary.write_bytes(cap_of(message, cap))


def cap_of(message: dict[str, Any], cap: Cap) -> bytes:
    """Return a message as an alert of the Common Alerting Protocol 1.2 (OASIS, 2010).

    Elements have the order of its schema; times are UTC in its form, ``-00:00``.
    """

    def time(text: str) -> str:
        return f"{text.removesuffix('Z')}{':00' if text.count(':') == 1 else ''}-00:00"

    ended = message["kind"] == "end"
    alert = ET.Element("alert", xmlns=NAMESPACE)

    def add(parent: ET.Element, **texts: str) -> None:
        for name, text in texts.items():
            ET.SubElement(parent, name).text = text

    add(
        alert, identifier=message["id"], sender=cap.sender, sent=time(message["issued"]),
        status="Exercise" if message["simulated"] else cap.status,
        msgType="Cancel" if ended else "Alert", scope="Public",
    )  # fmt: skip
    if ended:
        first = message["of"]
        add(alert, references=f"{cap.sender},{first['id']},{time(first['issued'])}")
    info = ET.SubElement(alert, "info")
    certainty = "Likely" if message["probability"] > 0.5 else "Possible"
    add(
        info, language=cap.language, category="Met", event=message["rule"],
        urgency="Past" if ended else "Expected", severity=cap.severity, certainty=certainty,
        onset=time(message["from"]), expires=time(message["to"]), headline=message["headline"],
        description=message["description"],
    )  # fmt: skip
    area = ET.SubElement(info, "area")
    add(area, areaDesc=message["area"])
    geometry = message["geometry"]
    corners = geometry["coordinates"]
    if geometry["type"] == "Point":
        add(area, circle=f"{corners[1]:.5f},{corners[0]:.5f} 0.0")
    for rings in {"Polygon": [corners], "MultiPolygon": corners}.get(geometry["type"], []):
        # CAP has no holes: only the outer ring is written.
        add(area, polygon=" ".join(f"{c[1]:.5f},{c[0]:.5f}" for c in rings[0]))
    ET.indent(alert)
    return ET.tostring(alert, encoding="utf-8", xml_declaration=True)
