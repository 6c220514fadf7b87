"""One small example of each class in cuffi/nets/forks: a layer's text, its bottoms, and which of them learn.

Whatever must hold for all types of forks is tried with these. Nothing in them is drawn at random by the layer.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from .nets import draw, labels

NORM = "bbox_reg_param { bbox_mean: [0, 0.1, 0, 0] bbox_std: [0.1, 0.2, 0.2, 0.3] }"
FIELDS = "field_w: 40 field_h: 50"
GROUP = "cls_num: 3 field_w: [30, 60] field_h: [40, 50] stride: 16"


class Case(NamedTuple):
    layer: str  # "Type some_param { ... }"
    bottoms: tuple[torch.Tensor, ...]
    learn: tuple[int, ...] = ()  # the bottoms that get a gradient
    tops: int = 1
    train: bool = False

    @property
    def text(self) -> str:
        name, _, fields = self.layer.partition(" ")
        return f'type: "{name}" {fields}'


def uniform(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def regions(count, items=2, seed=0):
    """Rows (item, left, top, right, bottom) of whole numbers, which half types have, too."""
    low, more = (uniform(count, 2, seed=seed + i) * 64 for i in range(2))
    item = torch.arange(count).double()[:, None] % items
    return torch.cat((item, low.floor(), (low + more + 8).floor()), 1)


def given(count, items=2):
    """Rows of regions with (label, 0, 0): what there is to be found."""
    return torch.cat((regions(count, items, seed=5), labels(3, count, 1) + 1, torch.zeros(count, 2)), 1)


def cells(count=2, classes=3):
    """(label, x, y, width, height, overlap) of each cell of maps of 4 x 5."""
    label = labels(classes, count, 1, 4, 5) * (labels(3, count, 1, 4, 5, seed=1) == 0)
    box = uniform(count, 5, 4, 5) * torch.tensor([100, 90, 80, 80, 0.4])[:, None, None]
    return torch.cat((label, box), 1)


def priors(count=24):
    centre, size = uniform(count, 2), uniform(count, 2, seed=1) / 3 + 0.1
    corners = torch.cat((centre - size / 2, centre + size / 2), 1)
    variances = torch.tensor([0.1, 0.1, 0.2, 0.2]).double().expand(count, 4)
    return torch.stack((corners, variances)).reshape(1, 2, -1)


def objects(count=4):
    """SSD's rows (item, label, 0, left, top, right, bottom, difficult)."""
    low = uniform(count, 2, seed=3) / 2
    first = torch.stack((torch.arange(count) % 2, torch.arange(count) % 3 + 1, torch.zeros(count)), 1)
    boxes = torch.cat((low, low + uniform(count, 2, seed=4) / 3 + 0.1), 1)
    return torch.cat((first.double(), boxes, torch.zeros(count, 1)), 1)[None, None]


def found(count=6):
    """SSD's rows (item, label, score, left, top, right, bottom), near what there is."""
    rows = objects(count)[0, 0]
    return torch.cat((rows[:, :2], uniform(count, 1), rows[:, 3:7]), 1)[None, None]


def yolo_truth():
    rows = torch.zeros(2, 1, 300, 5).double()
    rows[:, :, :6, 0] = labels(3, 2, 1, 6)
    rows[:, :, :6, 1:] = uniform(2, 1, 6, 4) * 0.7 + 0.1
    return rows


MAPS = draw(2, 6, 8, 10)
SMALL = draw(2, 3, 5, 6)
IMAGE = torch.zeros(1, 3, 64, 80).double()
SCORES, OFFSETS = draw(8, 3).softmax(1), draw(8, 12, seed=1) / 4
ANCHORS = "biases: [10, 13, 33, 23, 62, 45]"
CELLS = "biases: [1, 1, 2, 3, 4, 2, 5, 5, 3, 1]"

