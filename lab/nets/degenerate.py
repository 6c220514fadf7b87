"""Compare types of stock Caffe and of forks at ties, zeros and other degenerate points with a fork's own code.

    make port CAFFE=/path/to/caffe TYPE="ArgMax MVN ..." LAYERS_DIR=/ported
    python -m lab.nets.degenerate /ported [Type ...]

The types, their bottoms and the points are those of the tests (tests/support/pairs.py), with the further parameters
below. Each layer runs twice on the processor, in double: by torch, and by the ported code. Tops, and gradients of
bottoms and blobs, must agree to 1e-9 of the largest value (types of forks to 1e-5: their code often computes in
float), with the same infinities and numbers that are none. Where one refuses and the other does not, the line says so.
"""

import collections
import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.fork_cases import CASES
from support.nets import draw
from support.pairs import SINGLE_CASES, STOCK_CASES

from cuffi import caffe_net
from cuffi.commands.net.compare import relative
from cuffi.nets.stock import blobs_of

ALL = {**CASES, **STOCK_CASES, **SINGLE_CASES}
for name in ("Yolov3DetectionOutput", "YoloDetectionOutput"):  # whose own code knows one image
    ALL[name] = CASES[name]._replace(bottoms=(CASES[name].bottoms[0][:1],))
# Further parameters of a type, and the number of its tops, for the bottoms that it has in the list.
MORE = {
    "Accuracy": [
        "accuracy_param { top_k: 2 }",
        "accuracy_param { ignore_label: 1 }",
        "2 accuracy_param { axis: 1 }",
    ],
    "ArgMax": [
        "argmax_param { top_k: 3 }",
        "argmax_param { axis: 1 top_k: 2 }",
        "argmax_param { out_max_val: true top_k: 2 }",
        "argmax_param { axis: -1 out_max_val: true top_k: 2 }",
    ],
    "BatchNorm": ["batch_norm_param { eps: 0.5 }", "batch_norm_param { use_global_stats: true }"],
    "Bias": ["bias_param { axis: 1 }"],
    "Clip": ["clip_param { min: 0 max: 1 }", "clip_param { min: 0 max: 0 }"],
    "Concat": ["concat_param { axis: -3 }"],
    "ContrastiveLoss": [
        "contrastive_loss_param { margin: 0 }",
        "contrastive_loss_param { margin: 1 }",
        "contrastive_loss_param { margin: 3 legacy_version: true }",
    ],
    "Convolution": [
        "2 convolution_param { num_output: 2 kernel_size: 3 dilation: 2 pad: 3 stride: 2 bias_term: false }"
    ],
    "Deconvolution": ["2 convolution_param { num_output: 2 kernel_size: 3 pad: 1 stride: 2 }"],
    "ELU": ["elu_param { alpha: 0 }", "elu_param { alpha: 0.5 }"],
    "Eltwise": [
        "eltwise_param { operation: PROD }",
        "eltwise_param { operation: PROD stable_prod_grad: false }",
        "eltwise_param { operation: MAX }",
        "eltwise_param { operation: SUM coeff: [0, -1] }",
    ],
    "Exp": ["exp_param { base: 2 }", "exp_param { scale: 0 }", "exp_param { base: 10 scale: -1 shift: 2 }"],
    "HingeLoss": ["hinge_loss_param { norm: L2 }"],
    "Im2col": ["convolution_param { kernel_size: 3 pad: 1 stride: 2 }"],
    "InfogainLoss": ["loss_param { normalization: NONE }", "2 loss_param { ignore_label: 1 }"],
    "InnerProduct": ["inner_product_param { num_output: 2 axis: 2 transpose: true bias_term: false }"],
    "LRN": [
        "lrn_param { norm_region: WITHIN_CHANNEL local_size: 3 }",
        "lrn_param { local_size: 3 alpha: 2 beta: 0.5 k: 0.5 }",
        "lrn_param { local_size: 3 alpha: 1 k: 0 }",
    ],
    "Log": ["log_param { base: 2 scale: 3 shift: 1 }", "log_param { shift: 1 }"],
    "MVN": [
        "mvn_param { across_channels: true }",
        "mvn_param { normalize_variance: false }",
        "mvn_param { eps: 0.5 }",
    ],
    "MultinomialLogisticLoss": [],
    "PReLU": ["prelu_param { channel_shared: true }"],
    "Pooling": [
        "2 pooling_param { kernel_size: 3 stride: 2 }",
        "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }",
        "pooling_param { kernel_size: 3 stride: 2 pad: 2 }",
        "2 pooling_param { kernel_size: 2 stride: 3 }",
        "pooling_param { pool: AVE global_pooling: true }",
        "pooling_param { kernel_size: 2 stride: 2 round_mode: FLOOR }",
    ],
    "Power": [
        f"power_param {{ power: {power} scale: {scale} shift: {shift} }}"
        for power in (0, 0.5, 1, 2, 3, -1)
        for scale, shift in ((1, 0), (2, 1), (0, 0), (0, 2), (-1, 0))
    ],
    "ReLU": ["relu_param { negative_slope: 0.25 }", "relu_param { negative_slope: -1 }"],
    "Reduction": [
        "reduction_param { operation: SUMSQ }",
        "reduction_param { operation: MEAN axis: 1 coeff: -2 }",
        "reduction_param { operation: ASUM axis: 2 coeff: 0 }",
    ],
    "SPP": ["spp_param { pyramid_height: 3 }", "spp_param { pyramid_height: 2 pool: AVE }"],
    "Scale": ["scale_param { axis: 1 bias_term: true }"],
    "SigmoidCrossEntropyLoss": [
        "loss_param { normalization: NONE }",
        "loss_param { ignore_label: 1 normalization: VALID }",
        "loss_param { ignore_label: 0 normalization: FULL }",
    ],
    "Slice": ["2 slice_param { axis: 0 }", "3 slice_param { axis: 2 slice_point: [1, 2] }"],
    "Softmax": ["softmax_param { axis: 0 }", "softmax_param { axis: -1 }"],
    "SoftmaxWithLoss": [
        "2 loss_param { ignore_label: 1 }",
        "loss_param { normalization: NONE }",
        "loss_param { normalization: BATCH_SIZE ignore_label: 0 }",
        "loss_param { normalize: true }",
    ],
    "Swish": ["swish_param { beta: 0 }", "swish_param { beta: 100 }"],
    "Threshold": ["threshold_param { threshold: 1 }"],
    "Tile": ["tile_param { axis: 0 tiles: 3 }"],
    # Types of forks.
    "BoxAnnotatorOHEM": ["2 box_annotator_ohem_param { roi_per_img: 4 ignore_label: 1 }"],
    "Correlation": [
        "correlation_param { pad: 3 kernel_size: 3 max_displacement: 2 stride_1: 2 stride_2: 2 }",
        "correlation_param { pad: 2 kernel_size: 1 max_displacement: 2 correlation_type: SUBTRACT }",
    ],
    "DetectionOutput": [
        f"detection_output_param {{ num_classes: 4 {fields} nms_param {{ nms_threshold: {threshold} top_k: {most} }} }}"
        for fields, threshold, most in (
            ("code_type: CORNER keep_top_k: 5 confidence_threshold: 0.2", 0.45, 10),
            ("code_type: CENTER_SIZE variance_encoded_in_target: true keep_top_k: 3", 0.3, 24),
            ("code_type: CORNER_SIZE background_label_id: -1 confidence_threshold: 0.25", 0.6, 5),
        )
    ],
    "FocalLoss": ["focal_loss_param { gamma: 0 }", "focal_loss_param { alpha: 1 gamma: 3 }"],
    "Interp": [
        "interp_param { height: 1 width: 1 }",
        "interp_param { shrink_factor: 2 }",
        "interp_param { height: 7 width: 3 pad_beg: -1 }",
    ],
    "MarginInnerProduct": [
        f"margin_inner_product_param {{ num_output: 4 type: {kind} base: 5 gamma: 0.1 "
        'weight_filler { type: "xavier" } }'
        for kind in ("SINGLE", "DOUBLE", "TRIPLE")
    ],
    "MultiBoxLoss": [
        f"multibox_loss_param {{ num_classes: 4 {fields} }}"
        for fields in (
            "code_type: CORNER mining_type: NONE",
            "code_type: CENTER_SIZE loc_loss_type: L2 neg_pos_ratio: 1 match_type: BIPARTITE",
            "code_type: CENTER_SIZE conf_loss_type: LOGISTIC overlap_threshold: 0.3",
            "code_type: CENTER_SIZE use_difficult_gt: false encode_variance_in_target: true",
            "code_type: CORNER_SIZE use_prior_for_matching: false",
            "code_type: CENTER_SIZE ignore_cross_boundary_bbox: true",
        )
    ],
    "Normalize": [
        "norm_param { across_spatial: true }",
        "norm_param { across_spatial: false channel_shared: false }",
        "norm_param { across_spatial: true channel_shared: false }",
    ],
    "PriorBox": [
        "prior_box_param { min_size: 30 max_size: 60 aspect_ratio: 2 aspect_ratio: 3 flip: false clip: true "
        "variance: [0.1, 0.1, 0.2, 0.2] step: 16 offset: 0.25 }"
    ],
    "PSROIPooling": ["psroi_pooling_param { spatial_scale: 0.0625 output_dim: 2 group_size: 3 }"],
    "Reorg": ["reorg_param { stride: 2 reverse: true }"],
    "Resample": [
        f"resample_param {{ width: {w} height: {h} type: {kind} }}"
        for kind in ("NEAREST", "LINEAR", "CUBIC")
        for w, h in ((9, 7), (3, 2), (6, 5), (1, 1))
    ],
    "ROIAlign": ["roi_pooling_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.03125 }"],
    "ROIPooling": ["roi_pooling_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.03125 }"],
    "SmoothL1Loss": ["smooth_l1_loss_param { sigma: 3 }"],
    "Yolov3": [
        "yolov3_param { num_class: 3 num: 2 mask: [0, 2] biases: [10, 13, 33, 23, 62, 45] " + fields + " }"
        for fields in (
            "iou_loss: IOU",
            "iou_loss: GIOU",
            "iou_loss: DIOU",
            "iou_loss: CIOU",
            "use_focal_loss: true",
        )
    ],
}


