"""Texts that people write: settings in YAML, with errors as one sentence, and times in UTC."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError

if TYPE_CHECKING:
    from pydantic import ValidationError

#: The project's words for pydantic's types of errors; other messages stay pydantic's.
EXPECTED = {
    "missing": "a value, found none",
    "too_short": "one at least",
    "path_type": "a path",
    "string_type": "a text",
    "list_type": "a list such as [a, b]",
    **dict.fromkeys(("dict_type", "model_type"), "names with values below it"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
}


def wrong_setting(before: str, error: ValidationError, behind: str = "") -> SettingsError:
    """Return the first error: the setting's place, what was expected, what was found."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or "settings"
    message = f"expected {EXPECTED.get(first['type'], '')}"
    if first["type"] not in EXPECTED:
        message = str(first["msg"]).removeprefix("Value error, ").removeprefix(f"{place}: ")
        message = message.replace("Input should be", "expected", 1)
    value = "" if ", found " in message else f", found {first['input']!r}"
    return SettingsError(f"{before}{place}: {message}{value}{behind}")


def assigned(option: str, items: Iterable[str]) -> dict[str, Any]:
    """Return the settings of texts ``NAME=VALUE``, with values in YAML; an error names ``option``.

    Examples
    --------
    >>> assigned("--storage", ["anon=true", "client_kwargs={region_name: eu-west-1}"])
    {'anon': True, 'client_kwargs': {'region_name': 'eu-west-1'}}
    """
    import yaml

    values: dict[str, Any] = {}
    for item in items:
        name, sign, value = item.partition("=")
        try:
            if not sign or not name.strip().isidentifier():
                raise ValueError
            values[name.strip()] = yaml.safe_load(value)
        except (ValueError, yaml.YAMLError) as error:
            raise SettingsError(
                f"{option}: expected NAME=VALUE, with a value such as true, 10 or [8, 8], found "
                f"{item!r}"
            ) from error
    return values


def load_yaml(path: Path, advice: str = "") -> dict[str, Any]:
    """Return the values of a YAML file, unchecked.

    Raises SettingsError, which ends with ``advice``, if it cannot be read or has no names.
    """
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(
            f"{path}: expected settings in YAML, found: {reason}{advice}"
        ) from error
    if not isinstance(values, dict):
        raise SettingsError(f"{path}: expected lines 'name: value', found {values!r}{advice}")
    return values


def parse_utc(option: str, text: str, *, others: str = "") -> np.datetime64:
    """Return the time in UTC, datetime64[us], of ISO 8601 text, with a zone or without.

    Raises SettingsError if it is not a time; ``option`` and ``others`` are parts of its sentence.

    Examples
    --------
    >>> parse_utc("--at", "2020-02-07T13:20Z")
    np.datetime64('2020-02-07T13:20:00.000000')
    """
    # numpy's own parser accepts "now" and "" as times, and distant times overflow.
    try:
        time = datetime.fromisoformat(text.strip())
        if time.tzinfo is not None:
            time = time.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise SettingsError(
            f"{option}: expected a time such as 2020-02-07T13:20 (UTC){others}, found {text!r}"
        ) from error
    return np.datetime64(time, "us")


def utc_text(time: np.datetime64 | NDArray[Any]) -> str:
    """Return a time (a scalar) as ISO 8601, with seconds unless they are 0.

    Examples
    --------
    >>> utc_text(np.datetime64("2020-02-07T13:20:00", "ns"))
    '2020-02-07T13:20'
    """
    whole_minute = time.astype("datetime64[s]").astype("int64") % 60 == 0
    return str(time.astype("datetime64[m]" if whole_minute else "datetime64[s]"))
