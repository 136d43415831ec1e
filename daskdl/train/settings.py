"""Runtime knobs of training: ``dask.config`` under ``daskdl``, described in daskdl.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import yaml
from dask.utils import parse_timedelta

from daskdl.errors import SettingsError

with (Path(__file__).with_name("daskdl.yaml")).open() as _file:
    _defaults = yaml.safe_load(_file)
dask.config.update_defaults(_defaults)


def seconds(name: str) -> float:
    """Return the duration set under ``daskdl.<name>``."""
    value = dask.config.get(f"daskdl.{name}")
    try:
        return float(parse_timedelta(value, default="s"))
    except (ValueError, TypeError, KeyError) as error:
        raise SettingsError(
            f"dask.config daskdl.{name}: expected a duration such as '5 minutes', found {value!r}"
        ) from error


def setting(name: str) -> Any:
    """Return the value set under ``daskdl.<name>``."""
    return dask.config.get(f"daskdl.{name}")
