"""The zoo: networks known by their papers, built from daskdl.nn."""

from daskdl.models.inception import AuxiliaryLoss, InceptionV1
from daskdl.models.lenet import LeNet5
from daskdl.models.resnet import ResNet
from daskdl.models.seq2seq import ConvLSTMForecaster

__all__ = ["AuxiliaryLoss", "ConvLSTMForecaster", "InceptionV1", "LeNet5", "ResNet"]
