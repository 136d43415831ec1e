"""Times in UTC: parsed from people's texts, and written for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError


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