CASES = {
    "AutoCrop": Case('AutoCrop bottom: "x0"', (MAPS,), (0,)),
    "Axpy": Case("Axpy", (draw(2, 3, 1, 1), SMALL, draw(2, 3, 5, 6, seed=2)), (0, 1, 2)),
    "SegNetBN": Case('BN bn_param { scale_filler { type: "constant" value: 1 } }', (SMALL,), (0,)),
    "PSPNetBN": Case('BN bn_param { slope_filler { type: "constant" value: 1 } }', (SMALL,), (0,), 1, True),
    "BoxAnnotatorOHEM": Case(
        "BoxAnnotatorOHEM box_annotator_ohem_param { roi_per_img: 2 }",
        (regions(6), draw(6, 1).abs(), labels(3, 6, 1), draw(6, 8)),
        tops=2,
    ),
    "BoxGroupOutput": Case(
        "BoxGroupOutput box_group_output_param { box_group_param { field_w: 30 field_w: 60 field_h: 30 "
        f"field_h: 80 stride: 16 }} }} {NORM}",
        (draw(4, 2, 4, 5).softmax(1), draw(4, 4, 4, 5, seed=1)),
    ),
    "BoxOutput": Case(
        f"BoxOutput box_output_param {{ {FIELDS} downsample_rate: 16 fg_thr: -5 }} {NORM}",
        (draw(2, 7, 4, 5),),
    ),
    "CenterLoss": Case("CenterLoss center_loss_param { num_output: 4 }", (draw(5, 3), labels(4, 5)), (0,)),
    "Correlation": Case(
        "Correlation correlation_param { pad: 2 kernel_size: 1 max_displacement: 2 }",
        (SMALL, draw(2, 3, 5, 6, seed=1)),
        (0, 1),
    ),
    "DecodeBBox": Case(f"DecodeBBox {NORM}", (draw(8, 8) / 4, regions(8))),
    "Depooling": Case(
        "Depooling pooling_param { pool: SWITCH kernel_size: 3 stride: 2 }",
        (MAPS[:, :, :2, :3], labels(35, 2, 6, 2, 3)),
        (0,),
        tops=2,
    ),
    "DepthwiseConvolution": Case(
        "DepthwiseConvolution convolution_param { num_output: 6 group: 6 kernel_size: 3 pad: 1 }",
        (MAPS,),
        (0,),
    ),
    "ConvolutionDepthwise": Case(
        "ConvolutionDepthwise convolution_param { num_output: 6 kernel_size: 3 stride: 2 }", (MAPS,), (0,)
    ),
    "DetectionEvaluate": Case(
        "DetectionEvaluate detection_evaluate_param { num_classes: 4 }", (found(), objects())
    ),
    "OfCascadeRCNN": Case(
        "DetectionEvaluate detection_evaluate_param { num_classes: 4 }",
        (
            torch.cat((regions(6, 1), labels(3, 6, 1) + 1, uniform(6, 1)), 1),
            torch.cat((regions(6, 1), labels(3, 6, 1) + 1, torch.zeros(6, 2)), 1),
            torch.ones(1, 2).double(),
        ),
    ),
    "DetectionGroupLoss": Case(
        f'DetectionGroupLoss detection_group_loss_param {{ {GROUP} neg_mining_type: "bootstrap" }} {NORM}',
        (draw(4, 3, 4, 5), draw(4, 4, 4, 5, seed=2), cells(4)),
        (0, 1),
    ),
    "DetectionGroupAccuracy": Case(
        f"DetectionGroupAccuracy detection_group_accuracy_param {{ {GROUP} }} {NORM}",
        (draw(4, 3, 4, 5), draw(4, 4, 4, 5, seed=2), cells(4)),
        tops=2,
    ),
    "DetectionLoss": Case(
        f"DetectionLoss detection_loss_param {{ cls_num: 3 {FIELDS} downsample_rate: 16 "
        f'sample_mode: "all" }} {NORM}',
        (draw(2, 7, 4, 5), cells()),
        (0,),
    ),
    "DetectionAccuracy": Case(
        f"DetectionAccuracy detection_accuracy_param {{ cls_num: 3 {FIELDS} downsample_rate: 16 }} {NORM}",
        (draw(2, 7, 4, 5), cells()),
        tops=2,
    ),
    "DetectionOutput": Case(
        "DetectionOutput detection_output_param { num_classes: 4 code_type: CENTER_SIZE "
        "confidence_threshold: 0.3 nms_param { nms_threshold: 0.45 top_k: 20 } }",
        (draw(2, 96) / 4, draw(2, 24, 4).softmax(2).flatten(1), priors()),
    ),
    "FlowWarp": Case("FlowWarp", (SMALL, draw(2, 2, 5, 6, seed=1)), (0, 1)),
    "FocalLoss": Case("FocalLoss", (draw(2, 4, 3, 3), labels(4, 2, 3, 3)), (0,)),
    "FrcnnOutput": Case(
        f"FrcnnOutput frcnn_output_param {{ conf_thr: 0.3 iou_thr: 0.3 }} {NORM}",
        (SCORES, OFFSETS, regions(8, 1), torch.tensor([[100.0, 90.0]]).double()),
    ),
    "Interp": Case("Interp interp_param { zoom_factor: 3 }", (SMALL,), (0,)),
    "Mish": Case("Mish", (SMALL,), (0,)),
    "MarginInnerProduct": Case(
        "MarginInnerProduct margin_inner_product_param { num_output: 4 type: QUADRUPLE base: 5 gamma: 0.1 "
        'weight_filler { type: "xavier" } }',
        (draw(5, 3), labels(4, 5)),
        (0,),
        tops=2,
        train=True,
    ),
    "MultiBoxLoss": Case(
        "MultiBoxLoss multibox_loss_param { num_classes: 4 code_type: CENTER_SIZE "
        "mining_type: MAX_NEGATIVE }",
        (draw(2, 96), draw(2, 96, seed=1), priors(), objects()),
        (0, 1),
    ),
    "Normalize": Case("Normalize norm_param { across_spatial: false }", (SMALL,), (0,)),
    "BatchNorm": Case("BatchNorm batch_norm_param { scale_bias: true }", (SMALL,), (0,), 1, True),
    "Permute": Case("Permute permute_param { order: [0, 2, 3, 1] }", (SMALL,), (0,)),
    "PriorBox": Case("PriorBox prior_box_param { min_size: 30 aspect_ratio: 2 }", (SMALL, IMAGE)),
    "PriorBoxClustered": Case("PriorBoxClustered prior_box_param { width: 30 height: 12 }", (SMALL, IMAGE)),
    "ProposalTarget": Case(
        "ProposalTarget proposal_target_param { cls_num: 4 num_img_per_batch: 2 img_width: 100 "
        f"img_height: 90 bg_thr_hg: 0.4 batch_size: -1 }} {NORM}",
        (torch.cat((regions(6), given(6)[:, :5])), given(6)),
        tops=6,
    ),
    "BboxAccuracy": Case(
        f"BboxAccuracy {NORM}",
        (draw(8, 16) / 4, regions(8), torch.cat((labels(4, 8, 1), regions(8)[:, 1:] + 1, uniform(8, 1)), 1)),
        tops=2,
    ),
    "PSROIPooling": Case(
        "PSROIPooling psroi_pooling_param { spatial_scale: 0.125 output_dim: 2 group_size: 3 }",
        (draw(2, 18, 9, 11), regions(5)),
        (0,),
    ),
    "Yolov3": Case(
        f"Yolov3 yolov3_param {{ num_class: 3 num: 2 mask: [0, 2] {ANCHORS} }}",
        (draw(2, 16, 4, 5), yolo_truth()),
        (0,),
    ),
    "RegionLoss": Case(
        f"RegionLoss region_loss_param {{ num_class: 3 {CELLS} }}", (draw(2, 40, 4, 4), yolo_truth()), (0,)
    ),
    "ReLU6": Case("ReLU6", (SMALL * 4,), (0,)),
    "Reorg": Case("Reorg reorg_param { stride: 2 }", (draw(2, 8, 4, 6),)),
    "Resample": Case("Resample resample_param { width: 9 height: 7 }", (SMALL,)),
    "ROIAlign": Case(
        "ROIAlign roi_pooling_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.125 }",
        (MAPS, regions(5)),
        (0,),
    ),
    "ROIPooling": Case(
        "ROIPooling roi_pooling_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.125 }",
        (MAPS, regions(5)),
        (0,),
    ),
    "SafeInv": Case("SafeInv", (labels(4, 2, 3, 5) / 2,), (0,)),
    "ScaleRoute": Case(
        "ScaleRoute scale_route_param { low_scale: 40 }",
        (regions(8)[..., None, None], draw(8, 2, 3, 3)),
        tops=2,
    ),
    "ShuffleChannel": Case("ShuffleChannel shuffle_channel_param { group: 2 }", (MAPS,), (0,)),
    "SpatialPyramidPooling": Case(
        "SpatialPyramidPooling spatial_pyramid_pooling_param { spatial_bin: [1, 2, 3] }", (MAPS,), (0,)
    ),
    "SmoothL1Loss": Case("SmoothL1Loss", (SMALL, draw(2, 3, 5, 6, seed=1)), (0, 1)),
    "Squeeze": Case("Squeeze squeeze_param { axis: 2 }", (draw(2, 3, 1, 5),), (0,)),
    "ByMask": Case(
        "Upsample upsample_param { scale: 2 }",
        (draw(2, 3, 2, 2), torch.tensor([[0.0, 3], [9, 14]]).double().expand(2, 3, 2, 2)),
        (0,),
    ),
    "Nearest": Case("Upsample upsample_param { scale: 3 }", (SMALL,), (0,)),
    "Yolov3DetectionOutput": Case(
        "Yolov3DetectionOutput yolov3_detection_output_param { num_classes: 3 confidence_threshold: 0.3 "
        f"mask_group_num: 1 mask: [0, 1, 2] anchors_scale: 32 {ANCHORS} }}",
        (draw(2, 24, 3, 3),),
    ),
    "YoloDetectionOutput": Case(
        "YoloDetectionOutput yolo_detection_output_param { num_classes: 3 confidence_threshold: 0.3 "
        f"{CELLS} }}",
        (draw(2, 40, 3, 3),),
    ),
}
