"""Settings: where they come from, and what is refused."""

from __future__ import annotations

import pytest

from daskdl.errors import SettingsError
from nowcast.model.settings import TrainSettings, parse


def test_options_win_over_assignments_and_these_over_the_file(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("epochs: 5\nn_in: 4\ntile: 64\n")
    settings = parse(file, ["n_in=3", "channels=[8, 8]"], epochs=2.0, lead_minutes=None)
    assert (settings.epochs, settings.n_in, settings.tile) == (2, 3, 64)
    assert settings.channels == (8, 8)
    assert settings.lead_minutes == TrainSettings().lead_minutes


@pytest.mark.parametrize(
    ("assignment", "sentence"),
    [
        ("epocs=3", r"setting epocs: Extra inputs are not permitted.*settings: frame, "),
        ("epochs=-1", r"setting epochs: .*greater than 0, found -1"),
        ("epochs", r"--set: expected NAME=VALUE, found 'epochs'"),
    ],
)
def test_what_is_wrong_is_named(assignment, sentence):
    with pytest.raises(SettingsError, match=sentence):
        parse(None, [assignment])


def test_a_file_that_is_no_settings_is_named(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("just words")
    with pytest.raises(SettingsError, match=r"settings.yaml: expected lines .*'just words'"):
        parse(file, [])
    with pytest.raises(SettingsError, match=r"missing.yaml: expected settings in YAML"):
        parse(tmp_path / "missing.yaml", [])
