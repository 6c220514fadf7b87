"""The toolkit's layers, compared with the operators of torchvision and torch that a user would choose instead.

All shipped layers, and the types of Caffe's forks that most nets use, at the sizes of those nets. Each is timed
as called from Python (wall), and its kernels alone in a CUDA graph. If a folder of LAYERS_DIR has a ported layer of a
type, the row measures that one, and says so.
"""

import itertools
import statistics
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cuffi import caffe_net
from cuffi.runtime.cases import Draw, cast

from . import _machine
from ._machine import GPU
from ._report import Figure, Report, Settings, brief
from ._timing import in_turns, on_gpu, on_wall, sets_beyond_cache

GROUP = "peers"
OURS, PEER = "ours", "peer"
KERNELS = " kernels"  # the suffix of a contender's name for its kernels alone
DTYPES = (torch.float32, torch.float16)
AGREE = {torch.float32: 1e-3, torch.float16: 2e-2}  # of the norm of the tops


class Row(NamedTuple):
    """One layer on one size."""

    layer: str
    size: str
    peer: str
    draw: Callable[[Draw], tuple]  # the arguments, in double
    ours: Callable[[tuple], Callable]  # of the arguments: what is called with them
    theirs: Callable[[tuple], Callable]
    # Do both compute the same? torchvision rounds a region's corners elsewhere than R-FCN does, and torch.round takes a
    # half to the even number.
    same: bool = True
    fixed: int = 0  # the last arguments, which get no gradient and stay in float32


def in_net(type_name: str, parameters: str = "") -> Callable[[tuple], nn.Module]:
    """A layer of a Caffe net, for arguments of these shapes."""

    def make(arguments: tuple) -> nn.Module:
        names = [f"x{i}" for i in range(len(arguments))]
        text = "".join(
            f'input: "{name}" input_shape {{ {" ".join(f"dim: {size}" for size in x.shape)} }}\n'
            for name, x in zip(names, arguments, strict=True)
        )
        bottoms = " ".join(f'bottom: "{name}"' for name in names)
        net = caffe_net(f'{text}layer {{ name: "L" type: "{type_name}" {bottoms} top: "top" {parameters} }}')
        return net.get_layer("L")

    return make


def shipped(layer: str, name: str, **parameters) -> Callable[[tuple], Callable]:
    """A function of one of the toolkit's own layers, or a module of it."""

    def make(arguments: tuple) -> Callable:
        made = getattr(__import__(f"cuffi.{layer}", fromlist=[name]), name)
        if not isinstance(made, type):
            return lambda *given: made(*given, **parameters)
        module = made(**parameters)
        return module.setup(*(x.detach().float() for x in arguments)) if hasattr(module, "setup") else module

    return make


def function(f: Callable) -> Callable[[tuple], Callable]:
    return lambda arguments: f


class Normalized(nn.Module):
    """F.normalize, and a factor for each channel."""

    def __init__(self, arguments: tuple):
        super().__init__()
        self.scale = nn.Parameter(torch.full((arguments[0].shape[1],), 20.0))

    def forward(self, x):
        return F.normalize(x, eps=1e-5) * self.scale[:, None, None]


class Affine(nn.Module):
    """F.batch_norm by running statistics."""

    def __init__(self, arguments: tuple):
        super().__init__()
        channels = arguments[0].shape[1]
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return F.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, 1e-9)


def smooth_l1(x, y, inside, outside):
    difference = inside * (x - y)
    loss = F.smooth_l1_loss(difference, torch.zeros_like(difference), reduction="none")
    return (outside * loss).sum() / len(x)


def shifted_products(x, y, reach: int = 20, step: int = 2):
    """FlowNetC's correlation: a mean of products over the channels for each displacement."""
    height, width = x.shape[2:]
    y = F.pad(y, (reach,) * 4)
    moves = range(0, 2 * reach + 1, step)
    means = [(x * y[:, :, i : i + height, j : j + width]).mean(1) for i, j in itertools.product(moves, moves)]
    return torch.stack(means, 1)


def convolved(stride: int = 1) -> Callable[[tuple], Callable]:
    return function(lambda x, w: F.conv2d(x, w, None, stride, 1, 1, x.shape[1]))


