"""Sources: recipes of samples in files, tables, databases and Dask's collections."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "sql":  # the one whose functions are called by its name
        return importlib.import_module("daskdl.data.sources.sql")
    raise AttributeError(f"module 'daskdl.data.sources' has no attribute {name!r}")
