"""Ends of a worker's session that are no mistakes of the user."""

from __future__ import annotations


class RolledBackError(Exception):
    """A transaction failed: all that was written since the last commit has to be read again."""


class FencedError(Exception):
    """Another has taken this writer's slot; nothing can be committed any more."""
