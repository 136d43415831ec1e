"""SSD: torchvision's layout, detections of predictions, a step, its targets, its metric."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data import Ragged
from daskdl.errors import SettingsError, ShapeError
from daskdl.metrics import MeanAveragePrecision
from daskdl.models import SSD300, BoxTargets, MobileSSD, PriorBoxes
from tests.daskdl.models.checks import gradient_is_right

#: Filters of torchvision's ssd300_vgg16 by place: of features and of extra.
FEATURES = {0: (64, 3), 2: (64, 64), 5: (128, 64), 7: (128, 128), 10: (256, 128), 12: (256, 256),
            14: (256, 256), 17: (512, 256), 19: (512, 512), 21: (512, 512)}  # fmt: skip
EXTRA = {
    "1.0": (256, 1024, 1), "1.2": (512, 256, 3), "2.0": (128, 512, 1), "2.2": (256, 128, 3),
    "3.0": (128, 256, 1), "3.2": (256, 128, 3), "4.0": (128, 256, 1), "4.2": (256, 128, 3),
}  # fmt: skip


def tiny(**settings) -> MobileSSD:
    return MobileSSD(**{"classes": 2, "size": 64, "width": 0.125} | settings)


def pictures(count=3, size=64):
    return np.random.default_rng(0).normal(size=(count, size, size, 3)).astype(np.float32)


def targets(count=3):
    y = np.full((count, 4, 5), -1, np.float32)
    y[:, 0], y[0, 1] = [0.1, 0.2, 0.5, 0.6, 0], [0.5, 0.5, 0.9, 0.8, 1]
    y[1, 1] = [0, 0, 0.68, 0.68, 1]
    return y


def torchvision_layout(outputs):
    """Return names and shapes of its state, with ``outputs`` scores for each box."""
    shapes = {f"backbone.features.{k}": (*s, 3, 3) for k, s in FEATURES.items()}
    shapes |= {f"backbone.extra.0.{k}": (512, 512, 3, 3) for k in (1, 3, 5)}
    shapes["backbone.extra.0.7.1"] = 1024, 512, 3, 3
    shapes["backbone.extra.0.7.3"] = 1024, 1024, 1, 1
    shapes |= {f"backbone.extra.{k}": (a, b, n, n) for k, (a, b, n) in EXTRA.items()}
    widths, counts = (512, 1024, 512, 256, 256, 256), (4, 6, 6, 6, 4, 4)
    for i, (width, count) in enumerate(zip(widths, counts, strict=True)):
        for head, numbers in (("classification", outputs), ("regression", 4)):
            shapes[f"head.{head}_head.module_list.{i}"] = (count * numbers, width, 3, 3)
    layout = {"backbone.scale_weight": (512,)}
    for name, shape in shapes.items():
        layout |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return layout


@pytest.mark.slow
def test_ssd300_is_laid_out_as_torchvisions():
    model = SSD300(classes=90)
    state = model.state_dict(names="torch")
    assert {name: value.shape for name, value in state.items()} == torchvision_layout(91)
    assert model.flat.size == 35_641_826  # as torchvision's page has it
    changed = {name: value + 1 for name, value in state.items()}
    model.load_state_dict(changed, names="torch")
    assert np.array_equal(model.state_dict(names="torch")["backbone.extra.4.2.bias"],
                          changed["backbone.extra.4.2.bias"])  # fmt: skip


@pytest.mark.slow
def test_ssd300_predicts_for_each_of_its_8732_boxes():
    model = SSD300(classes=3)
    offsets, logits = model.predict(pictures(1, 300))
    assert offsets.shape == (1, 8732, 4)
    assert logits.shape == (1, 8732, 4)
    first, last = model.priors.array[[0, -1]]
    np.testing.assert_allclose(first, [4 / 300, 4 / 300, 0.07, 0.07], rtol=1e-6)
    np.testing.assert_allclose(last, [0.5, 0.5, 0.87 / 2**0.5, 1], rtol=1e-6)


@pytest.mark.slow
def test_predictions_made_of_targets_are_detected():
    """Detections of offsets and logits that are made of the targets are the targets' boxes."""
    from daskdl.kernels.detection import match
    from daskdl.models.detections import detections

    model, y = tiny(), targets()
    classes, offsets = match(model.priors.array, y[..., :4], y[..., 4].astype(int), 0.5)
    logits = 9 * np.eye(3, dtype=np.float32)[classes]
    results = detections(offsets, logits, model.priors.array, least=0.5)
    np.testing.assert_allclose(results[0]["boxes"], y[0, :2, :4], atol=1e-6)
    assert results[0]["labels"].tolist() == [0, 1]
    assert [len(one["scores"]) for one in results] == [2, 2, 1]
    assert model.detections(overlaps=(0.9,))((offsets, logits), y) == pytest.approx(1)
    few = detections(offsets, logits, model.priors.array, least=0.5, candidates=1, most=1)
    assert [len(one["scores"]) for one in few] == [1, 1, 1]


