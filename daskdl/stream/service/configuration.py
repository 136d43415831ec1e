"""Configuration of ``daskdl stream``: options and a YAML file; options win."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_type_hints

import yaml

from daskdl.errors import SettingsError
from daskdl.stream.worker.messages import Routes

#: What is written in YAML for a type, and what it is read as.
KINDS: list[tuple[Any, str, tuple[type, ...]]] = [
    (bool, "true or false", (bool,)),
    (int, "a whole number of at least 1", (int,)),
    (float, "a number", (int, float)),
    (Mapping, "names and values", (Mapping,)),
    (Any, "a text", (str,)),
]


@dataclass
class Configuration:
    """Settings of a stream from Kafka to Kafka; options of the same names explain them.

    Only YAML has ``silence`` and ``stop_within`` (s), see :class:`daskdl.stream.Stream`;
    ``routes``, topics by label; and ``unsure``: a probability ``below`` and the ``topic`` for
    answers below it. YAML calls the messages' ``topics`` ``in``.
    """

    brokers: str = ""
    topics: str = ""
    out: str = ""
    model: str = ""
    dead_letter: str | None = None
    group: str = "daskdl"
    cluster: str = "local"
    workers: int | None = None
    exactly_once: bool = False
    echo: bool = False
    create_topics: bool = False
    watch: bool = False
    until_end: bool = False
    schema: str | None = None
    start: Literal["earliest", "latest"] = "earliest"
    control: str | None = None
    batch: int = 1024
    silence: float = 6.0
    stop_within: float = 30.0
    seconds: float | None = None
    kafka: Mapping[str, Any] = field(default_factory=dict, repr=False)
    routes: Mapping[str, str] = field(default_factory=dict)
    unsure: Mapping[str, Any] = field(default_factory=dict)

    def routing(self) -> Routes:
        """Return the topics of answers; raise SettingsError if ``unsure`` is not complete."""
        dead = self.dead_letter or f"{self.out}.dead-letter"
        if not self.unsure:
            return Routes(self.out, dead, self.routes)
        try:
            below, topic = float(self.unsure["below"]), str(self.unsure["topic"])
        except (KeyError, TypeError, ValueError) as error:
            raise SettingsError(
                "unsure: expected a probability, below, and a topic, found "
                f"{dict(self.unsure)!r}; write both"
            ) from error
        return Routes(self.out, dead, self.routes, below, topic)


def _check(where: str, value: Any, hint: Any) -> None:
    """Raise a SettingsError if a value of the file does not have the type of a hint."""
    kind = getattr(hint, "__origin__", hint)
    of_it = {kind, *getattr(hint, "__args__", ())} if kind is not Mapping else {Mapping}
    wanted, types = next((w, t) for k, w, t in KINDS if k in of_it or k is Any)
    fits = isinstance(value, types) and (bool in types or not isinstance(value, bool))
    if fits and (types != (int,) or value > 0):
        return
    # In the place of a mapping may stand a password.
    described = (
        type(value).__name__ if isinstance(value, dict | list) or Mapping in types else value
    )
    advice = "put it into quotes" if str in types else "see docs/stream.md"
    raise SettingsError(f"{where}: expected {wanted}, found {described!r}; {advice}")


def configured(path: Path | None, options: Mapping[str, Any]) -> Configuration:
    """Return the configuration of a YAML file and of the options that are not None.

    Raises SettingsError for a file that is not a mapping, and for an unknown or a missing name.
    """
    of_file: dict[str, Any] = {}
    if path is not None:
        try:
            read = yaml.safe_load(path.read_text("utf-8"))
        except (OSError, yaml.YAMLError) as error:
            raise SettingsError(
                f"{path}: expected a YAML file, found {type(error).__name__}; see the path and "
                "the file's content"
            ) from None  # whose text may have a password in it
        if not isinstance(read, dict):
            raise SettingsError(f"{path}: expected names and values, found {type(read).__name__}")
        of_file = {str(name).replace("-", "_"): value for name, value in read.items()}
        if "in" in of_file:
            of_file["topics"] = of_file.pop("in")
    names = [f.name for f in fields(Configuration)]
    for name in of_file:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            raise SettingsError(
                f"{path}, {name}: expected one of {', '.join(names)}, found {name}"
                + (f"; did you mean {near[0]}?" if near else "")
            )
    hints = get_type_hints(Configuration)
    of_file = {name: value for name, value in of_file.items() if value is not None}
    for name, value in of_file.items():
        _check(f"{path}, {name}", value, hints[name])
    for label, topic in of_file.get("routes", {}).items():
        _check(f"{path}, routes, {label}", topic, str)
    kafka = {**of_file.pop("kafka", {}), **options.get("kafka", {})}
    of_options = {name: value for name, value in options.items() if value is not None}
    configuration = Configuration(**{**of_file, **of_options, "kafka": kafka})
    shown = {"brokers": "--brokers", "topics": "--in", "out": "--out", "model": "--model"}
    for name, option in shown.items():
        if not getattr(configuration, name):
            raise SettingsError(
                f"stream: expected {option}, found none; give it, or write it in "
                "the file of --config"
            )
    return configuration
