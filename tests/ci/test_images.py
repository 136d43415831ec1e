"""The benchmark of images: contestants make the same, and there is a line for each case."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ci.bench import images


def test_contestants_make_the_same():
    pytest.importorskip("cv2")
    for case in images.cases():
        if "as OpenCV" in case.name or case.name.endswith("beside Pillow"):
            ours, theirs = case.ours(), next(iter(case.peers.values()))()
            # Other roundings; Pillow's JPEG decoder may be another than what wrote the file.
            assert np.abs(ours - theirs).mean() < 0.02, case.name


def test_there_is_a_line_for_each(tmp_path, capsys, monkeypatch):
    pytest.importorskip("cv2")
    file = tmp_path / "rows.json"
    arguments = ["images", "--seconds", "0", "--only", "flip", "--json", str(file)]
    monkeypatch.setattr("sys.argv", arguments)
    images.main()
    rows = json.loads(file.read_text())
    assert [row["name"] for row in rows] == ["random resized crop flip normalise", "step/flip"]
    assert "geometric mean of the pipelines beside OpenCV" in capsys.readouterr().out
