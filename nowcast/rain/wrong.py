"""Wrong settings, which pydantic finds, in one sentence of the project's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daskdl.errors import SettingsError

if TYPE_CHECKING:
    from pydantic import ValidationError


def wrong_setting(before: str, error: ValidationError, behind: str = "") -> SettingsError:
    """Return the first of the errors: the setting's place, what was expected, what was found.

    Examples
    --------
    >>> from pydantic import BaseModel, ValidationError
    >>> class Sizes(BaseModel):
    ...     cells: int
    >>> try:
    ...     Sizes(cells="many")
    ... except ValidationError as error:
    ...     print(wrong_setting("grid, ", error))
    grid, cells: expected a valid integer, unable to parse string as an integer, found 'many'
    """
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or "settings"
    message = str(first["msg"]).removeprefix("Value error, ").removeprefix(f"{place}: ")
    message = message.replace("Input should be", "expected", 1)
    value = "" if ", found " in message else f", found {first['input']!r}"
    return SettingsError(f"{before}{place}: {message}{value}{behind}")
