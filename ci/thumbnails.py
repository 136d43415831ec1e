"""Draw a picture for each program of ``examples/``: ``python -m ci.thumbnails FOLDER``.

Each function here calls functions of its example on small simulated data; ``python -m ci.docs``
puts the pictures into the gallery. Needs ``pip install -e '.[docs,nowcast,onnx]'``.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

import daskdl
from ci.example_data import SPOKEN, clothes, example, landscape, spoken, wardrobe
from daskdl import SampleSet, Trainer, nn
from daskdl.data.image.boxes import iou
from daskdl.optim import Adam

#: Size of a picture in inches; an inch has 100 pixels.
SIZE = (4.0, 2.6)
#: Function that draws, and caption of the picture, by the name of the example.
DRAWN: dict[str, tuple[Callable[[Figure], None], str]] = {}
COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple")


def of(name: str, shows: str) -> Callable[[Callable[[Figure], None]], Callable[[Figure], None]]:
    """Return a decorator that registers a function as drawing the picture of an example."""

    def register(function: Callable[[Figure], None]) -> Callable[[Figure], None]:
        DRAWN[name] = function, shows
        return function

    return register


def write(folder: Path) -> None:
    """Write ``NAME.png`` for every example."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (draw, _) in DRAWN.items():
        figure = Figure(figsize=SIZE, dpi=100, layout="constrained")
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            draw(figure)
        figure.savefig(folder / f"{name}.png")


def pictures_in(figure: Figure, rows: list[list[np.ndarray]], **options: Any) -> list[Axes]:
    """Show pictures in rows, with hidden axes; return the axes."""
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for row, pictures in zip(axes, rows, strict=True):
        for axis, picture in zip(row, pictures, strict=True):
            axis.imshow(picture, **options)
            axis.axis("off")
    return list(axes.ravel())


def fit(model: nn.Module, loss: Any, x: Any, y: Any, rate: float, epochs: int) -> nn.Module:
    """Train a model by Adam in this process, and return it."""
    samples = SampleSet.from_arrays(x=x, y=y)
    Trainer(model, loss, Adam(rate)).fit(samples, epochs=epochs, progress=False, client=False)
    return model


def stacked(
    axes: Axes, places: Sequence[Any], parts: Iterable[tuple[str, Sequence[float], str]]
) -> None:
    """Draw a horizontal bar at each place; parts have a label, a width at each place, a colour."""
    left = np.zeros(len(places))
    for label, widths, colour in parts:
        axes.barh(range(len(places)), widths, left=left, label=label, color=colour, edgecolor="w")
        left += widths
    axes.set(yticks=range(len(places)), yticklabels=places)


@of("kmeans", "Points of five clusters, and the centres as they move in ten rounds.")
def _kmeans(figure: Figure) -> None:
    module = example("kmeans")

    class Alone:
        """A communicator of one worker, which records the sums of each round."""

        def all_reduce(self, sums: dict[int, np.ndarray]) -> np.ndarray:
            rounds.append(sums[0])
            return sums[0]

    rounds: list[np.ndarray] = []
    true = np.random.default_rng(0).uniform(-10, 10, (5, 2))
    which = np.random.default_rng(1).integers(5, size=1500)
    points = module.around(which, true)
    centres = module.kmeans(Alone(), {0: points}, true + 4.0)
    nearest = ((points[:, None] - centres) ** 2).sum(-1).argmin(1)
    axes = figure.add_subplot()
    axes.scatter(*points.T, c=nearest, s=3, cmap="Set2")
    path = np.stack([true + 4.0, *(s[:, :-1] / np.maximum(s[:, -1:], 1) for s in rounds)])
    for i in range(5):
        axes.plot(*path[:, i].T, color="black", linewidth=1)
    axes.scatter(*centres.T, marker="X", color="black", s=50)
    axes.set(xticks=[], yticks=[])


