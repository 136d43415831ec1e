"""Pillow, which decodes and draws: the extra ``images`` brings it."""

from __future__ import annotations

from daskdl.errors import MissingExtraError


def need_pillow(what: str) -> None:
    """Raise a MissingExtraError, which begins with ``what``, unless Pillow is installed."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"{what}: expected Pillow, which decodes and draws images, found it not installed; "
            "pip install 'daskdl[images]'"
        ) from error
