"""Types of forks: layer types that many nets use and stock Caffe lacks, as torch modules, by family.

Each computes what its `source`, a fork, computes, forward and gradient. If forks use one type name for different
layers, the fields of the prototxt, the numbers of bottoms and tops, or the blobs in the weights decide.
"""

import functools
import importlib
from typing import TypedDict

import torch

from ...base import CaffeValueError
from ...caffe_files.parameters import plain
from ..stock import StockDefinition, StockLayer


class Placement(TypedDict):
    """Where and as what a forward makes a tensor: torch.arange(n, **placement)."""

    dtype: torch.dtype
    device: torch.device | str


class ForkLayer(StockLayer):
    """The base of the types of forks."""

    types: tuple[str, ...] = ()  # names of the type in prototxts
    source = ""  # the public fork that it agrees with
    variant = ""  # its name for `choose`, if the type has several variants
    words: tuple[str, ...] = ()  # enum fields of stock Caffe for which the source has more values
    native = ""  # the toolkit's own layer of this type, which runs if it is chosen
    native_on_gpu = False  # run that layer unasked if its GPU library is built, because it is much faster

    @classmethod
    def fits(cls, definition: StockDefinition) -> bool:
        """Does a layer with these fields and stored blobs fit this variant?"""
        return True


# The types of each module, which is imported when a net has one of them.
FAMILIES = {
    "batch_norms": "BN BatchNorm",
    "classifiers": "DepthwiseConvolution ConvolutionDepthwise ReLU6 Mish ShuffleChannel Axpy",
    "faces": "CenterLoss MarginInnerProduct",
    "flow": "Correlation FlowWarp Warp Resample",
    "images": "Interp Upsample Depooling AutoCrop SafeInv",
    "regions": (
        "ROIPooling ROIAlign PSROIPooling SpatialPyramidPooling SmoothL1Loss SmoothL1LossOHEM "
        "BoxAnnotatorOHEM"
    ),
    "proposals": "BoxGroupOutput BoxOutput ProposalTarget BboxAccuracy",
    "cascade_rcnn": "DecodeBBox ScaleRoute FrcnnOutput",
    "detection_losses": "DetectionLoss DetectionAccuracy DetectionGroupLoss DetectionGroupAccuracy",
    "ssd": "Normalize Permute Squeeze PriorBox PriorBoxClustered DetectionOutput",
    "ssd_training": "MultiBoxLoss FocalLoss DetectionEvaluate",
    "yolo": "Reorg Yolov3 RegionLoss Yolov3DetectionOutput YoloDetectionOutput",
}
_FAMILY = {plain(name): family for family, names in FAMILIES.items() for name in names.split()}


@functools.cache
def fork_classes(type_name: str) -> tuple[type[ForkLayer], ...]:
    """The classes of a fork's type, one for each of its variants. Empty if torch does not compute the type."""
    family = _FAMILY.get(plain(type_name))
    if family is None:
        return ()
    classes = vars(importlib.import_module(f".{family}", __name__)).values()
    kinds = (kind for kind in classes if isinstance(kind, type) and issubclass(kind, ForkLayer))
    return tuple(kind for kind in kinds if plain(type_name) in map(plain, kind.types))


def fork_types() -> list[str]:
    """The names of all types of forks that torch computes."""
    return [name for names in FAMILIES.values() for name in names.split()]


def variant_of(type_name: str, definition: StockDefinition, chosen: str | None) -> type[ForkLayer]:
    """The variant of a type of a fork for a layer. CaffeValueError if none fits, or if several do."""
    classes = fork_classes(type_name)
    if chosen is not None and any(kind.variant == chosen for kind in classes):
        classes = tuple(kind for kind in classes if kind.variant == chosen)
    misfits = {kind: kind.misfit(definition.bottoms, definition.tops) for kind in classes}
    fitting = [kind for kind, misfit in misfits.items() if not misfit and kind.fits(definition)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        reasons = [misfits[kind] or "has other fields" for kind in classes]
        listed = "; ".join(f"that of {k.source} {why}" for k, why in zip(classes, reasons, strict=True))
        raise CaffeValueError(f"a {type_name} that is not known here: {listed}. Port your fork's")
    listed = " or ".join(f"{kind.variant!r} ({kind.source})" for kind in fitting)
    raise CaffeValueError(
        f"several forks have a {type_name}, and the file does not tell which is meant: "
        f"choose={{{type_name!r}: ...}} with {listed}"
    )
