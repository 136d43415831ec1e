"""Mean average precision against loops by the rules of COCO and VOC, for any cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError, ShapeError
from daskdl.metrics import MeanAveragePrecision
from daskdl.metrics.detection import COCO, STYLES
from tests.daskdl.lossmeans import check_cuts


def draw(seed, images, classes, ties):
    """Return detections near the boxes, some of them twice, and boxes, some to ignore."""
    rng = np.random.default_rng([seed, images, classes])
    prediction, target = [], []
    for _ in range(images):
        n = rng.integers(0, 5)
        low = rng.uniform(0, 20, (n, 2))
        boxes = np.concatenate([low, low + rng.uniform(5, 15, (n, 2))], 1)
        labels = rng.integers(0, classes, n)
        ignore = rng.random(n) < 0.2
        target.append({"boxes": boxes, "labels": labels, "ignore": ignore})
        again = rng.integers(0, n, 2 * n) if n else np.zeros(0, int)
        detections = boxes[again] + rng.normal(0, rng.choice([0.3, 2]), (len(again), 4))
        detections[:, 2:] = np.maximum(detections[:, 2:], detections[:, :2] + 0.5)
        scores = rng.integers(1, 4, len(again)) / 4 if ties else rng.random(len(again))
        changed = np.where(rng.random(len(again)) < 0.2, 0, labels[again])
        prediction.append({"boxes": detections, "scores": scores, "labels": changed})
    return prediction, target


def overlap(a, b, crowd):
    """Return the intersection over the union, or over the first's area."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(width, 0) * max(height, 0)
    areas = [(x[2] - x[0]) * (x[3] - x[1]) for x in (a, b)]
    return common / (areas[0] if crowd else areas[0] + areas[1] - common)


def judge(image, wanted, label, least, style, most):
    """Yield (score, right) of the detections of an image that count."""
    mine = [i for i in range(len(image["labels"])) if image["labels"][i] == label]
    mine.sort(key=lambda i: -image["scores"][i])
    theirs = [j for j in range(len(wanted["labels"])) if wanted["labels"][j] == label]
    taken = set()
    for i in mine[: most if style == "coco" else None]:
        ious = {
            j: overlap(
                image["boxes"][i], wanted["boxes"][j], style == "coco" and wanted["ignore"][j]
            )
            for j in theirs
        }
        if style == "coco":
            free = [
                j for j in theirs
                if ious[j] >= least and not wanted["ignore"][j] and j not in taken
            ]  # fmt: skip
            if free:
                taken.add(max(free, key=ious.get))
                yield image["scores"][i], True
            elif not any(wanted["ignore"][j] and ious[j] >= least for j in theirs):
                yield image["scores"][i], False
            continue
        best = max(theirs, key=ious.get, default=None)
        if best is None or ious[best] < least:
            yield image["scores"][i], False
        elif not wanted["ignore"][best]:
            yield image["scores"][i], best not in taken
            taken.add(best)


def by_loops(prediction, target, classes, style, overlaps, most):
    """Return the mean average precision by loops."""
    results = []
    for label in range(classes):
        boxes = sum(((t["labels"] == label) & ~t["ignore"]).sum() for t in target)
        if not boxes:
            continue
        for least in overlaps:
            judged = [
                x for p, t in zip(prediction, target, strict=True)
                for x in judge(p, t, label, least, style, most)
            ]  # fmt: skip
            curve = []
            for score in sorted({s for s, _ in judged}, reverse=True):
                above = [right for s, right in judged if s >= score]
                curve.append((sum(above) / boxes, sum(above) / len(above)))
            if style == "voc2010":
                steps = zip([0, *(r for r, _ in curve)], curve, strict=False)
                area = sum(
                    (recall - before) * max(p for r, p in curve if r >= recall)
                    for before, (recall, _) in steps
                )
                results.append(area)
                continue
            points = np.linspace(0, 1, 101 if style == "coco" else 11)
            results.append(
                np.mean([max((p for r, p in curve if r >= x), default=0) for x in points])
            )
    return np.mean(results) if results else np.nan


@given(
    data=st.data(),
    seed=st.integers(0, 1000),
    images=st.integers(1, 6),
    classes=st.integers(1, 3),
    style=st.sampled_from(STYLES),
    ties=st.booleans(),
    most=st.sampled_from([1, 3, 100]),
)
def test_any_cut_gives_the_value_of_the_loops(data, seed, images, classes, style, ties, most):
    prediction, target = draw(seed, images, classes, ties)
    metric = MeanAveragePrecision(classes, style, most=most)
    value = check_cuts(metric, prediction, target, data)
    overlaps = COCO if style == "coco" else (0.5,)
    expected = by_loops(prediction, target, classes, style, overlaps, most)
    assert value == pytest.approx(expected, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("style", STYLES)
def test_all_found_is_1_and_nothing_found_is_0(style):
    boxes = np.array([[0, 0, 10, 10], [20, 20, 30, 40]])
    target = [{"boxes": boxes, "labels": np.array([0, 1])}]
    right = [{"boxes": boxes, "labels": np.array([0, 1]), "scores": np.array([0.9, 0.3])}]
    none = [{"boxes": np.zeros((0, 4)), "labels": np.zeros(0, int), "scores": np.zeros(0)}]
    metric = MeanAveragePrecision(3, style)
    assert metric(right, target) == 1
    assert metric(none, target) == 0
    assert np.isnan(metric(right, [{"boxes": [], "labels": []}]))


def test_a_box_found_twice_is_wrong_once():
    target = [{"boxes": [[0, 0, 10, 10]], "labels": [0]}]
    twice = [{"boxes": [[0, 0, 10, 10]] * 2, "labels": [0, 0], "scores": [0.5, 0.9]}]
    statistics = MeanAveragePrecision(1).statistics(twice, target)
    assert statistics["right"].sum(0).tolist() == [1] * 10
    assert statistics["boxes"].tolist() == [1]


def test_images_without_detections_and_boxes():
    assert np.isnan(MeanAveragePrecision(2)([], []))


@pytest.mark.parametrize(
    ("prediction", "target", "sentence"),
    [
        ([], [{}], "a target for each of 0 images, found 1"),
        ([{"boxes": [], "labels": []}], [{}], r"image 0: expected \['scores'\], found \['boxes'"),
        (
            [{"boxes": [[0, 0, 1, 1]], "labels": [2], "scores": [1.0]}],
            [{"boxes": [], "labels": []}],
            "image 0: expected labels from 0 to 1, found 2",
        ),
        (
            [{"boxes": [[0, 0, 1, 1]], "labels": [0, 1], "scores": [1.0]}],
            [{"boxes": [], "labels": []}],
            r"labels and scores of 1 boxes, found shapes \(2,\) and \(1,\)",
        ),
    ],
)
def test_mistakes(prediction, target, sentence):
    with pytest.raises(ShapeError, match=sentence):
        MeanAveragePrecision(2)(prediction, target)


def test_styles():
    with pytest.raises(SettingsError, match="coco, voc2007, voc2010, found 'voc'"):
        MeanAveragePrecision(2, "voc")
