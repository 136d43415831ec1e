"""A file or an MQTT message wakes a watch at once; it waits for a broker that is away."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import threading
from contextlib import ExitStack, contextmanager

import pytest

from daskdl.errors import SettingsError
from nowcast.commands.watch import _until_ended
from nowcast.live.office import Office
from nowcast.live.trigger import arriving, triggered

BROKER = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
publish = pytest.importorskip("paho.mqtt.publish")


@contextmanager
def broker(folder, port):
    settings = folder / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    process = subprocess.Popen([BROKER, "-c", str(settings)], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@pytest.mark.slow
@pytest.mark.skipif(BROKER is None, reason="no mosquitto here")
def test_a_message_wakes_and_the_broker_may_come_later(tmp_path, caplog):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done, calls = threading.Event(), []

    def send():
        while not done.wait(0.1):  # until the watch listens
            publish.single("radar/uccle/scan", "new", qos=1, hostname="127.0.0.1", port=port)

    def cycle():
        calls.append(1)
        if len(calls) == 1:
            stack.enter_context(broker(tmp_path, port))  # not there when the watch began
            sender.start()
        elif len(calls) == 3:
            signal.raise_signal(signal.SIGTERM)

    sender = threading.Thread(target=send)
    with ExitStack() as stack:
        address = f"mqtt://127.0.0.1:{port}/radar/+/#"
        nowhere = str(tmp_path / "none")
        _until_ended(cycle, Office(source=nowhere, out=tmp_path, interval=600, trigger=address))
        done.set()
        sender.join()
    assert len(calls) == 3  # at once, and a second later


@pytest.mark.parametrize("pattern", ["", "*.h5"])
def test_a_whole_file_wakes_and_what_the_watch_writes_does_not(tmp_path, pattern):
    pytest.importorskip("watchfiles")
    out, hidden, woken = tmp_path / "out", tmp_path / ".part.h5", threading.Event()
    out.mkdir()
    with arriving(str(tmp_path / pattern), out, woken.set):
        while not woken.wait(0.1):  # until it listens
            (tmp_path / "first.h5").write_text("a")
        while woken.wait(0.5):  # by the last of these
            woken.clear()
        hidden.write_text("a")
        (out / "latest.json").write_text("a")
        assert not woken.wait(1)
        hidden.rename(tmp_path / "next.h5")
        assert woken.wait(60)


@pytest.mark.parametrize("address", ["http://host/topic", "mqtt://host", "mqtt:///topic"])
def test_a_wrong_address_is_refused(address):
    with (
        pytest.raises(SettingsError, match=r"expected mqtt://host/topic .*, found"),
        triggered(address, print),
    ):
        pass
