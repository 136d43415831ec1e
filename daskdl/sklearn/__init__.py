"""scikit-learn's estimators of daskdl's networks."""

from daskdl.sklearn.classifier import Classifier
from daskdl.sklearn.regressor import Regressor

__all__ = ["Classifier", "Regressor"]