def causal(x, w):
    return F.conv1d(F.pad(x, (w.shape[2] - 1, 0)), w, groups=x.shape[1])


def lltm_cell(draw: Draw) -> tuple:
    from cuffi.lltm.cases import cell  # imports the layer, which must be built

    return cell(draw, 256, 32, 512)


def plain_lltm(arguments: tuple) -> Callable:
    from cuffi.lltm.cases import plain_lltm

    return plain_lltm


def torchvision_op(name: str, *arguments) -> Callable[[tuple], Callable]:
    def make(_: tuple) -> Callable:
        from torchvision import ops

        return lambda x, regions: getattr(ops, name)(x, regions.to(x.dtype), *arguments)

    return make


def regions(draw: Draw, count: int, images: int, height: int, width: int) -> Tensor:
    """Boxes of all sizes in an image 16 times as large as the map."""
    x, y = (
        (draw.uniform(count, 2) * 16 * size).sort(1).values.round() for size in (width - 0.1, height - 0.1)
    )
    image = (draw.uniform(count) * images).floor().clamp(max=images - 1)
    return torch.stack([image, x[:, 0], y[:, 0], x[:, 1], y[:, 1]], 1)


def normal(*shapes) -> Callable[[Draw], tuple]:
    return lambda draw: tuple(draw.normal(*shape) for shape in shapes)


def with_regions(shape: tuple, count: int) -> Callable[[Draw], tuple]:
    return lambda draw: (draw.normal(*shape), regions(draw, count, shape[0], *shape[2:]))


def unpooled(draw: Draw) -> tuple:
    x, places = F.max_pool2d(draw.normal(8, 64, 180, 240), 2, 2, return_indices=True)
    return x, places.double()


R_FCN = with_regions((1, 1029, 38, 63), 300)
PSROI = "psroi_pooling_param { output_dim: 21 group_size: 7 spatial_scale: 0.0625 }"
ROI = "roi_pooling_param { pooled_h: 7 pooled_w: 7 spatial_scale: 0.0625 }"
NORM = 'across_spatial: false channel_shared: false scale_filler { type: "constant" value: 20 }'
CONV = "num_output: 144 group: 144 kernel_size: 3 pad: 1 bias_term: false"
NORM_DICT = {
    "across_spatial": False,
    "channel_shared": False,
    "scale_filler": {"type": "constant", "value": 20},
}
BOXES = normal(*[(2000, 84)] * 4)
SSD_MAP = normal((8, 512, 38, 38))
PAIR = normal((4, 256, 48, 64), (4, 256, 48, 64))
PS_ROI_POOL = torchvision_op("ps_roi_pool", 7, 0.0625)
SEGMENTED = normal((2, 21, 65, 65))
DEEP = normal((32, 144, 56, 56), (144, 1, 3, 3))