INDICES = ("Embed",)
# Their own code writes outside of its memory for a box outside of the image and for a class that is none.
UNCHECKED = ("RegionLoss", "Yolov3")


def texts(name):
    """(fields of the layer, number of tops) of a type."""
    case = ALL[name]
    yield case.layer.partition(" ")[2], case.tops
    for fields in MORE.get(case.layer.partition(" ")[0], ()):
        tops, _, rest = fields.partition(" ")
        yield (rest, int(tops)) if tops.isdigit() else (fields, case.tops)


def points(name):
    """(name, bottoms) of each point: those that learn take its values, and the others of integers get fractions."""
    bottoms = ALL[name].bottoms
    learn = ALL[name].learn or (0,)
    few = [
        torch.randint(-1, 2, x.shape, generator=torch.Generator().manual_seed(i))
        for i, x in enumerate(bottoms)
    ]
    fills = {
        "drawn": lambda i, x: x,
        "0": lambda i, x: torch.zeros_like(x),
        "-0": lambda i, x: -torch.zeros_like(x),
        "1": lambda i, x: torch.ones_like(x),
        "0.5": lambda i, x: torch.full_like(x, 0.5),
        "-1": lambda i, x: -torch.ones_like(x),
        "-1, 0, 1": lambda i, x: few[i].double(),
        "one of them 0": lambda i, x: torch.zeros_like(x) if i == learn[-1] else x,
        "large": lambda i, x: 90 * draw(*x.shape, seed=i),
        "huge": lambda i, x: 1e4 * draw(*x.shape, seed=i),
        "tiny": lambda i, x: 1e-30 * draw(*x.shape, seed=i),
    }
    if name in INDICES:  # Caffe's release build reads and writes beyond the table
        fills = {"drawn": fills["drawn"]}
    for word, fill in fills.items():
        yield word, [fill(i, x) if i in learn else x for i, x in enumerate(bottoms)]
    if (len(bottoms) > len(learn) or not ALL[name].learn) and name not in UNCHECKED:
        for more in (0.4, -0.4):
            yield (
                f"labels {more:+}",
                [x if i in learn and ALL[name].learn else x + more for i, x in enumerate(bottoms)],
            )
    if name in CASES and len(bottoms) > 1:  # boxes that are empty or equal, scores without a largest one
        for word, fill in {
            "0": torch.zeros_like,
            "its first": first_everywhere,
            "halved": lambda x: x / 2,
        }.items():
            for i in range(len(bottoms)):
                yield f"bottom {i} {word}", [fill(x) if k == i else x for k, x in enumerate(bottoms)]
        for i, x in enumerate(bottoms):  # a column of rows: an item, a label, an edge
            for column in range(x.shape[-1] if i not in learn and 1 < x.shape[-1] <= 8 else 0):
                values = {"0": 0 * x, "halved": x / 2, "negated": -x, "1 more": x + 1}
                for word in list(values)[: 2 if name in UNCHECKED else 4]:
                    value = values[word]
                    changed = torch.where(torch.arange(x.shape[-1]) == column, value, x)
                    changed = torch.where(
                        (x != 0).any(-1, keepdim=True), changed, x
                    )  # rows of zeros end a list
                    yield (
                        f"column {column} of bottom {i} {word}",
                        [changed if k == i else x for k, x in enumerate(bottoms)],
                    )


