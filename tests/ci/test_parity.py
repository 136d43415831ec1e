"""The table of what BigDL has is up to date with the registry, and says why one is missing."""

from __future__ import annotations

import pytest

from ci import parity


def test_the_page_is_what_the_script_writes():
    assert parity.PAGE.read_text(encoding="utf-8") == parity.page(), "run python -m ci.parity"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("Swish | Swish9 | SiLU", "no 'Swish9' among our layers"),
        ("## Losses\nMSECriterion | ReLU | MSELoss", "no 'ReLU' among our losses"),
        ("Swish | - | ", "expected a reason"),
    ],
)
def test_rows_that_say_nothing_are_refused(row, sentence, tmp_path, monkeypatch):
    path = tmp_path / "rows.txt"
    path.write_text(row)
    monkeypatch.setattr(parity, "ROWS", path)
    with pytest.raises(ValueError, match=sentence):
        parity.page()


def test_checking_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(parity, "PAGE", tmp_path / "parity.md")
    monkeypatch.setattr("sys.argv", ["parity", "--check"])
    assert parity.main() == 1
    assert "run python -m ci.parity" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["parity"])
    assert parity.main() == 0
    monkeypatch.setattr("sys.argv", ["parity", "--check"])
    assert parity.main() == 0
