"""Optim methods: pure functions of weights, gradient and state over one flat vector."""

from daskdl.optim.adagrad import Adagrad
from daskdl.optim.adam import Adam
from daskdl.optim.method import Method
from daskdl.optim.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "Method"]