ROWS = (
    Row("psroi_pooling", "1x1029x38x63, 300 regions", "torchvision ps_roi_pool", R_FCN,
        shipped("psroi_pooling", "PSROIPooling",
                psroi_pooling_param={"output_dim": 21, "group_size": 7, "spatial_scale": 0.0625}),
        PS_ROI_POOL, same=False, fixed=1),
    Row("PSROIPooling", "1x1029x38x63, 300 regions", "torchvision ps_roi_pool", R_FCN,
        in_net("PSROIPooling", PSROI), PS_ROI_POOL, same=False, fixed=1),
    Row("ROIPooling", "2x512x38x63, 256 regions", "torchvision roi_pool", with_regions((2, 512, 38, 63), 256),
        in_net("ROIPooling", ROI), torchvision_op("roi_pool", (7, 7), 0.0625), fixed=1),
    Row("Permute", "8x324x38x38", "permute().contiguous()", normal((8, 324, 38, 38)),
        in_net("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }"),
        function(lambda x: x.permute(0, 2, 3, 1).contiguous())),
    Row("normalize", "8x512x38x38", "F.normalize, scale", SSD_MAP,
        shipped("normalize", "Normalize", norm_param=NORM_DICT), Normalized),
    Row("Normalize", "8x512x38x38", "F.normalize, scale", SSD_MAP,
        in_net("Normalize", f"norm_param {{ {NORM} }}"), Normalized),
    Row("correlation", "4x256x48x64, FlowNetC", "torch, shifted products", PAIR,
        shipped("correlation", "Correlation",
                correlation_param={"kernel_size": 1, "max_displacement": 20, "pad": 20, "stride_2": 2}),
        function(shifted_products)),
    Row("Interp", "2x21x65x65, zoom 8", "F.interpolate", SEGMENTED,
        in_net("Interp", "interp_param { zoom_factor: 8 }"),
        function(lambda x: F.interpolate(x, (513, 513), mode="bilinear", align_corners=True))),
    Row("Upsample", "8x64x90x120, by mask", "F.max_unpool2d", unpooled,
        in_net("Upsample", "upsample_param { scale: 2 }"),
        function(lambda x, places: F.max_unpool2d(x, places.long(), (2, 2))), fixed=1),
    Row("BN", "16x256x32x32, SegNet's", "F.batch_norm", normal((16, 256, 32, 32)),
        in_net("BN", 'bn_param { scale_filler { type: "constant" value: 1 } }'), Affine),
    Row("Axpy", "32x256x56x56", "torch, a * x + y",
        normal((32, 256, 1, 1), (32, 256, 56, 56), (32, 256, 56, 56)),
        in_net("Axpy"), function(lambda a, x, y: a * x + y)),
    Row("smooth_l1_loss", "2000x84, weighted", "F.smooth_l1_loss, weights", BOXES,
        shipped("smooth_l1_loss", "SmoothL1Loss"), function(smooth_l1), fixed=2),
    Row("SmoothL1Loss", "2000x84, weighted", "F.smooth_l1_loss, weights", BOXES,
        in_net("SmoothL1Loss"), function(smooth_l1), fixed=2),
    Row("DepthwiseConvolution", "32x144x56x56, 3x3", "nn.Conv2d", normal((32, 144, 56, 56)),
        in_net("DepthwiseConvolution", f"convolution_param {{ {CONV} }}"),
        lambda arguments: nn.Conv2d(144, 144, 3, padding=1, groups=144, bias=False), same=False),
    Row("depthwise_conv2d", "32x144x56x56, 3x3", "F.conv2d", DEEP,
        shipped("depthwise_conv", "depthwise_conv2d", padding=1), convolved()),
    Row("depthwise_conv2d", "32x144x56x56, 3x3, stride 2", "F.conv2d", DEEP,
        shipped("depthwise_conv", "depthwise_conv2d", padding=1, stride=2), convolved(2)),
    Row("depthwise_conv1d", "4x4096x4096, 4 taps, causal", "F.conv1d", normal((4, 4096, 4096), (4096, 1, 4)),
        shipped("depthwise_conv", "depthwise_conv1d", causal=True), function(causal)),
    Row("elementwise_mult", "2^24", "torch.mul", normal((1 << 24,), (1 << 24,)),
        shipped("elementwise_mult", "elementwise_mult"), function(torch.mul)),
    Row("round", "2^24", "torch.round", lambda draw: (draw.uniform(1 << 24),),
        shipped("round", "round_ste"), function(torch.round),
        same=False),
    Row("sigmoid", "2^24", "torch.sigmoid", normal((1 << 24,)),
        shipped("sigmoid", "sigmoid"), function(torch.sigmoid)),
    Row("lltm", "batch 256, state 512", "torch", lltm_cell, shipped("lltm", "lltm"), plain_lltm),
)  # fmt: skip


def measure(settings: Settings) -> Report:
    report = Report("torchvision's or torch's time over ours (us of ours, of the peer)")
    if not torch.cuda.is_available():
        report.notes.append("Nothing was measured: there is no GPU.")
        return report
    for row in ROWS:
        for dtype in DTYPES:
            for backward in (False, True):
                try:
                    one(report, settings, row, dtype, backward)
                except Exception as error:  # a layer without half, or no torchvision: the others still run
                    what = f"{row.layer}, {row.size}, {word(dtype)}, {run(backward)}"
                    report.notes.append(f"{what}: {brief(error)}")
                torch.cuda.empty_cache()
    report.notes += [
        "Above 1 ours is faster. wall: called from Python, one call after the other. kernels: in a CUDA graph, over "
        "buffers beyond the L2.",
        "A name in lower case is a layer that ships with a library, one in capitals a type of Caffe nets, by torch.",
        "PriorBox and DetectionOutput have no counterpart in torchvision.",
    ]
    summarise(report)
    return report


