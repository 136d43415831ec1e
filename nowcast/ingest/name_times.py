"""Times in names of radar files, and the folders of a range of times."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

import numpy as np

from daskdl.errors import SettingsError

#: Forms of times in names, tried in this order: what archives of radar files use.
FORMS = (
    # 20260520_000332, 20260520T0003, 202605200000, 2026-05-20_00-03, with milliseconds or not
    (r"((?:19|20)\d\d)[-_]?(\d\d)[-_]?(\d\d)[-_T]?(\d\d)[-_:]?(\d\d)(?:[-_:]?(\d\d)(?:\d{3})?)?",
     "%Y %m %d %H %M %S"),
    (r"(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)", "%y %m %d %H %M"),  # 2605200050, of the DWD
    (r"(\d\d)(\d{3})(\d\d)(\d\d)", "%y %j %H %M"),  # 261400050, of MeteoSwiss
)  # fmt: skip
PATTERNS = [(re.compile(rf"(?<!\d){form}(?!\d)"), fields) for form, fields in FORMS]
FIELD = re.compile(r"%(.)")


def name_time(name: str) -> np.datetime64 | None:
    """Return the time in a file's name, in seconds and UTC; None without one.

    Examples
    --------
    >>> str(name_time("s3://noaa-nexrad-level2/2026/05/20/KTLX/KTLX20260520_000332_V06"))
    '2026-05-20T00:03:32'
    >>> str(name_time("raa01-rw_10000-2605200050-dwd---bin"))
    '2026-05-20T00:50:00'
    """
    last = name.rstrip("/").rpartition("/")[2]
    for pattern, fields in PATTERNS:
        for match in pattern.finditer(last):
            digits = [part for part in match.groups() if part is not None]
            form = " ".join(fields.split()[: len(digits)])
            try:
                time = datetime.strptime(" ".join(digits), form)
            except ValueError:
                continue
            return np.datetime64(time, "s")
    return None


def spanned(pattern: str, first: np.datetime64 | None, last: np.datetime64 | None) -> Iterator[str]:
    """Yield a pattern with its ``%Y``, ``%m``, ``%d``, ``%j``, ``%y`` and ``%H`` filled in.

    It yields the folders between two times, inclusive; a pattern without fields unchanged. Raises
    SettingsError if there are fields and no times, or another field.

    Examples
    --------
    >>> times = np.datetime64("2026-05-20T23"), np.datetime64("2026-05-21T01")
    >>> list(spanned("s3://bucket/%Y/%m/%d/KTLX/*", *times))
    ['s3://bucket/2026/05/20/KTLX/*', 's3://bucket/2026/05/21/KTLX/*']
    """
    fields = set(FIELD.findall(pattern))
    if not fields & set("YmdjyHMS"):  # an address may have %20
        yield pattern
        return
    if not fields <= set("YmdjyH"):
        raise SettingsError(
            f"{pattern}: expected the fields %Y %m %d %j %y %H, found "
            f"%{min(fields - set('YmdjyH'))}; write * for what changes within an hour"
        )
    if first is None or last is None:
        raise SettingsError(
            f"{pattern}: the address has fields of times; give the times with --from and --to"
        )
    unit = "h" if "H" in fields else "D"
    start, end = (time.astype(f"datetime64[{unit}]") for time in (first, last))
    times = np.arange(start, end + 1).astype("datetime64[s]").tolist()
    yield from dict.fromkeys(time.strftime(pattern) for time in times)
