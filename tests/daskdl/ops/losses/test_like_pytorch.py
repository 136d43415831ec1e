"""Values and gradients of losses against PyTorch's, with all of their settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl.ops import losses
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_loss

SHAPES, DTYPES = hnp.array_shapes(max_dims=3, max_side=4), st.sampled_from(["f4", "f8"])
COUNTS, YES_NO = st.integers(1, 6), st.booleans()
WIDTHS, MARGINS = st.sampled_from([0.1, 1.0, 2.5]), st.sampled_from([0.0, 0.3, 1.0])


class Case(NamedTuple):
    """A loss: how its arrays and settings are drawn, PyTorch's loss, arrays with a gradient."""

    drawn: Callable[[Any], tuple[tuple[np.ndarray, ...], dict[str, Any]]]
    theirs: Callable[..., Any]
    wanted: int = 1


def of(name: str, **called: str) -> Callable[..., Any]:
    """Return PyTorch's function of a name, without a reduction; some settings have other names."""

    def theirs(torch: Any, *arrays: Any, **settings: Any) -> Any:
        settings = {called.get(key, key): value for key, value in settings.items()}
        return getattr(torch.nn.functional, name)(*arrays, reduction="none", **settings)

    return theirs


def rng(*shape: int) -> np.random.Generator:
    return np.random.default_rng([3, *shape])


def two(d: Any) -> tuple[np.ndarray, np.ndarray]:
    shape = d(SHAPES)
    return 2 * normal(*shape), normal(*shape, seed=1)


def signs(*shape: int) -> np.ndarray:
    return rng(*shape).choice([-1.0, 1.0], shape)


def with_signs(d: Any, scale: float = 2) -> tuple[np.ndarray, np.ndarray]:
    shape = d(SHAPES)
    return scale * normal(*shape), signs(*shape)


def embeddings(d: Any, count: int) -> tuple[np.ndarray, ...]:
    n, size = d(COUNTS), d(st.integers(2, 5))
    return tuple(normal(n, size, seed=i) for i in range(count))


def classes(d: Any, shapes: Any = SHAPES) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, Any]]:
    """Return scores, near or far apart, and labels, and maybe a weight for each class."""
    shape, count = d(shapes), d(COUNTS)
    scores = d(st.sampled_from([1, 1e4])) * normal(*shape, count)
    labels = rng(*shape).integers(0, count, shape)
    return (scores, labels), {"weight": rng().uniform(0, 2, count) if d(YES_NO) else None}


def probabilities(d: Any) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, Any]]:
    (scores, _), settings = classes(d)
    return (scores, rng().dirichlet(np.ones(scores.shape[-1]), scores.shape[:-1])), settings


def divergence(d: Any) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, Any]]:
    (scores, p), _ = probabilities(d)
    log = d(YES_NO)
    if not log and p.shape[-1] > 1:
        p[..., 0] = 0  # 0 log 0 is 0
    return (scores, np.log(p) if log else p), {"log_target": log}


def several_labels(d: Any) -> tuple[np.ndarray, np.ndarray]:
    n, count = d(COUNTS), d(COUNTS)
    labels = np.array([rng(i).permutation(count) for i in range(n)])
    labels[np.arange(count) >= rng(n).integers(0, count + 1, n)[:, None]] = -1
    return normal(n, count), labels


def binary(d: Any, prediction: Callable[..., np.ndarray], *weights: str) -> Any:
    """Return predictions, targets that are sharp or soft, and weights of elements or none."""
    shape = d(SHAPES)
    target = rng(*shape).random(shape)
    weight = {
        name: np.asarray(3 * rng().random(d(st.sampled_from([shape[-1:], ()]))))
        if d(YES_NO)
        else None
        for name in weights
    }
    return (prediction(shape), target if d(YES_NO) else np.round(target)), weight


def counted(d: Any) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, Any]]:
    log, shape = d(YES_NO), d(SHAPES)
    x = normal(*shape)
    counts = rng().poisson(2, shape).astype(float)
    return (x if log else np.abs(x) + 0.1, counts), {"log": log, "full": d(YES_NO)}


def uncertain(d: Any) -> tuple[np.ndarray, ...]:
    shape = d(SHAPES)
    variance = np.abs(normal(*shape, seed=1)) + 0.05
    variance.flat[0] *= d(YES_NO)  # less than eps
    return normal(*shape), variance, normal(*shape, seed=2)


def second(name: str, **called: str) -> Callable[..., Any]:
    """Like :func:`of`, for arrays whose classes PyTorch has on the second axis."""

    def theirs(torch: Any, x: Any, t: Any, **settings: Any) -> Any:
        x, t = (a.movedim(-1, 1).contiguous() if a.is_floating_point() else a for a in (x, t))
        return of(name, **called)(torch, x, t, **settings)

    return theirs