@of("own_network", "Scores of the network by the two features that matter; points are samples.")
def _own_network(figure: Figure) -> None:
    x, y = example("own_network").make_samples(4000, seed=0)
    model = nn.Sequential(nn.Linear(20, 64, seed=0), nn.ReLU(), nn.Linear(64, 2, seed=1))
    fit(model, nn.CrossEntropyLoss(), x, y, 3e-3, 12)
    grid = np.zeros((80, 80, 20), np.float32)
    grid[..., 0], grid[..., 1] = np.meshgrid(np.linspace(-3, 3, 80), np.linspace(-3, 3, 80))
    scores = model.predict(grid.reshape(-1, 20)).reshape(80, 80, 2)
    axes = figure.add_subplot()
    axes.imshow(scores[..., 1] - scores[..., 0], extent=(-3, 3, -3, 3), origin="lower",
                cmap="RdBu", vmin=-8, vmax=8, aspect="auto")  # fmt: skip
    axes.scatter(*x[:150, :2].T, c=y[:150], cmap="RdBu", edgecolors="black", linewidths=0.5, s=14)
    axes.set(xlim=(-3, 3), ylim=(-3, 3), xlabel="first coin", ylabel="second coin")


def _scene(seed: int, size: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return example("scenes").Scenes([landscape(rng)], size).draw(rng)


def _box(axis: Axes, box: Any, colour: str, width: float = 1.5) -> None:
    left, top, right, bottom = box
    corners = [left, right, right, left, left], [top, top, bottom, bottom, top]
    axis.plot(*corners, color=colour, linewidth=width)


@of("scenes", "Scenes with the boxes of their objects: QR codes, discs and triangles.")
def _scenes(figure: Figure) -> None:
    scenes = [_scene(seed) for seed in (2, 3, 5, 8, 9, 12)]
    axes = pictures_in(figure, [[s[0] for s in scenes[:3]], [s[0] for s in scenes[3:]]])
    for axis, (_, boxes, labels) in zip(axes, scenes, strict=True):
        for box, label in zip(boxes, labels, strict=True):
            _box(axis, box, COLOURS[label])


@of("detection", "Training data of the detector: objects, and the priors that match them.")
def _detection(figure: Figure) -> None:
    picture, boxes, labels = _scene(2, 256)
    priors = example("detection").MobileSSD(3, 128, 0.25, seed=0).priors.array * 256
    axes = pictures_in(figure, [[picture, picture]])
    for box, label in zip(boxes, labels, strict=True):
        _box(axes[0], box, COLOURS[label], 2)
        for prior in priors[iou(priors, box[None])[:, 0] > 0.4]:
            _box(axes[1], np.clip(prior, 0, 255), COLOURS[label], 0.8)


@of("denoise", "A slice of a stack: expected numbers of photons, and counted ones.")
def _denoise(figure: Figure) -> None:
    expected = example("denoise").clean(12, 96, seed=1)
    counted = np.random.default_rng(0).poisson(expected)
    pictures_in(figure, [[expected[6], counted[6]]], cmap="gray", vmin=0, vmax=24)


@of("fashion_mnist", "Drawn clothes, and their pictures in three epochs: mirrored and shifted.")
def _fashion_mnist(figure: Figure) -> None:
    module, rng = example("fashion_mnist"), np.random.default_rng(0)
    x = np.stack([clothes(label, rng) for label in range(5)])
    epochs = [module.AUGMENTED(x, np.random.default_rng(epoch)) for epoch in range(3)]
    pictures_in(figure, [[p[..., 0] for p in part] for part in (x, *epochs)], cmap="gray_r")


@of("deepbit", "Binary codes of drawn clothes, sorted by kind: a kind has similar codes.")
def _deepbit(figure: Figure) -> None:
    module = example("deepbit")
    x, labels = wardrobe(600)
    order = np.argsort(labels[:150], kind="stable")
    x = module.fashion_mnist.NORMALISED(x, np.random.default_rng(0))
    model = module.DeepBit(32, module.SmallTrunk(seed=0), 0)
    samples = SampleSet.from_arrays(x=x, y=np.zeros(len(x), np.float32)).map(module.Turned())
    module.fit(model, module.DeepBitLoss(), samples, 2, 0)
    bits = np.unpackbits(model.codes(x[:150])[order], axis=1)
    axes = figure.add_subplot()
    axes.imshow(bits, aspect="auto", cmap="gray", interpolation="nearest")
    for edge in np.flatnonzero(np.diff(labels[:150][order])):
        axes.axhline(edge + 0.5, color="tab:orange", linewidth=1.5)
    axes.set(xlabel="bit", ylabel="picture", xticks=[0, 8, 16, 24], yticks=[])


@of("resnet", "Parameters of ResNet-18, 34 and 50, block by block.")
def _resnet(figure: Figure) -> None:
    depths, counts = (18, 34, 50), []
    for depth in depths:
        sizes: Counter[str] = Counter()
        for name, parameter in example("resnet").ResNet(depth, 1000).named_parameters():
            sizes[".".join(name.split(".")[:2])] += parameter.data.size
        counts.append([size / 1e6 for size in sizes.values()])
    axes, blocks = figure.add_subplot(), zip_longest(*counts, fillvalue=0.0)
    stacked(axes, depths, (("", widths, f"C{i % 10}") for i, widths in enumerate(blocks)))
    axes.set(ylabel="depth", xlabel="million parameters, block by block")


@of("inception", "Output channels of the four branches of each Inception block.")
def _inception(figure: Figure) -> None:
    layers = dict(example("inception").InceptionV1(10, seed=0).modules())
    blocks = [name for name, layer in layers.items() if type(layer).__name__ == "Inception"]
    names = {"one": "1 x 1", "three": "3 x 3", "five": "5 x 5", "pooled": "pooled"}
    axes = figure.add_subplot()
    stacked(axes, range(1, len(blocks) + 1), (
        (label, [layers[f"{block}.{branch}"].bias.data.size for block in blocks], colour)
        for (branch, label), colour in zip(names.items(), COLOURS, strict=False)
    ))  # fmt: skip
    axes.set(xlabel="channels", ylabel="block")
    axes.legend(fontsize="small")


@of("pictures", "A drawn landscape, and its augmented pictures in eight epochs.")
def _pictures(figure: Figure) -> None:
    rng, file = np.random.default_rng(4), io.BytesIO()
    whole = landscape(rng)
    Image.fromarray(whole).save(file, "PNG")
    x = example("pictures").as_bytes(file.getvalue())
    seen = example("pictures").training(96)({"x": np.stack([x] * 8)}, rng)["x"]
    seen = np.clip(0.5 + 0.25 * seen, 0, 1)
    size = Image.fromarray(whole).resize((96, 96))
    pictures_in(figure, [[np.asarray(size) / 255, *seen[:2]], list(seen[2:5]), list(seen[5:8])])


@of("ncf", "Generated ratings by user and item, the most active and the most popular ones first.")
def _ncf(figure: Figure) -> None:
    module = example("ncf")
    whole, module.MOVIELENS_20M = module.MOVIELENS_20M, (1500, 600, 60_000)
    try:
        known = module.generate()
    finally:
        module.MOVIELENS_20M = whole
    met = np.zeros((1500, 600))
    met[known.users, known.items] = 1
    axes = figure.add_subplot()
    axes.imshow(met, aspect="auto", cmap="Blues", interpolation="antialiased")
    axes.set(xlabel="item", ylabel="user", xticks=[], yticks=[])


@of("text_classifier", "Word vectors of the trained classifier in two dimensions, by topic.")
def _text_classifier(figure: Figure) -> None:
    module = example("text_classifier")
    texts, topics = spoken(600)
    vocabulary = module.Vocabulary.build(texts, minimum=2)
    model = module.TextClassifier(len(vocabulary), 3, encoder="cnn", seed=0)
    x = module.Encode(vocabulary, 9)({"x": texts})["x"]
    fit(model, module.NLLLoss(), x, np.unique(topics, return_inverse=True)[1], 5e-3, 4)
    topic_of = {word: i for i, words in enumerate(SPOKEN.values()) for word in words}
    vectors = model.embedding.weight.data[[vocabulary.encode(word)[0] for word in topic_of]]
    vectors = vectors - vectors.mean(0)
    places = vectors @ np.linalg.svd(vectors, full_matrices=False)[2][:2].T
    axes = figure.add_subplot(xticks=[], yticks=[])
    axes.scatter(*places.T, s=0)  # for the limits of the axes
    for place, (word, topic) in zip(places, topic_of.items(), strict=True):
        axes.text(*place, word, color=COLOURS[topic], fontsize="small", ha="center")


@of("call_routing", "Calls by topic, and the specialist, or human, that gets them.")
def _call_routing(figure: Figure) -> None:
    module = example("call_routing")
    texts, topics = spoken(900, seed=1)
    names, kind = sorted(set(topics)), dict(zip(texts, topics, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "calls.safetensors"
        heard = module.train(texts, topics, file, 8, 0)
        model = daskdl.load(file)
    vocabulary = module.Vocabulary.build([text for text in texts if text not in set(heard)])
    ids = module.Encode(vocabulary, module.LENGTH)({"x": heard})["x"]
    scores = np.exp(model.predict(ids))
    goes = np.where(scores.max(1) > 0.5, scores.argmax(1), len(names))
    calls = Counter(zip((kind[text] for text in heard), goes.tolist(), strict=True))
    axes = figure.add_subplot(xlabel="calls about it")
    stacked(axes, names, (
        (f"to {name}", [calls[topic, place] for topic in names], colour)
        for place, (name, colour) in enumerate(
            zip([*names, "a human"], [*COLOURS[: len(names)], "lightgrey"], strict=True)
        )
    ))  # fmt: skip
    axes.legend(fontsize="x-small")


@of(
    "fine_tune_onnx",
    "Accuracy on new classes by number of training pictures: new head alone, or whole network.",
)
def _fine_tune_onnx(figure: Figure) -> None:
    from daskdl.interop import onnx

    module = example("fine_tune_onnx")
    x, y = wardrobe(900, seed=1)
    noise = np.random.default_rng(0).normal(0, 0.5, (900, 14, 14, 1))
    x, old = (x[:, ::2, ::2] / 255 + noise).astype(np.float32), y < 2
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding="same", seed=0), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(392, 16, seed=1), nn.ReLU(), nn.Linear(16, 2, seed=2),
    )  # fmt: skip
    fit(net, nn.CrossEntropyLoss(), x[old], y[old], 3e-3, 5)
    axes, counts = figure.add_subplot(), (50, 100, 200, 400)
    with tempfile.TemporaryDirectory() as folder:
        first, data, out = (Path(folder) / name for name in ("a.onnx", "data.npz", "b.onnx"))
        onnx.save(net, first, (14, 14, 1))
        features = daskdl.load(first).nodes[-2].outputs[0]
        for freeze, label in ((True, "head alone"), (False, "everything")):
            scores = []
            for count in counts:
                np.savez(data, x=x[~old][:count], y=y[~old][:count] - 2)
                scores.append(module.fine_tune(first, data, features, out, epochs=8, freeze=freeze))
            axes.plot(counts, scores, marker="o", label=label)
    axes.set(xlabel="pictures", ylabel="accuracy", ylim=(0, 1.02))
    axes.legend(fontsize="small")


@of(
    "image_features",
    "From picture to code: the box of the best object, cut out, and the bits of its features.",
)
def _image_features(figure: Figure) -> None:
    module, deepbit = example("image_features"), example("deepbit")
    picture, boxes, _ = _scene(9)
    left, top, right, bottom = module.pixels_of(boxes[0] / len(picture), picture)
    crop = picture[top:bottom, left:right]
    x = module.Look(28, 1, 0.286, 0.353)([crop])
    code = module.packed(deepbit.DeepBit(64, deepbit.SmallTrunk(seed=0), 0).predict(x))
    axes = pictures_in(figure, [[picture, crop, np.unpackbits(code).reshape(8, 8)]], cmap="gray")
    _box(axes[0], (left, top, right, bottom), "red", 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)
