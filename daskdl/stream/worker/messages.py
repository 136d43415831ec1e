"""Messages: from their bytes to the model's input, and the topics of answers."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from daskdl.errors import DataError, SettingsError

#: From the bytes of a message to a text or to an array of numbers.
Decode = Callable[[bytes], Any]


def field_of(name: str, value: bytes) -> Any:
    """Return a field of a JSON object, inner ones with dots (``call.text``), or raise DataError."""
    content = json.loads(value)
    for step in name.split("."):
        if not isinstance(content, dict) or step not in content:
            raise DataError(f"expected a JSON object with the field {name}, found none")
        content = content[step]
    return content


def schema(spec: str | Decode) -> Decode:
    """Return the schema of a name.

    Parameters
    ----------
    spec : str or callable
        ``text``, the whole message in UTF-8; ``numbers``, a JSON list, nested for more axes;
        ``json:<field>``, ``<module>:<function>``, or the function itself.

    Raises
    ------
    SettingsError
        For anything else.
    """
    if callable(spec):
        return spec
    kind, _, name = spec.partition(":")
    if kind in ("text", "numbers") and not name:
        return bytes.decode if kind == "text" else json.loads
    if kind == "json" and name:
        return partial(field_of, name)
    if name:
        try:
            fields = getattr(importlib.import_module(kind), name)
        except (ImportError, AttributeError) as error:
            raise SettingsError(
                f"schema: expected a function that can be imported, found {spec!r} ({error}); "
                "see the name and PYTHONPATH, also of the workers"
            ) from error
        if callable(fields):
            return fields
    raise SettingsError(
        "schema: expected text, numbers, json:<field> or <module>:<function>, found " + repr(spec)
    )


@dataclass(frozen=True)
class Routes:
    """A rule that gives each answer its topic.

    Parameters
    ----------
    topic : str
        Topic of other answers.
    dead_letters : str
        Topic of messages that cannot be decoded or predicted.
    by_label : mapping of str to str
        Topics of classes.
    below : float
        Answers of a lower probability go to ``unsure``.
    unsure : str, optional

    Examples
    --------
    >>> routes = Routes("other", "bad", {"billing": "money"}, below=0.5, unsure="people")
    >>> routes.of("billing", 0.9), routes.of("billing", 0.3), routes.of("greeting", 0.9)
    ('money', 'people', 'other')
    """

    topic: str
    dead_letters: str
    by_label: Mapping[str, str] = field(default_factory=dict)
    below: float = 0.0
    unsure: str | None = None

    def of(self, label: str, probability: float) -> str:
        """Return the topic of an answer."""
        if self.unsure is not None and probability < self.below:
            return self.unsure
        return self.by_label.get(label, self.topic)

    def topics(self) -> list[str]:
        """Return all topics, each once."""
        unsure = [] if self.unsure is None else [self.unsure]
        return list(
            dict.fromkeys([self.topic, self.dead_letters, *self.by_label.values(), *unsure])
        )
