from daskdl.data.image.affine import Affine, HorizontalFlip, Rotate, VerticalFlip
from daskdl.data.image.boxes import Boxes
from daskdl.data.image.choice import PerImage, RandomApply, RandomChoice
from daskdl.data.image.colour import ChannelOrder, ColorJitter, Lighting
from daskdl.data.image.crop import CenterCrop, FixedCrop, RandomCrop, RandomResizedCrop
from daskdl.data.image.decode import Decode, decode
from daskdl.data.image.detection import NormalizeBoxes, RandomIoUCrop
from daskdl.data.image.fill import Expand, Fill, Pad, RandomErasing
from daskdl.data.image.images import Images
from daskdl.data.image.resize import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Normalize,
    RandomShortestSide,
    Resize,
    ShortestSide,
    ToFloat,
)
from daskdl.data.image.transform import Columns, Pipeline, Transform

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "Affine",
    "Boxes",
    "CenterCrop",
    "ChannelOrder",
    "ColorJitter",
    "Columns",
    "Decode",
    "Expand",
    "Fill",
    "FixedCrop",
    "HorizontalFlip",
    "Images",
    "Lighting",
    "Normalize",
    "NormalizeBoxes",
    "Pad",
    "PerImage",
    "Pipeline",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomErasing",
    "RandomIoUCrop",
    "RandomResizedCrop",
    "RandomShortestSide",
    "Resize",
    "Rotate",
    "ShortestSide",
    "ToFloat",
    "Transform",
    "VerticalFlip",
    "decode",
]
