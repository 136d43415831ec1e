"""Packages above the layers whose functions a model's methods call.

Layers do not import them: ``daskdl/__init__.py`` provides their imports, run on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

#: Functions that import a package, by its use; ``daskdl/__init__.py`` fills it.
UPPER: dict[str, Callable[[], ModuleType]] = {}
