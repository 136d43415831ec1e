"""Break everything around a live stream, and count messages lost, repeated or out of order.

Usage: python -m ci.stream_trial [--messages 100000] [--at-least-once]

A broker, a Dask scheduler, three workers and the driver are separate processes; the stream and the
sender each connect to the broker through a proxy. While messages arrive at a steady rate, workers
are killed (kill -9) five times, the broker is ended and started again, and later stopped for 5 s
(SIGSTOP), a worker is stopped for 20 s and woken, the proxies reset all connections again and again
for 5 s (twice), the driver is killed and started again (twice), and the model is swapped twice.
Then the trial waits as long as offsets are committed, and a reader of committed messages compares
answers and dead letters with the messages in the broker. The trial prints JSON with the counts; it
fails when messages were lost, late or out of order, or repeated without --at-least-once.

The broker (noida-db 0.2.3) forgets transactions and producers when it ends. Started again, it
confirms commits whose answers it has dropped, or hides a partition's answers behind a transaction
that nobody can end. So it is ended after all messages are answered and with the driver killed, and
is away until the sessions have ended.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ci.kafka import Broker, Proxy, answers_of, make_topics, produce, read_all

PARTITIONS, WORKERS = 8, 3
POISON_EVERY = 1000
#: Seconds in which the stream has to commit something; machines may be busy.
PATIENCE = 300

#: Partition and offset of each message by its number.
Places = dict[int, tuple[int, int]]


class Machines:
    """Scheduler, workers and driver of the trial.

    Parameters
    ----------
    folder : path
        For models and logs.
    servers : str
        Address of the broker.
    exactly_once : bool
    """

    def __init__(self, folder: Path, servers: str, exactly_once: bool) -> None:
        self.folder, self.servers, self.exactly_once = folder, servers, exactly_once
        self._file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._python(
            "scheduler", "distributed.cli.dask_scheduler", "--scheduler-file", str(self._file),
            "--port", "0", "--no-dashboard", "--host", "127.0.0.1",
        )  # fmt: skip
        self.driver: subprocess.Popen[bytes] | None = None

    def _python(self, name: str, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", module, *arguments], stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def add_worker(self) -> None:
        """Start a worker."""
        self.workers.append(
            self._python(
                "workers", "distributed.cli.dask_worker", "--scheduler-file", str(self._file),
                "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1",
                "--local-directory", str(self.folder),
            )
        )  # fmt: skip

    def kill_worker(self) -> None:
        """Kill -9 the oldest worker, and start another."""
        victim = self.workers.pop(0)
        victim.kill()
        victim.wait()
        self.add_worker()

    def start_driver(self) -> None:
        """Start the driver."""
        once = ["--exactly-once"] if self.exactly_once else []
        self.driver = self._python(
            "driver", "daskdl.cli", "stream", "--brokers", self.servers, "--in",
            "calls", "--out", "routes", "--model", str(self.folder / "first.safetensors"),
            "--cluster", str(self._file), "--control", "control", "--group", "trial", *once,
        )  # fmt: skip

    def kill_driver(self) -> None:
        """Kill -9 the driver."""
        assert self.driver is not None
        self.driver.kill()
        self.driver.wait()

    def restart_driver(self) -> None:
        """Kill -9 the driver, and start another."""
        self.kill_driver()
        self.start_driver()

    def end(self) -> int | None:
        """End the driver by SIGTERM and everything else; return the driver's exit code."""
        code = None
        if self.driver is not None:
            self.driver.terminate()
            code = self.driver.wait(120)
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()
        return code


def send(servers: str, numbers: range, rate: float, acknowledged: Places) -> None:
    """Produce numbered texts at a rate, and note the places of acknowledged ones."""

    def delivered(error: Any, message: Any) -> None:
        if error is None:
            acknowledged[number_of(message)] = message.partition(), message.offset()

    draw = random.Random(0)
    values = (
        b"%d w%d w%d w%d " % (i, *(draw.randrange(20) for _ in range(3)))
        + (b"\xff" if i % POISON_EVERY == 0 else b"")
        for i in numbers
    )
    settings = {"acks": "all", "log_level": 2}
    produce(servers, "calls", PARTITIONS, values, rate, delivered, **settings)


