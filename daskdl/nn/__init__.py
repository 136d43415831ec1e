"""Modules: layers with parameters, containers, losses, and the model file."""

from daskdl.nn.activations import LeakyReLU, ReLU, Sigmoid, Softplus, Tanh
from daskdl.nn.conv2d import Conv2d
from daskdl.nn.convlstm import ConvLSTM
from daskdl.nn.linear import Linear
from daskdl.nn.losses import CrossEntropyLoss, MSELoss, PrecipitationLoss
from daskdl.nn.modelfile import load, read_metadata, save
from daskdl.nn.module import Module, Parameter
from daskdl.nn.sequential import Sequential
from daskdl.nn.shape import DepthToSpace, Flatten, SpaceToDepth

__all__ = [
    "Conv2d",
    "ConvLSTM",
    "CrossEntropyLoss",
    "DepthToSpace",
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
    "load",
    "read_metadata",
    "save",
]
