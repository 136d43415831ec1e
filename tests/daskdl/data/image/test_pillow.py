"""Without the extra `images` what needs Pillow says so, and the rest works."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from daskdl import plot
from daskdl.data.image.decode import _decode
from daskdl.errors import MissingExtraError


def test_what_decodes_or_draws_names_the_extra(monkeypatch):
    for name in ("PIL", "PIL.Image", "PIL.ImageDraw", "PIL.ImageFont", "PIL.ImageOps"):
        monkeypatch.setitem(sys.modules, name, None)
    said = r"expected Pillow, .* found it not installed; pip install 'daskdl\[images\]'"
    picture = np.zeros((4, 4, 3), np.float32)
    with pytest.raises(MissingExtraError, match=f"^a.png: {said}"):
        _decode(b"", "RGB", None, True, "a.png")
    with pytest.raises(MissingExtraError, match=f"^plot.boxes: {said}"):
        plot.boxes(picture, [[0, 0, 1, 1]])
    with pytest.raises(MissingExtraError, match=f"^plot.contact_sheet: {said}"):
        plot.contact_sheet([picture], [[picture]])
