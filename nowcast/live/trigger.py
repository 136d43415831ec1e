"""Triggers: a new file, or a message of an MQTT broker, makes a watch look at once."""

from __future__ import annotations

import glob
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from daskdl.errors import SettingsError, needed
from nowcast.ingest.remote import is_remote

log = logging.getLogger("nowcast.watch")

#: Default ports without and with TLS.
PORTS = {"mqtt": 1883, "mqtts": 8883}


@contextmanager
def arriving(source: str, out: Path, wake: Callable[[], object]) -> Iterator[None]:
    """During a block, call a function when a file of a folder arrives or changes, by inotify.

    For an address, or without watchfiles, it does nothing: the watch then looks at its interval, as
    for files that another machine writes to a network file system.
    """
    parents = Path(source).parents if glob.has_magic(source) else ()
    folder = next((path.resolve() for path in (Path(source), *parents) if path.is_dir()), None)
    try:
        from watchfiles import Change, watch
    except ImportError:
        folder = None
    if folder is None or is_remote(source):
        yield
        return
    written, ended = out.resolve(), threading.Event()

    def counts(change: Change, name: str) -> bool:
        path = Path(name)
        shown = not path.name.startswith(".") and not path.is_relative_to(written)
        return shown and change != Change.deleted

    def listen() -> None:
        try:
            for _ in watch(folder, watch_filter=counts, stop_event=ended, step=200):
                wake()
        except (OSError, RuntimeError) as error:  # such as the kernel's limits
            log.warning("%s: no word of new files (%s); looked for at --interval", source, error)

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def triggered(address: str | None, wake: Callable[[], object]) -> Iterator[None]:
    """During a block, call a function at each message; do nothing without an address.

    A lost broker is tried again; meanwhile the watch looks at its interval.

    - ``address``: ``mqtt://[user:password@]host[:port]/topic``, or ``mqtts`` for TLS; the topic may
      have MQTT's wildcards, whose ``#`` is written as it is.
    - raises SettingsError if the address is not one.
    - raises MissingExtraError when paho-mqtt is not installed.
    """
    if address is None:
        yield
        return
    # "#" is a wildcard here, not the start of a fragment.
    parts = urlsplit(address.replace("#", "%23"))
    topic = unquote(parts.path.lstrip("/"))
    if parts.scheme not in PORTS or not parts.hostname or not topic:
        raise SettingsError(
            f"--trigger: expected mqtt://host/topic or mqtts://host/topic, found {address!r}"
        )
    with needed("--trigger needs paho-mqtt ({error}); pip install 'daskdl[nowcast,mqtt]'"):
        from paho.mqtt.client import CallbackAPIVersion, Client
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
