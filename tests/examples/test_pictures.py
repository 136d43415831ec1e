"""The examples on pictures: colours, out of folders, archives and Parquet, and Fashion-MNIST."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile

import numpy as np
import pytest

from daskdl.errors import DataError

COLOURS = {"blue": (30, 40, 220), "green": (30, 200, 40), "red": (220, 40, 30)}


def files(count: int, seed: int):
    """Yield (class, bytes of a PNG): one colour and noise, of different sizes."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(seed)
    for i in range(count):
        name, colour = list(COLOURS.items())[i % 3]
        noise = rng.integers(-25, 26, (36 + i % 3, 40, 3))
        pixels = np.clip(np.array(colour) + noise, 0, 255).astype(np.uint8)
        file = io.BytesIO()
        image.fromarray(pixels).save(file, "PNG")
        yield name, file.getvalue()


@pytest.fixture
def folder(tmp_path):
    for part, count in (("train", 24), ("val", 9)):
        for i, (name, data) in enumerate(files(count, seed=count)):
            file = tmp_path / part / name / f"{i}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    return tmp_path


@pytest.fixture
def tables(tmp_path):
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    for part, count in (("train", 24), ("val", 9)):
        names, data = zip(*files(count, seed=count), strict=True)
        labels = [list(COLOURS).index(name) for name in names]
        table = arrow.table({"image": list(data), "label": labels})
        parquet.write_table(table, tmp_path / f"{part}.parquet")
    return tmp_path


@pytest.fixture
def shards(tmp_path):
    """Tar archives, in which one picture for training is cut short."""
    for part, count in (("train", 25), ("val", 9)):
        samples = list(files(count, seed=count))
        for shard in range(2):
            with tarfile.open(tmp_path / f"{part}-{shard}.tar", "w") as archive:
                for i, (name, data) in list(enumerate(samples))[shard::2]:
                    whole = data if i < 24 else data[:-50]
                    members = {"png": whole, "cls": str(list(COLOURS).index(name)).encode()}
                    for ending, content in members.items():
                        member = tarfile.TarInfo(f"{i:04}.{ending}")
                        member.size = len(content)
                        archive.addfile(member, io.BytesIO(content))
    return tmp_path


TINY = ["--classes", "3", "--size", "32", "--workers", "0", "--batch-size", "8", "--warmup", "1"]


SMALL = ["--depth", "18", "--stem", "small", "--width", "8", "--rate", "3.2"]


@pytest.mark.slow
def test_resnet_learns_colours_out_of_tar_shards(example, shards, capsys):
    more = [*SMALL, "--epochs", "4", "--on-error", "skip"]
    accuracy = example("resnet").main([str(shards), *TINY, *more])
    assert accuracy > 0.8
    out = capsys.readouterr().out
    assert "24 pictures to train on, 9 to judge by" in out
    assert "train-0.tar, 0024 (image: expected a whole image file" in out
    assert "top-5 1.0000" in out


def test_pictures_of_a_folder_are_labelled_by_the_order_of_its_names(example, folder):
    (folder / "train" / "red" / "notes.txt").write_text("no picture")
    samples = example("pictures").read(folder, "train", 3, "skip")
    assert samples.partitions == 3
    assert np.bincount(samples.to_dask_array("y").compute()).tolist() == [8, 8, 8]
    assert [bad.split("/")[-1].split()[0] for bad in samples.bad] == ["notes.txt"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "heads", [[], pytest.param(["--auxiliary", "--size", "224"], marks=pytest.mark.long)]
)
def test_inception_runs_out_of_parquet(example, tables, tmp_path, heads):
    from daskdl.models import InceptionV1
    from daskdl.nn import load

    file = tmp_path / "m.safetensors"
    more = ["--epochs", "1", "--rate", "0.001", "--save", str(file)]
    example("inception").main([str(tables), *TINY, *more, *heads])
    assert isinstance(load(file), InceptionV1)
    assert len(load(file).heads) == 2 * bool(heads)


def test_a_file_that_is_no_picture_is_refused_where_it_is_loaded(example) -> None:
    with pytest.raises(DataError, match="expected a picture file, found 6 other bytes"):
        example("pictures").as_bytes(b"broken")


@pytest.fixture
def program(example):
    return example("fashion_mnist")


def test_lenet_learns_from_a_few_pictures(program, capsys):
    if not program.FOLDER.is_dir():
        pytest.skip("no dataset-fashion-mnist here")
    accuracy = program.main(["lenet", "--count", "1536", "--epochs", "4", "--batch", "32"])
    assert accuracy > 0.6
    assert "61,706 parameters, 4 epochs" in capsys.readouterr().out


def test_the_resnet_learns_as_the_program_says(program, capsys):
    if not program.FOLDER.is_dir():
        pytest.skip("no dataset-fashion-mnist here")
    arguments = ["--count", "96", "--epochs", "1", "--batch", "16", "--width", "4"]
    accuracy = program.main(["resnet", *arguments, "--int8"])
    printed = capsys.readouterr().out
    assert f"accuracy on 96 test pictures: {accuracy:.4f}" in printed
    assert abs(float(printed.split("in int8: ")[1]) - accuracy) < 0.1


def test_reads_idx_files(program, tmp_path):
    pictures = np.random.default_rng(0).integers(0, 256, (3, 2, 4), np.uint8)
    for name, array in (("images-idx3", pictures), ("labels-idx1", np.array([7, 0, 9], np.uint8))):
        head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}i", *array.shape)
        (tmp_path / f"t10k-{name}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes()))
    read = program.read(tmp_path, "t10k", 2)
    np.testing.assert_array_equal(read["x"], pictures[:2, ..., None])
    assert read["y"].tolist() == [7, 0]


def test_augmented_pictures_are_mirrored_and_shifted(program):
    x = np.arange(1, 785).astype(np.uint8).reshape(1, 28, 28, 1).repeat(64, 0)
    batch = program.AUGMENTED({"x": x, "y": np.arange(64)}, np.random.default_rng(0))
    assert (batch["x"].shape, batch["x"].dtype) == (x.shape, np.float32)
    levels = np.rint((batch["x"] * program.DEVIATION + program.MEAN) * 255)
    steps = np.diff(levels[:, 10:18, 10:18, 0].astype(int), axis=2) % 256
    assert np.unique(steps).tolist() == [1, 255]  # rows run either way, by one level a pixel
    assert len(np.unique(levels[:, 10, 10])) > 10
