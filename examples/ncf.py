"""Neural collaborative filtering: NeuMF on MovieLens, ranked among items that a user has not rated.

The last item of each user is held out. Training draws 4 unrated items for each rated one, on the
workers and anew in each epoch. The held-out item is then ranked by score among 999 (and 100) items
that the user has not rated: HR@10 is the share of users for whom it is among the first ten, NDCG@10
also weighs its rank.

Data: lines of user, item, rating and time below a line of names, such as
`recbole/dataset_example/ml-100k/ml-100k.inter` (MovieLens-100k) in the wheel `recbole` 1.2.1; or
`generated`, random data of the size of MovieLens-20M, to measure speed.
Run: python examples/ncf.py ml-100k.inter  # some 3 minutes on two free cores
     python examples/ncf.py ml-100k.inter --seeds 5 --target 0.66 --among 100
     python examples/ncf.py generated --sparse --batch-size 2048 --iterations 100
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from daskdl import SampleSet, Trainer, connect
from daskdl.console import argument_parser, natural, positive, script
from daskdl.data.sources.interactions import Interactions
from daskdl.errors import DataError
from daskdl.metrics import NDCG, HitRatio, Metric
from daskdl.metrics.metric import Statistics
from daskdl.models import NeuMF
from daskdl.nn import BCEWithLogitsLoss
from daskdl.optim import Adam
from daskdl.train import Callback

#: Users, items and ratings; shift and power of the k-th user's and item's share of the ratings,
#: which falls off as (k + shift) ** -power.
MOVIELENS_20M = 138_493, 26_744, 20_000_263
USERS, ITEMS = (500, 1.0), (200, 1.6)


def read(path: Path) -> Interactions:
    """Read ratings; users and items are renumbered from 0 in the order of their numbers."""
    try:
        with warnings.catch_warnings(category=UserWarning, action="error"):  # no lines
            users, items, times = np.loadtxt(path, skiprows=1, usecols=(0, 1, 3), ndmin=2).T
    except (OSError, ValueError, UserWarning) as error:
        raise DataError(
            f"{path}: expected lines of user, item, rating and time, all numbers, below one of "
            f"names; {error}"
        ) from None
    users, items = (np.unique(numbers, return_inverse=True)[1] for numbers in (users, items))
    return Interactions(users, items, times)


def generate(seed: int = 0) -> Interactions:
    """Draw distinct pairs of user and item, whose shares fall off as powers of their rank."""
    rng, (users, items, ratings) = np.random.default_rng(seed), MOVIELENS_20M

    def draw(count: int, of: int, shift: float, power: float) -> np.ndarray:
        share = np.cumsum((np.arange(of) + shift) ** -power)
        return np.searchsorted(share / share[-1], rng.random(count))

    pairs = np.empty(0, np.int64)
    while len(pairs) < ratings:
        more = int(1.2 * (ratings - len(pairs)))
        drawn = draw(more, users, *USERS) * items + draw(more, items, *ITEMS)
        pairs = np.sort(np.append(pairs, drawn))
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]  # each once
    pairs = rng.permutation(pairs)[:ratings]
    return Interactions(pairs // items, pairs % items, user_count=users, item_count=items)


@dataclass(frozen=True)
class Among(Metric):
    """A metric of the rank of the first candidate among the first ``negatives`` others."""

    metric: Metric
    negatives: int

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Return the statistics of scores (N, 1 + negatives or more)."""
        scores = np.asarray(prediction)[:, : 1 + self.negatives]
        return self.metric.statistics(scores, np.zeros(len(scores), np.int64), sample_weight)

    def value(self, statistics: Mapping[str, Any]) -> float:
        """Return the mean over the users."""
        return self.metric.value(statistics)


METRICS = {
    f"{name}@10 of {n}": Among(metric, n)
    for n in (999, 100)
    for name, metric in (("HR", HitRatio(10)), ("NDCG", NDCG(10)))
}


def line_of(values: Mapping[str, float]) -> str:
    """Return a line of the ranking metrics."""
    return "  ".join(f"{name} {values[name]:.4f}" for name in METRICS)