def word(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def run(backward: bool) -> str:
    return "forward + backward" if backward else "forward"


def one(report: Report, settings: Settings, row: Row, dtype: torch.dtype, backward: bool) -> None:
    drawn = row.draw(Draw())
    tensors, fixed = drawn[: len(drawn) - row.fixed], drawn[len(drawn) - row.fixed :]
    # Half precision cannot represent odd numbers above 2048; a loss's weights have the loss's dtype.
    fixed_type = dtype if row.fixed == 2 else torch.float32
    arguments = (*cast(tensors, dtype, GPU, grad=backward), *cast(fixed, fixed_type, GPU))
    contenders = {OURS: row.ours(arguments), PEER: row.theirs(arguments)}
    for contender in contenders.values():
        if isinstance(contender, nn.Module):
            contender.to(GPU, dtype).train()
    if row.same:
        agree(contenders, arguments, AGREE[dtype])
    timers = {}
    for name, contender in contenders.items():
        calls = repeated(contender, arguments, backward)
        timers[name] = on_wall(calls[:1], rounds=20)
        timers[name + KERNELS] = on_gpu(calls)
    times = in_turns(timers, seconds=0.1 if settings.quick else 0.4, most=40)
    module = type(contenders[OURS]).__module__
    report.row(
        layer=row.layer,
        by="torch" if ".nets.forks" in module else "kernels",
        size=row.size,
        dtype=word(dtype),
        run=run(backward),
        peer=row.peer,
        **{
            "wall": times.ratio(PEER, OURS),
            "us": times.median(OURS) * 1e6,
            "its us": times.median(PEER) * 1e6,
        },
        **{
            "kernels": times.ratio(PEER + KERNELS, OURS + KERNELS),
            "kernels us": times.median(OURS + KERNELS) * 1e6,
            "its kernels us": times.median(PEER + KERNELS) * 1e6,
            "spread": times.spread(OURS),
        },
    )

    what = f"{row.layer}, {row.size}, {word(dtype)}, {run(backward)}"
    for key in ("wall", "kernels"):
        report.details.append(
            Figure(f"{what}, {key}", _machine.here(GPU), report.rows[-1][key], at_most=False)
        )


def agree(contenders: dict, arguments: tuple, most: float) -> None:
    """Compare the tops, because a time for a wrong result is worthless."""
    with torch.no_grad():
        ours, theirs = (top_of(contender(*arguments)).double() for contender in contenders.values())
    error = float((ours - theirs.reshape(ours.shape)).norm() / theirs.norm())
    if not error <= most:
        raise RuntimeError(f"the tops differ by {error:.1e}")


def top_of(made) -> Tensor:
    return made if isinstance(made, Tensor) else made[0]


def repeated(contender: Callable, arguments: tuple, backward: bool) -> list[Callable]:
    """The same call for several sets of buffers, so many that the GPU's cache does not help."""
    with torch.no_grad():
        top = top_of(contender(*arguments))
    moved = sum(x.nbytes for x in (*arguments, top))
    calls = []
    for _ in range(min(8, sets_beyond_cache(moved))):
        own = tuple(x.detach().clone().requires_grad_(x.requires_grad) for x in arguments)
        given = torch.randn_like(top)
        calls.append(lambda own=own, given=given: once(contender, own, given, backward))
    return calls


def once(contender: Callable, arguments: tuple, given: Tensor, backward: bool):
    if not backward:
        with torch.no_grad():
            return contender(*arguments)
    wanted = [x for x in arguments if x.requires_grad]
    wanted += contender.parameters() if isinstance(contender, nn.Module) else []
    top = top_of(contender(*arguments))
    return top, torch.autograd.grad(top, wanted, given.reshape(top.shape))


def summarise(report: Report) -> None:
    here = _machine.here(GPU)
    for key, kind in itertools.product(("wall", "kernels"), (run(False), run(True))):
        ratios = [row[key] for row in report.rows if row["run"] == kind]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            report.figure(f"peers, {kind}, {key}: geometric mean", here, mean, 1.0, at_most=False)
            report.figure(f"peers, {kind}, {key}: least", here, min(ratios), 1.0, at_most=False)
