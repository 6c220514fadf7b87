"""Layer types that many nets use and stock Caffe lacks, as torch modules, one file per type.

Each computes what its `source`, a fork, computes, forward and gradient. If forks use one type name for different
layers, the fields of the prototxt, the numbers of bottoms and tops, or the blobs in the weights decide.
"""

from __future__ import annotations

import functools
import importlib
from pathlib import Path

from ...base import CaffeValueError
from ...caffe_files.parameters import plain
from ..stock import StockDefinition, StockLayer


class KnownLayer(StockLayer):
    """The base of the known types."""

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


# The types whose file has another name.
_ELSEWHERE = {
    "ConvolutionDepthwise": "depthwise_convolution",
    "Warp": "flow_warp",
    "BatchNorm": "nvcaffe_batch_norm",
    "PriorBoxClustered": "prior_box",
    "BoxOutput": "box_group_output",
    "BboxAccuracy": "proposal_target",
    "DetectionGroupAccuracy": "detection_group_loss",
    "DetectionAccuracy": "detection_loss",
    "YoloDetectionOutput": "yolov3_detection_output",
    "SmoothL1LossOHEM": "smooth_l1_loss",
}


@functools.cache
def _files() -> dict[str, str]:
    stems = [file.stem for file in Path(__file__).parent.glob("[!_]*.py")]
    return {plain(stem): stem for stem in stems} | {plain(name): stem for name, stem in _ELSEWHERE.items()}


@functools.cache
def known_classes(type_name: str) -> tuple[type[KnownLayer], ...]:
    """The classes of a known type, one for each of its variants. Empty if the type is not known."""
    file = _files().get(plain(type_name))
    if file is None:
        return ()
    module = importlib.import_module(f".{file}", __name__)
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    return tuple(
        kind
        for kind in classes
        if issubclass(kind, KnownLayer) and plain(type_name) in map(plain, kind.types)
    )


def known_types() -> list[str]:
    """The names of all known types."""
    modules = [importlib.import_module(f".{file}", __name__) for file in sorted(set(_files().values()))]
    kinds = [
        v for m in modules for v in vars(m).values() if isinstance(v, type) and issubclass(v, KnownLayer)
    ]
    return list(dict.fromkeys(name for kind in kinds for name in kind.types))


def variant_of(type_name: str, definition: StockDefinition, chosen: str | None) -> type[KnownLayer]:
    """The variant of a known type for a layer. CaffeValueError if none fits, or if several do."""
    classes = known_classes(type_name)
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
