"""The page of figures is what the files of figures say."""

from __future__ import annotations

import pytest

from ci import figures, performance


def test_the_page_is_what_the_script_writes():
    text = performance.PAGE.read_text(encoding="utf-8")
    assert text == performance.page(text), "run python -m ci.performance"


def test_checking_writes_nothing(tmp_path, monkeypatch, capsys):
    text = performance.PAGE.read_text(encoding="utf-8")
    page = tmp_path / "performance.md"
    page.write_text(text.replace("<!-- table prediction -->\n", "<!-- table prediction -->\n9\n"))
    monkeypatch.setattr(performance, "PAGE", page)
    before = page.read_text()
    assert performance.main(["--check"]) == 1
    assert "run python -m ci.performance" in capsys.readouterr().err
    assert page.read_text() == before
    assert performance.main([]) == 0
    assert performance.main(["--check"]) == 0
    assert page.read_text() == text


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("table hosts", "table guests", "expected <!-- table hosts -->"),
        ("# Performance", "<!-- table guests -->\n<!-- end -->\n# Performance", "found 'guests'"),
    ],
)  # fmt: skip
def test_a_mark_that_names_nothing_is_refused(before, after, sentence):
    text = performance.PAGE.read_text(encoding="utf-8").replace(before, after)
    with pytest.raises(ValueError, match=sentence):
        performance.page(text)


def test_what_was_not_measured_says_how(monkeypatch, tmp_path):
    monkeypatch.setattr(figures, "FOLDER", tmp_path)
    assert performance.section("hosts") == (
        "\n`python -m ci.bench.engine --part hosts`: not measured yet\n"
    )


def test_other_names_are_told_which_there_are(capsys):
    assert performance.main(["measure", "weather"]) == 2
    assert performance.main(["keep"]) == 2
    assert "expected some of kernels, training" in capsys.readouterr().err
    assert performance.main(["keep", "kernels"]) == 2
    assert "expected files after the name" in capsys.readouterr().err
