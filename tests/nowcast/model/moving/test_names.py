"""Names in model files: a network of nowcast is not taken for one of the zoo."""

from __future__ import annotations

import daskdl
from daskdl import models, nn
from nowcast.model.moving.networks import network


def test_a_saved_network_is_read_where_the_zoo_is_known_too(tmp_path):
    made = network("small", 0)
    nn.save(made, tmp_path / "a.safetensors")
    assert {type(part).__name__ for _, part in made.modules()} & {*models.__all__} == {"UNet"}
    kinds = [type(part) for _, part in daskdl.load(tmp_path / "a.safetensors").modules()]
    assert kinds == [type(part) for _, part in made.modules()]
