"""Dask's tasks and graphs: checked in dask 2025.1.0 and 2026.8.0.

``dask._task_spec`` is private by its name; Dask's own collections use it since 2024.12.
"""

from dask._task_spec import Alias, Task, TaskRef
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

__all__ = ["Alias", "HighLevelGraph", "MaterializedLayer", "Task", "TaskRef"]