def first_everywhere(x):
    """The first row of the last axis everywhere."""
    return x.reshape(-1, x.shape[-1])[:1].expand(x.numel() // x.shape[-1], -1).reshape(x.shape).clone()


def made(name, fields, tops, layers, native):
    case = ALL[name]
    kind, first = case.layer.split(" ")[0], case.layer.partition(" ")[2]
    inputs = "".join(
        f'input: "x{i}" input_shape {{ {" ".join(f"dim: {d}" for d in x.shape)} }}\n'
        for i, x in enumerate(case.bottoms)
    )
    bottoms = "".join(f'bottom: "x{i}" ' for i in range(len(case.bottoms)))
    outputs = "".join(f'top: "y{i}" ' for i in range(tops))
    net = caffe_net(
        f'{inputs}layer {{ name: "L" type: "{kind}" {bottoms}{outputs}{fields or first} }}',
        native={kind: native},
        layers=layers,
    )
    return net.double().train(case.train and kind != "Dropout")


def results(net, bottoms, learn):
    bottoms = [x.clone().requires_grad_(i in learn) for i, x in enumerate(bottoms)]
    net.zero_grad()
    tops = net(*bottoms)
    tops = [tops] if isinstance(tops, torch.Tensor) else list(tops.values())
    found = [(f"y{i}", top.detach()) for i, top in enumerate(tops)]
    if grown := [top for top in tops if top.requires_grad]:
        sum((top * (draw(*top.shape, seed=5) if top.dim() else 1)).sum() for top in grown).backward()
        found += [(f"dx{i}", x.grad) for i, x in enumerate(bottoms) if x.requires_grad]
        found += [(f"db{i}", p.grad) for i, (_, p) in enumerate(blobs_of(net.L)) if p.requires_grad]
    return found + [(f"b{i}", p.detach().clone()) for i, (_, p) in enumerate(blobs_of(net.L))]


def tried(name, layers, count):
    for fields, tops in texts(name):
        try:
            ours, theirs = (made(name, fields, tops, layers, native) for native in (True, False))
        except (ValueError, RuntimeError) as error:
            yield f"{name} {fields}: not built: {str(error).splitlines()[-1].strip()[:150]}"
            continue
        for filled in (1.0, 0.0):
            with torch.no_grad():
                for i, ((_, a), (_, b)) in enumerate(zip(blobs_of(ours.L), blobs_of(theirs.L), strict=True)):
                    a.copy_(filled * draw(*a.shape, seed=i).abs())
                    b.copy_(a.reshape(b.shape))
            if not blobs_of(ours.L) and not filled:
                break
            for point, bottoms in points(name):
                count["points"] += 1
                found = []
                for net in (ours, theirs):
                    try:
                        found.append(results(net, bottoms, ALL[name].learn))
                    except (ValueError, RuntimeError) as error:
                        found.append(str(error).splitlines()[0][:110])
                if any(isinstance(one, str) for one in found):
                    if not all(isinstance(one, str) for one in found):
                        yield f"{name} {fields}, {point}: one refuses: " + " | ".join(
                            str(f)[:110] for f in found
                        )
                    continue
                for (what, a), (_, b) in zip(*found, strict=True):
                    count["values"] += a.numel() if a is not None else 0
                    if (error := relative(a, b)) > (1e-5 if name in CASES else 1e-9):
                        yield f"{name} {fields}, {point}, blobs {filled:g}: {what} {error:.1e}: {short(a)} | {short(b)}"


def short(x):
    return "none" if x is None else ", ".join(f"{v:.4g}" for v in x.flatten()[:4].tolist())


def main() -> int:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    layers, *names = sys.argv[1:]
    kinds = {folder.name.replace("_", "") for folder in Path(layers).iterdir()}
    names = names or [n for n in ALL if ALL[n].layer.partition(" ")[0].lower() in kinds]
    count: collections.Counter = collections.Counter()
    for name in names:
        lines = list(tried(name, [layers], count))
        print(f"{name}: {len(lines)} lines", flush=True)
        for line in lines:
            print(f"  {line}", flush=True)
    print(f"{len(names)} types, {count['points']} points, {count['values']} values")
    return 0


if __name__ == "__main__":
    sys.exit(main())
