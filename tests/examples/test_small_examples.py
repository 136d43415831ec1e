"""Short examples: DeepBit, an ONNX file that learns new classes, NCF, a network of one's own."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys

import numpy as np
import pytest

from ci import example_data
from daskdl import SampleSet, Trainer, nn
from daskdl.errors import DataError
from daskdl.interop import onnx
from daskdl.metrics import HitRatio
from daskdl.optim import Adam
from tests.examples.conftest import EXAMPLES


@pytest.fixture
def deepbit(example):
    return example("deepbit")


def write(folder, part, count, seed):
    """Write files as MNIST's; a label is the row of the bright bar in its picture."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count, dtype=np.uint8)
    x = rng.integers(0, 90, (count, 28, 28), dtype=np.uint8)
    for image, label in zip(x, labels, strict=True):
        image[4 + 2 * label : 8 + 2 * label] += 150
    for name, array in (("images-idx3", x), ("labels-idx1", labels)):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
        with gzip.open(folder / f"{part}-{name}-ubyte.gz", "wb") as file:
            file.write(head + array.tobytes())


@pytest.mark.long
def test_codes_find_pictures_of_the_same_class(deepbit, tmp_path, capsys):
    write(tmp_path, "train", 1100, 0)
    write(tmp_path, "t10k", 40, 1)
    options = f"--folder {tmp_path} --epochs 1 --pretrain 1 --queries 40 --save {tmp_path}/net"
    precisions = deepbit.main(options.split())
    assert nn.load(tmp_path / "net").predict(np.zeros((2, 28, 28, 1))).shape == (2, 32)
    assert len(precisions) == 5
    chance = precisions["random codes"]
    assert precisions["DeepBit, trunk taught five other classes"] > chance + 0.1
    assert precisions["signs of principal components"] > chance + 0.1
    assert "1,100 pictures to find, 40 queries" in capsys.readouterr().out


@pytest.mark.long
def test_a_stack_is_denoised(example, tmp_path, capsys):
    picture = tmp_path / "stack.png"
    sizes = ["--side", "64", "--depth", "32", "--epochs", "8"]
    noisy, better = example("denoise").main([*sizes, "--picture", str(picture)])
    assert better < 0.6 * noisy
    assert picture.stat().st_size > 5000
    assert "error of the noisy stack" in capsys.readouterr().out


def test_precision_by_hand(deepbit):
    codes = np.array([[0], [1], [3], [255]], np.uint8)
    value = deepbit.precision(codes, np.array([0, 1, 0, 1]), codes[:1], np.array([0]))
    assert value == pytest.approx((1 + 2 / 3) / 2)


@pytest.fixture(scope="module")
def digits():
    """Return scikit-learn's 1,797 pictures of 8x8 pixels, (N, 8, 8, 1), and their labels."""
    data = pytest.importorskip("sklearn.datasets").load_digits()
    return (data.images / 16).astype("f4")[..., None], data.target.astype("i8")


@pytest.mark.slow
def test_new_classes_are_learned_and_written(tmp_path, example, digits):
    x, y = digits
    old = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, seed=0), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(128, 32, seed=1), nn.ReLU(), nn.Linear(32, 5, seed=2),
    )  # fmt: skip
    samples = SampleSet.from_arrays(x=x[y < 5], y=y[y < 5], partitions=2)
    trainer = Trainer(old, nn.CrossEntropyLoss(), Adam(1e-3), seed=0)
    trainer.fit(samples, epochs=3, batch_size=32, progress=False)
    onnx.save(old, tmp_path / "old.onnx", (8, 8, 1), channels_first=True)

    images = x[y >= 5].transpose(0, 3, 1, 2)
    np.savez(tmp_path / "data.npz", x=images, y=y[y >= 5] - 5)
    relu = [n.outputs[0] for n in onnx.load(tmp_path / "old.onnx").nodes if n.operator == "Relu"]
    accuracy = example("fine_tune_onnx").fine_tune(
        tmp_path / "old.onnx", tmp_path / "data.npz", relu[-1], tmp_path / "new.onnx", epochs=20
    )
    assert accuracy > 0.9

    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(tmp_path / "new.onnx")
    (scores,) = session.run(None, {"x": images})
    ours = onnx.load(tmp_path / "new.onnx").predict(images)
    np.testing.assert_allclose(scores, ours, atol=1e-4)
    assert (scores.argmax(1) == y[y >= 5] - 5).mean() > 0.9


def test_a_file_without_samples_is_refused(example, tmp_path):
    np.savez(tmp_path / "data.npz", images=np.zeros(3))
    data = tmp_path / "data.npz"
    with pytest.raises(DataError, match=r"data.npz: expected .npz of x and y"):
        example("fine_tune_onnx").fine_tune(data, data, "relu", tmp_path / "new.onnx")


@pytest.fixture
def ncf(example):
    return example("ncf")


@pytest.mark.slow
def test_ranks_what_users_take_to(ncf, wheel, tmp_path, capsys):
    names, *lines = example_data.ratings(wheel(example_data.MOVIELENS[0])).splitlines()
    some = [line for line in lines if int(line.split("\t")[0]) <= 100]
    (tmp_path / "some.inter").write_text("\n".join([names, *some]))
    options = ["--epochs", "2", "--batch-size", "256", "--rate", "0.003", "--seeds", "2"]
    options += ["--target", "0.15", "--among", "100"]
    results = ncf.main([str(tmp_path / "some.inter"), *options])
    shown = capsys.readouterr().out
    assert "100 users" in shown
    assert "2 of 2 reached HR@10 of 100 of 0.15" in shown  # by chance it would be 0.1
    for result in results:
        assert 0 < result.reached < 300
        assert result.best["HR@10 of 100"] >= 0.15
        assert result.best["NDCG@10 of 999"] < result.best["HR@10 of 999"]
    by_popularity = re.search(r"by popularity alone: .*HR@10 of 100 (0\.\d+)", shown)
    assert 0.1 < float(by_popularity[1]) < 0.6


def test_a_file_without_ratings_is_refused(ncf, tmp_path):
    (tmp_path / "empty.inter").write_text("user item rating time\n")
    with pytest.raises(DataError, match=r"empty.inter: expected lines of user.* no data"):
        ncf.read(tmp_path / "empty.inter")


def test_the_generated_set_is_like_movielens(ncf, monkeypatch):
    monkeypatch.setattr(ncf, "MOVIELENS_20M", (300, 100, 4000))
    monkeypatch.setattr(ncf, "ITEMS", (5, 1.0))
    known = ncf.generate()
    assert (known.user_count, known.item_count) == (300, 100)
    assert len(known) == 4000 == len(np.unique(known.pairs, axis=0))
    counts = np.sort(np.bincount(known.items, minlength=100))
    assert counts[-10:].sum() > 3 * counts[:10].sum()
    args = ncf.parse(["generated", "--iterations", "3", "--batch-size", "20"])
    assert ncf.speed(known, args) > 0


def test_a_ranking_among_fewer(ncf):
    scores = np.array([[0.5, *([0.1] * 20), *([0.9] * 20)]], np.float32)
    assert ncf.Among(HitRatio(10), 20)(scores, None) == 1
    assert ncf.Among(HitRatio(10), 40)(scores, None) == 0


@pytest.mark.slow
def test_a_network_of_ones_own_learns():
    command = [sys.executable, EXAMPLES / "own_network.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    match = re.search(r"accuracy on new samples: (\d\.\d+)", done.stdout)
    assert match, done.stdout
    assert float(match[1]) > 0.93
