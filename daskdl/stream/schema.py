"""Schemas: from the bytes of a message to what the model is asked about."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

from daskdl.errors import DataError, SettingsError

#: From the bytes of a message to a text or to an array of numbers.
Decode = Callable[[bytes], Any]


class Text:
    """The whole message is a text in UTF-8."""

    def __call__(self, value: bytes) -> str:
        """Return the text of a message."""
        return value.decode()


class Field:
    """The message is a JSON object, and one of its fields is asked about.

    Parameters
    ----------
    name : str
        Of the field; inner ones with dots, ``call.text``.
    """

    def __init__(self, name: str) -> None:
        self.name, self._path = name, name.split(".")

    def __call__(self, value: bytes) -> Any:
        """Return the field of a message.

        Raises
        ------
        DataError
            When there is none.
        """
        found = json.loads(value)
        for step in self._path:
            if not isinstance(found, dict) or step not in found:
                raise DataError(f"expected a JSON object with the field {self.name}, found none")
            found = found[step]
        return found


class Numbers:
    """The message is a JSON list of numbers, nested for more axes."""

    def __call__(self, value: bytes) -> Any:
        """Return the list of a message."""
        return json.loads(value)


def schema(spec: str | Decode) -> Decode:
    """Return the schema of a name.

    Parameters
    ----------
    spec : str or callable
        ``text``, ``numbers``, ``json:<field>``, ``<module>:<function>``, or the function itself.

    Raises
    ------
    SettingsError
        When it is none of these.
    """
    if callable(spec):
        return spec
    kind, _, name = spec.partition(":")
    if kind in ("text", "numbers") and not name:
        return Text() if kind == "text" else Numbers()
    if kind == "json" and name:
        return Field(name)
    if name:
        try:
            found = getattr(importlib.import_module(kind), name)
        except (ImportError, AttributeError) as error:
            raise SettingsError(
                f"schema: expected a function that can be imported, found {spec!r} ({error}); "
                "see the name and PYTHONPATH, also of the workers"
            ) from error
        if callable(found):
            return found
    raise SettingsError(
        "schema: expected text, numbers, json:<field> or <module>:<function>, found " + repr(spec)
    )
