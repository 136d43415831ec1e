"""Triggers: a message of an MQTT broker makes a watch look at once, not only every few seconds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from daskdl.errors import MissingExtraError, SettingsError

log = logging.getLogger("nowcast.watch")

#: Ports without and with TLS.
PORTS = {"mqtt": 1883, "mqtts": 8883}


@contextmanager
def triggered(address: str | None, wake: Callable[[], object]) -> Iterator[None]:
    """Call a function at each message, for a while; without an address nothing is done.

    A broker that is away is tried again by itself; meanwhile the watch looks at its interval.

    Parameters
    ----------
    address : str, optional
        ``mqtt://[user:password@]host[:port]/topic``, or ``mqtts`` for TLS; the topic may have
        MQTT's wildcards, whose ``#`` is written as it is.

    Raises
    ------
    SettingsError
        When the address is none.
    MissingExtraError
        When paho-mqtt is not installed.
    """
    if address is None:
        yield
        return
    # A wildcard is no fragment.
    parts = urlsplit(address.replace("#", "%23"))
    topic = unquote(parts.path.lstrip("/"))
    if parts.scheme not in PORTS or not parts.hostname or not topic:
        raise SettingsError(
            f"--trigger: expected mqtt://host/topic or mqtts://host/topic, found {address!r}"
        )
    try:
        from paho.mqtt.client import CallbackAPIVersion, Client
    except ImportError as error:
        raise MissingExtraError(
            f"--trigger needs paho-mqtt ({error}); pip install 'daskdl[nowcast,mqtt]'"
        ) from error
    where = f"{parts.hostname}:{parts.port or PORTS[parts.scheme]}"

    def connected(client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            log.warning("trigger %s: not let in (%s)", where, reason)
        else:
            log.info("trigger %s: listens to %s", where, topic)
            client.subscribe(topic, qos=1)

    def ended(client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            log.warning("trigger %s: the connection ended (%s); tried again", where, reason)

    client = Client(CallbackAPIVersion.VERSION2)
    if parts.username:
        client.username_pw_set(unquote(parts.username), unquote(parts.password or ""))
    if parts.scheme == "mqtts":
        client.tls_set()
    client.on_connect, client.on_disconnect = connected, ended
    client.on_connect_fail = lambda *_: log.warning("trigger %s: no broker answers", where)
    client.on_message = lambda *_: wake()
    client.reconnect_delay_set(1, 60)
    client.connect_async(parts.hostname, parts.port or PORTS[parts.scheme])
    client.loop_start()
    try:
        yield
    finally:
        client.disconnect()
        client.loop_stop()
