"""``python -m ci.bench.text_task FOLDER``: sections of Debian packages predicted from summaries.

A real task whose data is on each Debian or Ubuntu: summary and section of a package, from
``apt-cache dumpavail``. Packages of one source are all trained on or all tested. The methods are
TF-IDF with logistic regression, a network of ours trained from scratch, an encoder's vectors with
logistic regression, and the encoder trained by LoRA.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from daskdl import SampleSet, Trainer, text
from daskdl.data.text import Encode, Vocabulary
from daskdl.models import TextClassifier
from daskdl.nn import CrossEntropyLoss, NLLLoss
from daskdl.optim import Adam, AdamW

SECTIONS = [
    "database", "editors", "electronics", "fonts", "games", "graphics", "hamradio", "mail", "math",
    "science", "sound", "video", "web",
]  # fmt: skip

Texts = list[str]
Labels = Any


def packages(most: int) -> tuple[tuple[Texts, Labels], tuple[Texts, Labels]]:
    """Return summaries and sections to train on, ``most`` a section at most, and to test on."""
    shown = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True)
    of_source: dict[str, tuple[str, str]] = {}
    for paragraph in shown.stdout.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.split("\n") if ": " in line)
        section = fields.get("Section", "").rpartition("/")[2]
        if section in SECTIONS and "Description" in fields:
            source = fields.get("Source", fields["Package"]).split()[0]
            of_source.setdefault(source, (fields["Description"], section))  # one of each source
    training, testing = defaultdict[str, Texts](list), defaultdict[str, Texts](list)
    for source in sorted(of_source, key=lambda name: hashlib.sha256(name.encode()).digest()):
        summary, section = of_source[source]
        part = testing if hashlib.sha256(source.encode()).digest()[0] % 4 == 0 else training
        if len(part[section]) < (most if part is training else 50):
            part[section].append(summary)
    return _joined(training), _joined(testing)


def _joined(by_section: dict[str, Texts]) -> tuple[Texts, Labels]:
    texts = [one for section in SECTIONS for one in by_section[section]]
    return texts, np.repeat(np.arange(len(SECTIONS)), [len(by_section[s]) for s in SECTIONS])


def regression(train: Any, labels: Labels, test: Any) -> Labels:
    """Return the classes of test rows by a logistic regression with cross-validated penalty."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(LogisticRegression(max_iter=2000), {"C": [1, 10, 100]}, cv=3)
    return search.fit(train, labels).predict(test)


def by_words(train: Texts, labels: Labels, test: Texts) -> Labels:
    """Return classes by TF-IDF of words and pairs of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    return regression(counts.fit_transform(train), labels, counts.transform(test))


def by_lstm(train: Texts, labels: Labels, test: Texts) -> Labels:
    """Return classes by a network that is trained on these texts alone."""
    vocabulary = Vocabulary.build(train)
    encode = Encode(vocabulary, 16)
    network = TextClassifier(len(vocabulary), classes=len(SECTIONS), encoder="lstm", seed=0)
    samples = SampleSet.from_arrays(x=np.array(train, object), y=labels).map_batches(encode)
    Trainer(network, NLLLoss(), Adam(2e-3)).fit(samples, epochs=20, batch_size=32, progress=False)
    return network.predict(encode({"x": test})["x"]).argmax(-1)


def by_vectors(folder: Path, train: Texts, labels: Labels, test: Texts) -> Labels:
    """Return classes by the encoder's vectors."""
    model = text.load(folder)
    return regression(model(train), labels, model(test))


def by_lora(folder: Path, train: Texts, labels: Labels, test: Texts) -> Labels:
    """Return classes by the encoder with trained adapters."""
    model = text.lora(text.load(folder, "classify", labels=SECTIONS), rank=16)
    samples = SampleSet.from_arrays(x=np.array(train, object), y=labels)
    tokens = samples.map_batches(text.Tokens(model.tokenizer))
    Trainer(model.network, CrossEntropyLoss(), AdamW(2e-3)).fit(
        tokens, epochs=5, batch_size=32, progress=False
    )
    return model(test).argmax(-1)


def main() -> None:
    """Print the accuracy of each method on the test texts, by number of training texts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of an encoder")
    parser.add_argument("--texts", type=int, nargs="+", default=[8, 32, 128])
    options = parser.parse_args()
    methods: dict[str, Callable[[Texts, Labels, Texts], Labels]] = {
        "TF-IDF, logistic regression": by_words,
        "LSTM, from nothing": by_lstm,
        "encoder, logistic regression": lambda *a: by_vectors(options.folder, *a),
        "encoder, LoRA": lambda *a: by_lora(options.folder, *a),
    }
    for most in options.texts:
        (train, labels), (test, expected) = packages(most)
        print(f"{most} of a section, {len(train)} in all; tested on {len(test)}", flush=True)
        for name, method in methods.items():
            began = time.perf_counter()
            right = np.mean(method(train, labels, test) == expected)
            print(f"  {name:<30}{right:6.1%}{time.perf_counter() - began:8.1f} s", flush=True)


if __name__ == "__main__":
    main()
