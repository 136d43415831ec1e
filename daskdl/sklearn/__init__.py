"""scikit-learn estimators for networks of daskdl."""

from daskdl.sklearn.classifier import Classifier
from daskdl.sklearn.regressor import Regressor

__all__ = ["Classifier", "Regressor"]
