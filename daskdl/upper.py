"""Rooms above the layers whose functions a model's methods call.

Layers import nothing of them: the package hands them down, each to be loaded at its first use.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

#: What loads a room, by its use; ``daskdl/__init__.py`` fills it.
UPPER: dict[str, Callable[[], ModuleType]] = {}
