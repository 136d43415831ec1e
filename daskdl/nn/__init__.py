"""Modules: layers with parameters, containers, losses, and the model file."""

from daskdl.nn.activations import LeakyReLU, ReLU, Sigmoid, Softplus, Tanh
from daskdl.nn.batchnorm import BatchNorm
from daskdl.nn.conv2d import Conv2d
from daskdl.nn.convlstm import ConvLSTM
from daskdl.nn.draws import drawing
from daskdl.nn.dropout import Dropout
from daskdl.nn.linear import Linear
from daskdl.nn.losses import CrossEntropyLoss, MSELoss, PrecipitationLoss
from daskdl.nn.modelfile import load, read_metadata, save
from daskdl.nn.module import Buffer, Module, Parameter
from daskdl.nn.sequential import Sequential
from daskdl.nn.shape import DepthToSpace, Flatten, SpaceToDepth

__all__ = [
    "BatchNorm",
    "Buffer",
    "Conv2d",
    "ConvLSTM",
    "CrossEntropyLoss",
    "DepthToSpace",
    "Dropout",
    "Flatten",
    "LeakyReLU",
    "Linear",
    "MSELoss",
    "Module",
    "Parameter",
    "PrecipitationLoss",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Softplus",
    "SpaceToDepth",
    "Tanh",
    "drawing",
    "load",
    "read_metadata",
    "save",
]