def kl_from_standard(torch: Any, mean: Any, log_variance: Any) -> Any:
    normals = torch.distributions.Normal
    posterior, standard = normals(mean, (log_variance / 2).exp()), normals(0.0, 1.0)
    return torch.distributions.kl_divergence(posterior, standard).sum(-1)


SMOOTHING = st.sampled_from([0.0, 0.1, 1.0])
CASES = {
    "squared_error": Case(lambda d: (two(d), {}), of("mse_loss"), 2),
    "absolute_error": Case(lambda d: (two(d), {}), of("l1_loss"), 2),
    "huber": Case(lambda d: (two(d), {"delta": d(WIDTHS)}), of("huber_loss"), 2),
    "smooth_l1": Case(
        lambda d: (two(d), {"beta": d(WIDTHS | st.just(0.0))}), of("smooth_l1_loss"), 2
    ),
    "kl_divergence": Case(divergence, lambda *a, **k: of("kl_div")(*a, **k).sum(-1)),
    "gaussian_kl": Case(lambda d: (embeddings(d, 2), {}), kl_from_standard, 2),
    "poisson_nll": Case(counted, of("poisson_nll_loss", log="log_input")),
    "gaussian_nll": Case(
        lambda d: (uncertain(d), {"eps": 0.01}),
        lambda torch, m, v, t, **k: of("gaussian_nll_loss")(torch, m, t, v, **k), 2,
    ),
    "hinge": Case(
        lambda d: (with_signs(d), {"margin": d(MARGINS), "squared": d(YES_NO)}),
        lambda _, x, t, margin, squared: (margin - t * x).clamp(min=0) ** (2 if squared else 1),
    ),
    "soft_margin": Case(
        lambda d: (with_signs(d, d(st.sampled_from([1, 30]))), {}), of("soft_margin_loss")
    ),
    "hinge_embedding": Case(
        lambda d: (with_signs(d), {"margin": d(MARGINS)}), of("hinge_embedding_loss")
    ),
    "multi_margin": Case(
        lambda d: (lambda a, s: (a, {**s, "p": d(st.sampled_from([1, 2])), "margin": d(MARGINS)}))(
            *classes(d, st.tuples(COUNTS))
        ),
        of("multi_margin_loss"),
    ),
    "multilabel_margin": Case(lambda d: (several_labels(d), {}), of("multilabel_margin_loss")),
    "margin_ranking": Case(
        lambda d: ((*(a := two(d)), signs(*a[0].shape)), {"margin": d(MARGINS)}),
        of("margin_ranking_loss"), 2,
    ),
    "cosine_embedding": Case(
        lambda d: ((*(a := embeddings(d, 2)), signs(len(a[0]))), {"margin": d(MARGINS)}),
        of("cosine_embedding_loss"), 2,
    ),
    "triplet": Case(
        lambda d: (
            embeddings(d, 3),
            {
                "p": d(st.sampled_from([1.0, 2.0, 3.0])), "swap": d(YES_NO),
                "margin": d(st.sampled_from([0.2, 1.0, 4.0])),
            },
        ),
        of("triplet_margin_loss"), 3,
    ),
    "binary_cross_entropy": Case(
        lambda d: binary(d, lambda shape: rng(5).uniform(0.02, 0.98, shape), "weight"),
        of("binary_cross_entropy"),
    ),
    "binary_cross_entropy_with_logits": Case(
        lambda d: binary(
            d, lambda shape: d(st.sampled_from([1, 100])) * normal(*shape), "weight", "pos_weight"
        ),
        of("binary_cross_entropy_with_logits"),
    ),
    "cross_entropy": Case(
        lambda d: (lambda a, s: (a, {**s, "smoothing": d(SMOOTHING)}))(*classes(d)),
        second("cross_entropy", smoothing="label_smoothing"),
    ),
    "cross_entropy of probabilities": Case(
        lambda d: (lambda a, s: (a, {**s, "smoothing": d(SMOOTHING)}))(*probabilities(d)),
        second("cross_entropy", smoothing="label_smoothing"), 2,
    ),
    "nll": Case(classes, second("nll_loss")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@given(data=st.data(), dtype=DTYPES, weighted=YES_NO)
def test_values_and_gradients_are_pytorchs(name, data, dtype, weighted, torch):
    case, ours = CASES[name], getattr(losses, name.partition(" ")[0])
    arrays, settings = case.drawn(data.draw)
    there = {
        key: torch.tensor(value.astype(dtype)) if isinstance(value, np.ndarray) else value
        for key, value in settings.items()
    }
    check_loss(
        torch,
        lambda *x, **k: ours(*x, **settings, **k),
        lambda *x: case.theirs(torch, *x, **there),
        *arrays, wanted=(True,) * case.wanted, dtype=dtype, weighted=weighted,
    )  # fmt: skip
