"""Tests of the extrapolation by pysteps."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import MissingExtraError
from nowcast.forecasters import Extrapolation, PystepsExtrapolation
from nowcast.forecasters import pysteps as module
from tests.nowcast.fields import translation


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "pysteps_installed", lambda: False)
    with pytest.raises(MissingExtraError, match=r"pip install 'daskdl\[pysteps\]'"):
        PystepsExtrapolation(3)


@pytest.mark.skipif(not module.pysteps_installed(), reason="pysteps is not installed")
def test_agrees_with_our_extrapolation(capsys: pytest.CaptureFixture[str]) -> None:
    frames = translation(3, 1.6, -2.3)
    theirs, ours = PystepsExtrapolation(6)(frames)[-1], Extrapolation(6)(frames)[-1]
    both = np.isfinite(theirs) & np.isfinite(ours)
    assert both.mean() > 0.7
    assert np.corrcoef(theirs[both], ours[both])[0, 1] > 0.95
    assert capsys.readouterr().out == ""
