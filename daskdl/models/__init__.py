"""The zoo: networks known by their papers, built from daskdl.nn."""

from daskdl.models.inception import AuxiliaryLoss, InceptionV1
from daskdl.models.lenet import LeNet5
from daskdl.models.ncf import NeuMF
from daskdl.models.resnet import ResNet
from daskdl.models.seq2seq import ConvLSTMForecaster
from daskdl.models.text import TextClassifier
from daskdl.nn import load  # here all of the zoo is known by name, as model files call it

__all__ = [
    "AuxiliaryLoss",
    "ConvLSTMForecaster",
    "InceptionV1",
    "LeNet5",
    "NeuMF",
    "ResNet",
    "TextClassifier",
    "load",
]
