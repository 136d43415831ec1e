"""Runtime settings: ``dask.config`` under ``daskdl``, described in daskdl.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import yaml
from dask.utils import parse_bytes, parse_timedelta

from daskdl.errors import SettingsError

with (Path(__file__).with_name("daskdl.yaml")).open() as _file:
    _defaults = yaml.safe_load(_file)
dask.config.update_defaults(_defaults)


def seconds(name: str) -> float:
    """Return the duration set under ``daskdl.<name>``."""
    value = dask.config.get(f"daskdl.{name}")
    try:
        return float(parse_timedelta(value, default="s"))
    except Exception as error:  # parse_timedelta raises many kinds
        raise _wrong(name, "a duration such as '5 minutes'", value) from error


def n_bytes(name: str) -> int:
    """Return the bytes set under ``daskdl.<name>``; 0 for null."""
    value = dask.config.get(f"daskdl.{name}")
    try:
        return 0 if value is None else int(parse_bytes(value))
    except Exception as error:
        raise _wrong(name, "bytes such as '4 MiB'", value) from error


def setting(name: str) -> Any:
    """Return the number set under ``daskdl.<name>``; None if that is the default."""
    value = dask.config.get(f"daskdl.{name}")
    if value is None and _defaults["daskdl"][name] is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _wrong(name, "a whole number of at least 1", value)
    return value


def _wrong(name: str, expected: str, value: Any) -> SettingsError:
    return SettingsError(
        f"dask.config daskdl.{name}: expected {expected}, found {value!r}; set it in Dask's "
        "configuration"
    )
