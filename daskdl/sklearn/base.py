"""Base classes of the estimators from scikit-learn, which is an extra."""

from __future__ import annotations

from daskdl.errors import MissingExtraError

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.metrics import accuracy_score, r2_score
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        _check_sample_weight,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )
except ImportError as error:
    raise MissingExtraError(
        "daskdl.sklearn needs scikit-learn from 1.6 on, which is not installed: "
        "pip install 'daskdl[sklearn]'."
    ) from error

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "RegressorMixin",
    "_check_sample_weight",
    "accuracy_score",
    "check_classification_targets",
    "check_is_fitted",
    "check_random_state",
    "column_or_1d",
    "r2_score",
    "validate_data",
]
