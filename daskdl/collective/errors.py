"""Exceptions of collectives."""

from __future__ import annotations


class BrokenGangError(ConnectionError):
    """An attempt that cannot go on, since a rank is lost, late or has failed."""
