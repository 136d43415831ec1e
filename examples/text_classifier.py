"""Text classification: texts to tokens to vectors to classes, trained and applied on Dask workers.

Data: a Parquet file or folder with columns `text` and `label` (numbers from 0), or a folder with a
folder of .txt files for each class, named by the class. Parquet needs the extra "parquet":
pip install -e '.[parquet]'
Run: python examples/text_classifier.py reviews.parquet --encoder cnn --workers 2
     python examples/text_classifier.py 20news/ --vectors glove.6B.100d.txt --predictions out/
"""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dask.bag as db

from daskdl import SampleSet, Trainer, connect
from daskdl.console import argument_parser, natural, positive, script
from daskdl.data.results import write_results
from daskdl.data.text import Encode, Vocabulary, read_vectors
from daskdl.errors import DataError
from daskdl.metrics import Accuracy
from daskdl.models import TextClassifier
from daskdl.nn import NLLLoss
from daskdl.optim import Adagrad


def read(path: Path) -> tuple[SampleSet, int]:
    """Return texts x and labels y, and the number of classes."""
    if files := sorted(path.glob("*/*.txt")):
        classes = sorted({file.parent.name for file in files})
        bag = db.from_sequence(files, npartitions=8)
        bag = bag.map(lambda file: (file.read_text("utf-8"), classes.index(file.parent.name)))
        return SampleSet.from_bag(bag), len(classes)
    if not (path.suffix == ".parquet" or any(path.rglob("*.parquet"))):
        raise DataError(f"{path}: expected Parquet, or a folder of */*.txt, found neither")
    samples = SampleSet.from_parquet(path, x="text", y="label")
    labels = samples.to_dask_array("y")
    if labels.dtype.kind not in "iu":
        raise DataError(f"{path}, label: expected numbers from 0, found {labels.dtype}")
    return samples, int(labels.max().compute()) + 1


def main(arguments: list[str] | None = None) -> float:
    """Train, predict, and return the accuracy on held-out texts."""
    args = parse(arguments)
    with connect("local", workers=args.workers) if args.workers else nullcontext():
        samples, classes = read(args.data)
        training, testing = samples.split([0.8, 0.2], seed=args.seed)

        vocabulary = Vocabulary.build(training, minimum=args.minimum, size=args.words)
        encode = Encode(vocabulary, args.length)  # texts become numbers once, before training
        training, testing = (part.map_batches(encode).persist() for part in (training, testing))
        print(training, vocabulary, sep="\n")

        model = TextClassifier(len(vocabulary), classes, encoder=args.encoder, seed=args.seed)
        if args.vectors:
            model.load_vectors(read_vectors(args.vectors, vocabulary).table(vocabulary))
        trainer = Trainer(model, NLLLoss(), Adagrad(args.rate), args.seed, [Accuracy()])
        history = trainer.fit(
            training, epochs=args.epochs, batch_size=args.batch_size, shards=args.workers or 1,
            validation=testing,
        )  # fmt: skip
        print(history.to_frame(epochs=True).to_string())

        labels = model.predict_class(testing)  # lazy: computed where the samples are
        accuracy = float((labels == testing.to_dask_array("y")).mean().compute())
        if args.predictions:
            run = hashlib.sha256(model.flat).hexdigest()[:12]  # files of another model are refused
            print(f"{write_results(labels, args.predictions, version=run).samples:,} written")
    print(f"accuracy on {len(testing):,} new texts: {accuracy:.4f}")
    return accuracy


def parse(arguments: list[str] | None) -> Any:
    """Return the options of the command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("data", type=Path, help="file or folder, see above")
    parser.add_argument("--encoder", choices=["lstm", "gru", "cnn"], default="cnn")
    parser.add_argument("--vectors", type=Path, help="pre-trained, in GloVe's text format")
    parser.add_argument("--predictions", type=Path, help="folder for the predicted classes")
    parser.add_argument("--words", type=positive, default=20_000, help="of the vocabulary")
    parser.add_argument(
        "--minimum", type=positive, default=2, help="times that a word has to occur"
    )
    parser.add_argument(
        "--length", type=positive, default=200, help="words of a text that are read"
    )
    parser.add_argument("--epochs", type=positive, default=3)
    parser.add_argument("--batch-size", type=positive, default=128)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--seed", type=natural, default=0)
    parser.add_argument("--workers", type=natural, help="Dask workers; without, this process alone")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    script(main)