@pytest.mark.slow
def test_the_metric_judges_the_detections():
    model, y = tiny(), targets()
    detections = model.detect(pictures(), least=0.0, most=100)
    wanted = [{"boxes": b[i >= 0], "labels": i[i >= 0].astype(int)}
              for b, i in zip(y[..., :4], y[..., 4], strict=True)]  # fmt: skip
    metric = model.detections(least=0.0, overlaps=(0.1,))
    expected = MeanAveragePrecision(2, overlaps=(0.1,))(detections, wanted)
    assert metric(model.predict(pictures()), y) == pytest.approx(expected)


@pytest.mark.slow
def test_a_step_does_what_its_gradient_says():
    model = tiny()
    gradient_is_right(model, pictures(), loss=model.loss(), labels=targets())


def test_boxes_become_targets_of_one_shape():
    batch = {
        "x": np.zeros(3),
        "boxes": Ragged.of([np.zeros((0, 4)), [[0.1, 0.2, 0.3, 0.4]], np.ones((3, 4))]),
        "labels": Ragged.of([np.zeros(0, int), [1], [0, 1, 2]]),
    }
    ready = BoxTargets(most=2)(batch)
    assert ready.keys() == {"x", "y"}
    assert ready["y"][..., 4].tolist() == [[-1, -1], [1, -1], [0, 1]]
    np.testing.assert_allclose(ready["y"][1, 0, :4], [0.1, 0.2, 0.3, 0.4])
    nothing = Ragged(np.zeros((0, 4)), np.zeros(3, int))
    assert (BoxTargets()({"boxes": nothing, "labels": nothing})["y"][..., 4] == -1).all()


@pytest.mark.slow
def test_mistakes_are_sentences():
    model = tiny()
    with pytest.raises(ShapeError, match=r"expected pictures \(N, 64, 64, C\), found \(1, 32, 32"):
        model(pictures(1, 32))
    prediction, y = model(pictures()), targets()
    with pytest.raises(ShapeError, match=r"y \(N, most, 5\).*found \(3, 4\); SampleSet.map"):
        model.loss()(prediction, y[..., 0])
    y[0, 0, 4] = 2
    with pytest.raises(ShapeError, match="expected labels from 0 to 1, found 2"):
        model.loss()(prediction, y)
    with pytest.raises(ShapeError, match="BoxTargets: expected columns boxes and labels"):
        BoxTargets()({"x": np.zeros(2), "boxes": []})
    with pytest.raises(ShapeError, match="Detections: expected offsets and logits, found ndarray"):
        model.detections()(prediction[0].data, y)
    with pytest.raises(SettingsError, match=r"for each of 2 maps .* found 1, 2 and 2"):
        PriorBoxes([2, 1], [0.3, 0.6], [[2]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 16}, "MobileSSD, size: expected at least 17 pixels, found 16"),
        ({"classes": 0}, "MobileSSD, classes: expected at least 1, found 0"),
        ({"width": 0}, "MobileSSD, width: expected more than 0, found 0"),
    ],
)
def test_settings_of_no_mobile_detector(options, message):
    with pytest.raises(SettingsError, match=message):
        MobileSSD(**options)