class Target(Callback):
    """Prints the rankings of each epoch, and ends the run when HR@10 is high enough."""

    def __init__(self, target: float, among: int) -> None:
        self.target, self.metric = target, f"HR@10 of {among}"
        self.started = time.perf_counter()
        self.best, self.reached = dict.fromkeys(METRICS, 0.0), float("nan")

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: Mapping[str, float]) -> bool:
        """Return whether the target is reached."""
        seconds = time.perf_counter() - self.started
        values = {name: logs[f"val_{name}"] for name in METRICS}
        begin = f"epoch {epoch + 1:2}, {seconds:5.0f} s: loss {logs['loss']:.4f}"
        print(f"{begin}  {line_of(values)}", flush=True)
        self.best = {name: max(self.best[name], value) for name, value in values.items()}
        if values[self.metric] >= self.target:
            self.reached = seconds
        return values[self.metric] >= self.target


def train(known: Interactions, seed: int, args: Any) -> Target:
    """Train one model; return its best metrics and the time to the target."""
    training, held_out = known.leave_one_out()
    partitions = max(1, args.workers or 1)
    samples = SampleSet.from_arrays(x=training.pairs, partitions=partitions)
    candidates = known.candidates(held_out, 999, seed=seed)
    wanted = np.zeros(candidates.shape[:2], np.float32)
    wanted[:, 0] = 1
    popular = np.bincount(training.items, minlength=known.item_count)[candidates[..., 1]]
    by_popularity = {name: metric(popular, None) for name, metric in METRICS.items()}
    print(f"seed {seed}, by popularity alone: {line_of(by_popularity)}")
    model = NeuMF(known.user_count, known.item_count, sparse=args.sparse, seed=seed)
    target = Target(args.target, args.among)
    Trainer(model, BCEWithLogitsLoss(), Adam(args.rate), seed=seed, metrics=METRICS).fit(
        samples.map(training.with_negatives(4)),
        epochs=args.epochs,
        batch_size=args.batch_size,
        validation=SampleSet.from_arrays(x=candidates, y=wanted, partitions=partitions),
        callbacks=[target],
        progress=False,
        training_metrics=False,  # training batches have no candidates to rank
    )
    return target


def speed(known: Interactions, args: Any) -> float:
    """Train for some iterations; return the pairs of user and item a second."""
    samples = SampleSet.from_arrays(x=known.pairs, partitions=max(1, args.workers or 1))
    model = NeuMF(known.user_count, known.item_count, sparse=args.sparse)
    history = Trainer(model, BCEWithLogitsLoss(), Adam(args.rate)).fit(
        samples.map(known.with_negatives(4)),
        iterations=args.iterations,
        batch_size=args.batch_size,
        progress=False,
    )
    return 5 * history["samples"][1:].sum() / history["seconds"][1:].sum()  # the first compiles


def main(arguments: list[str] | None = None) -> list[Target]:
    """Train one model for each seed, and print the number that reached the target."""
    args = parse(arguments)
    known = generate() if args.data == "generated" else read(Path(args.data))
    print(
        f"{known.user_count:,} users, {known.item_count:,} items, {len(known):,} ratings",
        flush=True,
    )
    with connect("local", workers=args.workers) if args.workers else nullcontext():
        if args.iterations is not None:
            print(f"{speed(known, args):,.0f} pairs a second")
            return []
        results = [train(known, seed, args) for seed in range(args.seed, args.seed + args.seeds)]
    for name in METRICS:
        print(f"best {name}: {', '.join(f'{result.best[name]:.4f}' for result in results)}")
    took = [f"{result.reached:.0f} s" for result in results if result.reached > 0]
    if args.target < 1:
        print(f"{len(took)} of {len(results)} reached HR@10 of {args.among} of", args.target, *took)
    return results


def parse(arguments: list[str] | None) -> Any:
    """Return the options of the command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("data", help="file of ratings, or generated")
    parser.add_argument("--epochs", type=positive, default=20)
    parser.add_argument(
        "--batch-size", type=positive, default=256, help="ratings; 4 negatives to each"
    )
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--sparse", action="store_true", help="train tables by the rows of a batch")
    parser.add_argument("--seed", type=natural, default=0)
    parser.add_argument("--seeds", type=positive, default=1, help="runs, each with the next seed")
    parser.add_argument("--target", type=float, default=1.0, help="HR@10 to stop at")
    parser.add_argument("--among", type=int, choices=[999, 100], default=999, help="of the target")
    parser.add_argument(
        "--iterations", type=positive, help="measure the speed of this number instead"
    )
    parser.add_argument("--workers", type=natural, help="Dask workers; without, this process alone")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    script(main)
