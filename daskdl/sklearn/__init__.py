"""scikit-learn estimators for networks of daskdl."""

from daskdl.errors import MissingExtraError

try:
    from sklearn.utils.validation import validate_data  # noqa: F401  (scikit-learn from 1.6 on)
except ImportError as error:
    raise MissingExtraError(
        "daskdl.sklearn needs scikit-learn from 1.6 on, which is not installed: "
        "pip install 'daskdl[sklearn]'."
    ) from error

from daskdl.sklearn.classifier import Classifier
from daskdl.sklearn.regressor import Regressor

__all__ = ["Classifier", "Regressor"]
