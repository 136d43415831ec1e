"""Boxes that a single-shot detector finds are those of OpenCV, for every code of offsets."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import ModelFileError, ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.interop.caffe.files import caffemodel, graph, layer, network

COUNT, CLASSES = 60, 4


def given(share, images=2, code="CENTER_SIZE"):
    kinds = 1 if share else CLASSES
    offsets = (0.3 * normal(images, COUNT * kinds * 4)).astype("f4")
    scores = np.exp(2 * normal(images, COUNT, CLASSES))
    scores = (scores / scores.sum(-1, keepdims=True)).reshape(images, -1).astype("f4")
    corner = np.abs(normal(COUNT, 2)) % 0.6
    boxes = np.concatenate([corner, corner + 0.1 + np.abs(normal(COUNT, 2)) % 0.3], -1)
    variances = np.full((COUNT, 4), 0.2 if code == "CENTER_SIZE" else 0.1)
    priors = np.stack([boxes.reshape(-1), variances.reshape(-1)])[None].astype("f4")
    return offsets, scores, priors


def text(share, code="CENTER_SIZE", more=""):
    kinds = 1 if share else CLASSES
    settings = (
        f"detection_output_param {{ num_classes: {CLASSES} share_location: {str(share).lower()} "
        f"code_type: {code} keep_top_k: 20 confidence_threshold: 0.15 background_label_id: 0 "
        f"nms_param {{ nms_threshold: 0.4 top_k: 30 }} {more} }}"
    )
    shapes = (2, COUNT * kinds * 4), (2, COUNT * CLASSES), (1, 1 if more else 2, COUNT * 4)
    return network(layer("DetectionOutput", settings, "x y z"), shapes)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("code", ["CENTER_SIZE", "CORNER"])
@pytest.mark.parametrize("more", ["", "variance_encoded_in_target: true"])
def test_objects_of_opencv(share, code, more):
    cv2 = pytest.importorskip("cv2")
    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        pytest.skip("OpenCV 5 reads no Caffe")
    *arrays, priors = given(share, code=code)
    arrays.append(priors[:, :1] if more else priors)
    net = cv2.dnn.readNetFromCaffe(
        np.frombuffer(text(share, code, more).encode(), np.uint8),
        np.frombuffer(caffemodel({"none": [np.zeros(1)]}), np.uint8),
    )
    for name, array in zip("xyz", arrays, strict=True):
        net.setInput(array, name)
    right = net.forward().reshape(-1, 7)
    found = graph(text(share, code, more))(*arrays).data
    assert found.shape == (2, 20, 6)
    for i, objects in enumerate(found):
        wanted = right[(right[:, 0] == i) & (right[:, 1] > 0), 1:]
        wanted = wanted[np.argsort(-wanted[:, 1], kind="stable")]
        assert len(wanted) == (objects[:, 0] >= 0).sum() > 3
        np.testing.assert_allclose(objects[: len(wanted)], wanted, atol=2e-5)
        assert (objects[len(wanted) :, 0] == -1).all()


@pytest.mark.slow
def test_of_two_that_overlap_the_better_one_is_left():
    settings = ("detection_output_param { num_classes: 2 keep_top_k: 3 code_type: CORNER_SIZE "
                "nms_param { nms_threshold: 0.5 } }")  # fmt: skip
    net = graph(network(layer("DetectionOutput", settings, "x y z"), ((1, 12), (1, 6), (1, 2, 12))))
    edges = [[0, 0, 0.4, 0.4], [0.05, 0, 0.45, 0.4], [0.5, 0.5, 1, 1]]
    priors = np.stack([np.ravel(edges), np.ones(12)])[None].astype("f4")
    scores = np.array([[0.9, 0.1, 0.2, 0.8, 0.5, 0.5]], "f4")
    found = net(np.zeros((1, 12), "f4"), scores, priors).data
    np.testing.assert_allclose(
        found[0], [[1, 0.8, *edges[1]], [1, 0.5, *edges[2]], [-1, 0, 0, 0, 0, 0]], atol=1e-7
    )


def test_what_does_not_fit_is_told():
    offsets, scores, priors = given(True)
    with pytest.raises(ShapeError, match="expected offsets and scores of 60 boxes and 9 classes"):
        graph(text(True).replace("num_classes: 4", "num_classes: 9"))(offsets, scores, priors)
    with pytest.raises(ModelFileError, match="eta"):
        graph(text(True).replace("nms_threshold", "eta: 0.5 nms_threshold"))
    with pytest.raises(ModelFileError, match="a max_size for each min_size"):
        graph(network(layer("PriorBox", "prior_box_param { max_size: 3 }", "x")))