def number_of(message: Any) -> int:
    """Return the number at the beginning of a message."""
    return int(message.value().split(b" ", 1)[0])


def order_model(servers: str, path: Path) -> None:
    """Request another model over the control topic."""
    produce(servers, "control", 1, [json.dumps({"model": str(path)}).encode()], log_level=2)


def progress(servers: str) -> tuple[list[int], list[int]]:
    """Return the group's committed offset of each partition, and the offset behind its end."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "trial", "log_level": 2})
    try:
        places = [TopicPartition("calls", p) for p in range(PARTITIONS)]
        done = [max(0, it.offset) for it in consumer.committed(places, timeout=20)]
        return done, [consumer.get_watermark_offsets(p, timeout=60)[1] for p in places]
    finally:
        consumer.close()


def all_committed(servers: str) -> bool:
    """Wait until all messages are committed; return False when there is no progress any more."""
    before, limit = -1, math.inf
    while True:
        done, ends = map(sum, progress(servers))
        if done >= ends or time.monotonic() > limit:
            return done >= ends
        if done != before:
            print(f"{done} of {ends} committed", file=sys.stderr, flush=True)
            before, limit = done, time.monotonic() + PATIENCE
        time.sleep(0.5)


def counted(servers: str, acknowledged: Places) -> dict[str, Any]:
    """Compare the answers with the messages in the broker, and return counts.

    A message whose acknowledgement was cut off may be sent again, and so be stored twice. One
    without an answer is lost if its offset is committed, and late if it is not.
    """
    done, _ = progress(servers)  # before the topics are read, since the stream goes on
    calls, routes = read_all(servers, "calls"), read_all(servers, "routes")
    dead = read_all(servers, "routes.dead-letter")
    there = {(p, m.offset()): number_of(m) for p, messages in calls.items() for m in messages}
    sent = set(there.values())
    answered: Counter[tuple[int, int]] = Counter()
    disorder = 0
    for messages in routes, dead:
        for partition, each in messages.items():
            offsets = []
            for message in each:
                _, source, offset = message.key().decode().split("/")
                assert int(source) == partition
                offsets.append(int(offset))
            seen: set[int] = set()
            highest = -1
            for offset in offsets:  # a repeated message is not out of order
                disorder += offset < highest and offset not in seen
                seen.add(offset)
                highest = max(highest, offset)
            answered.update((partition, offset) for offset in offsets)
    unanswered = there.keys() - answered.keys()
    lost = sorted((p, offset) for p, offset in unanswered if offset < done[p])
    shas = Counter(a["sha256"] for each in routes.values() for a in answers_of(each))
    return {
        "acknowledged": len(acknowledged),
        "lost_by_the_broker": len(acknowledged.keys() - sent),
        "messages": len(there),
        "of_these_sent_again": len(there) - len(sent),
        "answers": sum(map(len, routes.values())),
        "dead_letters": sum(map(len, dead.values())),
        "lost": len(lost),
        "lost_places": lost[:5],
        "late": len(unanswered) - len(lost),
        "twice": sum(n - 1 for n in answered.values()),
        "out_of_order": disorder,
        "answers_by_model": sorted(shas.values(), reverse=True),
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the trial."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=150, help="for which messages arrive")
    parser.add_argument("--at-least-once", action="store_true")
    args = parser.parse_args(arguments)
    from tests.daskdl.stream.models import text_model

    with tempfile.TemporaryDirectory(prefix="stream-trial-") as name:
        folder = Path(name)
        (folder / "kafka").mkdir()
        broker = Broker(folder / "kafka")
        broker.start()
        between, sending = Proxy(broker.port), Proxy(broker.port)
        for seed, model in enumerate(["first", "second", "third"]):
            text_model(folder, model, seed)
        make_topics(between.servers, PARTITIONS, "calls", "routes", "routes.dead-letter")
        make_topics(between.servers, 1, "control")
        machines = Machines(folder, between.servers, not args.at_least_once)
        try:
            result = trial(broker, between, sending, machines, args.messages, args.seconds)
        except BaseException:
            for log in folder.glob("*.log"):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
            raise
        finally:
            broker.signal(signal.SIGCONT)
            code = machines.end()
            between.close()
            sending.close()
            broker.end()
        driver = (folder / "driver.log").read_text()
    result["driver_exit_code"] = code
    result["driver"] = json.loads(driver[driver.rindex("\n{\n") if "\n{\n" in driver else 0 :])
    print(json.dumps(result, indent=2))
    good = not (result["lost"] or result["late"] or result["out_of_order"] or code)
    return 0 if good and (args.at_least_once or not result["twice"]) else 1


def trial(
    broker: Broker, between: Proxy, sending: Proxy, machines: Machines, messages: int,
    seconds: float,
) -> dict[str, Any]:  # fmt: skip
    """Send messages, disturb the machines, wait for the rest, and return the counts."""
    servers = between.servers
    for _ in range(WORKERS):
        machines.add_worker()
    machines.start_driver()
    acknowledged: Places = {}
    send(sending.servers, range(8), math.inf, acknowledged)
    assert all_committed(servers), "the stream does not begin"
    sender = threading.Thread(
        target=send, args=(sending.servers, range(8, messages), messages / seconds, acknowledged)
    )
    sender.start()
    began = time.monotonic()

    def broker_again() -> None:
        sending.refuses = True
        sending.drop()
        time.sleep(0.5)
        all_committed(servers)
        machines.kill_driver()
        broker.end()
        time.sleep(8)  # longer than the sessions' lease
        broker.start()
        machines.start_driver()
        sending.refuses = False

    def stopped() -> None:
        broker.signal(signal.SIGSTOP)
        time.sleep(5)
        broker.signal(signal.SIGCONT)

    def cut() -> None:
        until, draw = time.monotonic() + 5, random.Random(1)
        while time.monotonic() < until:
            between.drop()
            sending.drop()
            time.sleep(draw.uniform(0.05, 1))

    def zombie() -> None:
        process = machines.workers[-1]
        process.send_signal(signal.SIGSTOP)
        threading.Timer(20, process.send_signal, (signal.SIGCONT,)).start()

    def swap(name: str) -> Callable[[], None]:
        return lambda: order_model(servers, machines.folder / f"{name}.safetensors")

    steps: list[tuple[str, Callable[[], None]]] = [
        ("a worker killed", machines.kill_worker),
        ("model swapped", swap("second")),
        ("a worker killed", machines.kill_worker),
        ("connections cut for 5 s", cut),
        ("broker ended, driver killed, both started", broker_again),
        ("a worker killed", machines.kill_worker),
        ("a worker stopped for 20 s", zombie),
        ("a worker killed", machines.kill_worker),
        ("driver killed", machines.restart_driver),
        ("broker stopped for 5 s", stopped),
        ("model swapped", swap("third")),
        ("connections cut for 5 s", cut),
        ("a worker killed", machines.kill_worker),
    ]
    events = []
    for i, (title, step) in enumerate(steps, 1):
        time.sleep(max(0.0, began + seconds * i / (len(steps) + 1) - time.monotonic()))
        events.append(f"{time.monotonic() - began:.0f} s, {sum(progress(servers)[0])}: {title}")
        print(events[-1], file=sys.stderr, flush=True)
        step()
    sender.join()
    all_committed(servers)
    counts = counted(servers, acknowledged)
    return {**counts, "connections_cut": between.dropped + sending.dropped, "events": events}


if __name__ == "__main__":
    sys.exit(main())
