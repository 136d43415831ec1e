"""The zoo: networks of published papers, built from daskdl.nn."""

from daskdl.models.deepbit import DeepBit, DeepBitLoss, Turned
from daskdl.models.googlenet import GoogLeNet
from daskdl.models.inception import AuxiliaryLoss, InceptionV1
from daskdl.models.lenet import LeNet5
from daskdl.models.mobilenet import MobileNetTrunk
from daskdl.models.multibox import BoxTargets, MultiBoxLoss, PriorBoxes
from daskdl.models.ncf import NeuMF
from daskdl.models.resnet import ResNet
from daskdl.models.segmentation import FPN, UNet
from daskdl.models.seq2seq import ConvLSTMForecaster
from daskdl.models.ssd import SSD, SSD300, MobileSSD
from daskdl.models.tabular import TabularNet
from daskdl.models.text import TextClassifier
from daskdl.models.vgg import VGG16
from daskdl.nn import load  # importing it here makes all models known to it by name

__all__ = [
    "FPN",
    "SSD",
    "SSD300",
    "VGG16",
    "AuxiliaryLoss",
    "BoxTargets",
    "ConvLSTMForecaster",
    "DeepBit",
    "DeepBitLoss",
    "GoogLeNet",
    "InceptionV1",
    "LeNet5",
    "MobileNetTrunk",
    "MobileSSD",
    "MultiBoxLoss",
    "NeuMF",
    "PriorBoxes",
    "ResNet",
    "TabularNet",
    "TextClassifier",
    "Turned",
    "UNet",
    "load",
]
