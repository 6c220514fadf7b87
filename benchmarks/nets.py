"""Whole Caffe nets as `caffe_net` runs them, against the same nets written by hand in torch: forward, training step.

On a GPU three of them are measured under torch.compile, too, both nets compiled.

The prototxts are written here. Both nets have the same weights and give the same result. Where
LAYERS_DIR also lists a folder with the stock types as ported from a fork (`make port TYPE=all`), the net with all of
its layers by the fork's own code is measured, too.
"""

import itertools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from cuffi import caffe_net
from cuffi.nets.net.needs import needs
from cuffi.nets.net.net import CaffeNet
from cuffi.nets.net.registry import Folders

from . import _machine
from ._machine import GPU
from ._report import Report, Settings
from ._timing import in_turns, on_cpu, on_wall
from .network import COMPILED, EAGER, TRAINING, settle, training_step

GROUP = "nets"
FORWARD = "forward"
OURS, TORCH, UNEDITED = "caffe_net", "by hand", "all unedited"
REACH = 1.05  # ours over torch's time, where the GPU is busy
CLASSES = 1000


class Prototxt:
    """The text of a net. `add` adds a layer and returns the name of its top."""

    def __init__(self, batch: int, side: int):
        self.text = f'input: "data" input_shape {{ dim: {batch} dim: 3 dim: {side} dim: {side} }}\n'
        self.numbers = itertools.count()

    def add(self, type: str, bottoms, parameters: str = "", in_place: bool = False) -> str:
        bottoms = [bottoms] if isinstance(bottoms, str) else bottoms
        name = f"{type.lower()}{next(self.numbers)}"
        top = bottoms[0] if in_place else name
        links = " ".join(f'bottom: "{b}"' for b in bottoms)
        self.text += f'layer {{ name: "{name}" type: "{type}" {links} top: "{top}" {parameters} }}\n'
        return top

    def relu(self, x: str) -> str:
        return self.add("ReLU", x, in_place=True)

    def conv(self, x: str, outputs: int, kernel: int, more: str = "") -> str:
        said = f'num_output: {outputs} kernel_size: {kernel} weight_filler {{ type: "msra" }} {more}'
        return self.add("Convolution", x, f"convolution_param {{ {said} }}")

    def norm_conv(self, x: str, outputs: int, kernel: int, stride=1, pad=0, group=1, relu=True) -> str:
        """Convolution, BatchNorm, Scale and ReLU."""
        x = self.conv(x, outputs, kernel, f"stride: {stride} pad: {pad} group: {group} bias_term: false")
        x = self.add("BatchNorm", x, in_place=True)
        x = self.add("Scale", x, "scale_param { bias_term: true }", in_place=True)
        return self.relu(x) if relu else x

    def pool(self, x: str, said: str) -> str:
        return self.add("Pooling", x, f"pooling_param {{ {said} }}")

    def fc(self, x: str, outputs: int) -> str:
        said = f'num_output: {outputs} weight_filler {{ type: "gaussian" std: 0.01 }}'
        return self.add("InnerProduct", x, f"inner_product_param {{ {said} }}")


# ------------------------------------------------------------------------------------------------ VGG16

VGG = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


def vgg16(net: Prototxt) -> None:
    x = "data"
    for stage in VGG:
        for outputs in stage:
            x = net.relu(net.conv(x, outputs, 3, "pad: 1"))
        x = net.pool(x, "kernel_size: 2 stride: 2")
    for _ in range(2):
        x = net.add("Dropout", net.relu(net.fc(x, 4096)), in_place=True)
    net.fc(x, CLASSES)


def vgg16_by_hand(side: int) -> nn.Module:
    made, channels = [], 3
    for stage in VGG:
        for outputs in stage:
            made += [nn.Conv2d(channels, outputs, 3, padding=1), nn.ReLU(inplace=True)]
            channels = outputs
        made.append(nn.MaxPool2d(2, 2, ceil_mode=True))
    made.append(nn.Flatten())
    for inputs in (512 * (side // 32) ** 2, 4096):
        made += [nn.Linear(inputs, 4096), nn.ReLU(inplace=True), nn.Dropout()]
    return nn.Sequential(*made, nn.Linear(4096, CLASSES))


# -------------------------------------------------------------------------------------------- ResNet-50

RESNET = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # channels, blocks, stride


def resnet50(net: Prototxt) -> None:
    x = net.pool(net.norm_conv("data", 64, 7, 2, 3), "kernel_size: 3 stride: 2")
    for channels, blocks, stride in RESNET:
        for i in range(blocks):
            step = stride if i == 0 else 1
            short = net.norm_conv(x, 4 * channels, 1, step, relu=False) if i == 0 else x
            y = net.norm_conv(x, channels, 1, step)
            y = net.norm_conv(y, channels, 3, pad=1)
            y = net.norm_conv(y, 4 * channels, 1, relu=False)
            x = net.relu(net.add("Eltwise", [short, y]))
    net.fc(net.pool(x, "pool: AVE global_pooling: true"), CLASSES)


def norm_conv(inputs: int, outputs: int, kernel: int, stride=1, pad=0, group=1, relu=True) -> nn.Sequential:
    made = [
        nn.Conv2d(inputs, outputs, kernel, stride, pad, groups=group, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*made, *[nn.ReLU(inplace=True)] * relu)


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, channels: int, stride: int, first: bool):
        super().__init__()
        self.short = norm_conv(inputs, 4 * channels, 1, stride, relu=False) if first else None
        self.branch = nn.Sequential(
            norm_conv(inputs, channels, 1, stride),
            norm_conv(channels, channels, 3, pad=1),
            norm_conv(channels, 4 * channels, 1, relu=False),
        )

    def forward(self, x):
        short = x if self.short is None else self.short(x)
        return F.relu(short + self.branch(x), inplace=True)


def resnet50_by_hand(side: int) -> nn.Module:
    made: list[nn.Module] = [norm_conv(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, ceil_mode=True)]
    inputs = 64
    for channels, blocks, stride in RESNET:
        for i in range(blocks):
            made.append(Bottleneck(inputs, channels, stride if i == 0 else 1, i == 0))
            inputs = 4 * channels
    return nn.Sequential(*made, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


# -------------------------------------------------------------------------------------------- MobileNet

MOBILENET = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))


def mobilenet(net: Prototxt) -> None:
    x, channels = net.norm_conv("data", 32, 3, 2, 1), 32
    for outputs, stride in MOBILENET:
        x = net.norm_conv(net.norm_conv(x, channels, 3, stride, 1, group=channels), outputs, 1)
        channels = outputs
    net.fc(net.pool(x, "pool: AVE global_pooling: true"), CLASSES)


def mobilenet_by_hand(side: int) -> nn.Module:
    made, channels = [norm_conv(3, 32, 3, 2, 1)], 32
    for outputs, stride in MOBILENET:
        made += [norm_conv(channels, channels, 3, stride, 1, channels), norm_conv(channels, outputs, 1)]
        channels = outputs
    return nn.Sequential(*made, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


# ----------------------------------------------------------------------------------------------- SSD300

# After the trunk: channels of a 1x1 and a 3x3 convolution, stride, pad. BOXES: those at a place of each of the 6 maps.
SSD = ((256, 512, 2, 1), (128, 256, 2, 1), (128, 256, 1, 0), (128, 256, 1, 0))
BOXES, SSD_CLASSES = (4, 6, 6, 6, 4, 4), 21


def ssd300(net: Prototxt) -> list[tuple[str, str, str]]:
    """The trunk and its heads. Returns (map, offsets, scores) of each."""
    x, maps = "data", []
    for i, stage in enumerate(VGG):
        for outputs in stage:
            x = net.relu(net.conv(x, outputs, 3, "pad: 1"))
        if i == 3:
            maps.append(x)
        x = net.pool(x, "kernel_size: 2 stride: 2" if i < 4 else "kernel_size: 3 stride: 1 pad: 1")
    x = net.relu(net.conv(x, 1024, 3, "pad: 6 dilation: 6"))
    x = net.relu(net.conv(x, 1024, 1))
    maps.append(x)
    for narrow, outputs, stride, pad in SSD:
        x = net.relu(net.conv(x, narrow, 1))
        x = net.relu(net.conv(x, outputs, 3, f"stride: {stride} pad: {pad}"))
        maps.append(x)
    said = 'across_spatial: false channel_shared: false scale_filler { type: "constant" value: 20 }'
    maps[0] = net.add("Normalize", maps[0], f"norm_param {{ {said} }}")
    return [
        (map, net.conv(map, boxes * 4, 3, "pad: 1"), net.conv(map, boxes * SSD_CLASSES, 3, "pad: 1"))
        for map, boxes in zip(maps, BOXES, strict=True)
    ]


class ChannelNorm(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.scale = nn.Parameter(torch.full((channels,), 20.0))

    def forward(self, x):
        return F.normalize(x, eps=1e-10) * self.scale[:, None, None]


class SSD300(nn.Module):
    """The trunk, the norm and the heads: what is computed before boxes are matched or decoded."""

    def __init__(self):
        super().__init__()
        stages, channels = [], 3
        for i, stage in enumerate(VGG):
            for outputs in stage:
                stages.append([nn.Conv2d(channels, outputs, 3, padding=1), nn.ReLU(inplace=True)])
                channels = outputs
            stages.append([nn.MaxPool2d(2, 2, ceil_mode=True) if i < 4 else nn.MaxPool2d(3, 1, 1)])
        until = 13  # conv4_3 is read before the pooling
        self.first = nn.Sequential(*itertools.chain(*stages[:until]))
        stages.append([nn.Conv2d(512, 1024, 3, padding=6, dilation=6), nn.ReLU(inplace=True)])
        stages.append([nn.Conv2d(1024, 1024, 1), nn.ReLU(inplace=True)])
        self.second = nn.Sequential(*itertools.chain(*stages[until:]))
        self.more, sizes = nn.ModuleList(), [512, 1024]
        for narrow, outputs, stride, pad in SSD:
            made = [nn.Conv2d(sizes[-1], narrow, 1), nn.ReLU(inplace=True)]
            made += [nn.Conv2d(narrow, outputs, 3, stride, pad), nn.ReLU(inplace=True)]
            self.more.append(nn.Sequential(*made))
            sizes.append(outputs)
        self.norm = ChannelNorm(512)
        self.heads = nn.ModuleList(
            nn.Conv2d(size, boxes * outputs, 3, padding=1)
            for size, boxes in zip(sizes, BOXES, strict=True)
            for outputs in (4, SSD_CLASSES)
        )

    def forward(self, x):
        maps = [self.first(x)]
        maps.append(self.second(maps[0]))
        for block in self.more:
            maps.append(block(maps[-1]))
        maps[0] = self.norm(maps[0])
        return [head(maps[i // 2]) for i, head in enumerate(self.heads)]


# -------------------------------------------------------------------------------------------- measuring

# (the text, the module by hand, images' side, batch that keeps a GPU busy)
NETS = {
    "VGG16": (vgg16, vgg16_by_hand, 224, 32),
    "ResNet-50": (resnet50, resnet50_by_hand, 224, 64),
    "MobileNet": (mobilenet, mobilenet_by_hand, 224, 64),
    "SSD300": (ssd300, lambda side: SSD300(), 300, 16),
}
COMPILED_NETS = ("ResNet-50", "MobileNet", "SSD300")
SMALL = 64  # images' side on a processor: so small that a layer's Python shows


def measure(settings: Settings) -> Report:
    report = Report("Caffe nets, float32: time over that of the net by hand")
    device = _machine.devices()[0]
    folders = Folders()
    needed = {t for name, net in NETS.items() for t in needs(prototxt(name, 1, net[2]))}
    missing = sorted(t for t in needed if not folders.find(t))
    with torch.backends.cudnn.flags(enabled=True, benchmark=True):
        for name in NETS:
            nets, side = made(name, device, unedited=not missing)
            for mode in modes(name, device, settings):
                for run, batch in runs(name, device):
                    images = torch.randn(batch, 3, side, side, device=device)
                    row(report, settings, mode, name, nets, run, images)
    if missing:
        report.notes.append(f"{UNEDITED}: not measured, no folder of LAYERS_DIR has {', '.join(missing)}.")
    report.notes.append("A training step: zero_grad, forward, loss, backward, SGD with momentum.")
    return report


def modes(name: str, device: str, settings: Settings) -> list[str]:
    # A compilation takes a minute.
    compiles = device == GPU and name in COMPILED_NETS and not settings.quick
    return [EAGER, COMPILED] if compiles else [EAGER]


def runs(name: str, device: str) -> list[tuple[str, int]]:
    """(run, batch)"""
    # On a processor this shows that it works, and the cost of a layer's Python code.
    if device != GPU:
        return [(FORWARD, 1)] if name == "SSD300" else [(FORWARD, 1), (TRAINING, 2)]
    return [(FORWARD, 1), (FORWARD, NETS[name][3]), (TRAINING, NETS[name][3])]


def prototxt(name: str, batch: int, side: int) -> str:
    net = Prototxt(batch, side)
    NETS[name][0](net)
    return net.text


def made(name: str, device: str, unedited: bool) -> tuple[dict[str, nn.Module], int]:
    """The contenders, and the side of the images that they are for."""
    _, by_hand, side, _ = NETS[name]
    # A smaller image would leave nothing of SSD300's last map.
    if device != GPU and name != "SSD300":
        side = SMALL
    torch.manual_seed(0)
    text = prototxt(name, 2, side)
    nets = {OURS: caffe_net(text), TORCH: by_hand(side)}
    if unedited:
        nets[UNEDITED] = caffe_net(text, native=False)
    same_parameters(nets)
    for net in nets.values():
        net.to(device)
    agree(nets, torch.randn(2, 3, side, side, device=device))
    return nets, side


def row(
    report: Report, settings: Settings, mode: str, name: str, nets: dict[str, nn.Module], run: str, images
) -> None:
    device, (batch, _, side, _) = images.device.type, images.shape
    if mode == COMPILED:
        torch.compiler.reset()
        nets = {contender: nets[contender] for contender in (OURS, TORCH)}
    calls = {contender: step(net, images, run, mode) for contender, net in nets.items()}
    timers = {c: on_wall([call]) if device == GPU else on_cpu([call]) for c, call in calls.items()}
    times = in_turns(timers, seconds=0.5 if settings.quick else 2, most=15 if settings.quick else 60)
    ratio = times.ratio(OURS, TORCH)
    report.row(
        mode=mode,
        net=name,
        run=run,
        batch=batch,
        **{f"{c} ms": times.median(c) * 1e3 for c in times},
        **{"ours / by hand": ratio, "spread": times.spread(OURS)},
        **({"unedited / by hand": times.ratio(UNEDITED, TORCH)} if UNEDITED in nets else {}),
    )
    busy = device == GPU and batch > 1
    what = f"{name}, {mode}, {run}, batch {batch}, {side} x {side}: {OURS} / {TORCH}"
    report.figure(what, _machine.here(device), ratio, REACH if busy else None)


@torch.no_grad()
def same_parameters(nets: dict[str, nn.Module]) -> None:
    first, *others = map(trained, nets.values())
    for other in others:
        for mine, theirs in zip(first, other, strict=True):
            theirs.copy_(mine.reshape(theirs.shape))


def trained(net: nn.Module) -> list[nn.Parameter]:
    """The parameters in the order of the layers, without the statistics of a fork's own BatchNorm."""
    if not isinstance(net, CaffeNet):
        return list(net.parameters())
    layers = (layer for key, layer in net.named_children() if net.specs[key].type != "BatchNorm")
    return [parameter for layer in layers for parameter in layer.parameters()]


def agree(nets: dict[str, nn.Module], images) -> None:
    """Compare both nets, because a time for a wrong net is worthless. The norms' statistics become those of these
    images.

    TF32 is off: torch uses it for convolutions by default, and Caffe's code does not.
    """
    answers = {}
    with torch.no_grad(), torch.backends.cudnn.flags(torch.backends.cudnn.enabled, allow_tf32=False):
        for contender, net in nets.items():
            settle(net, images)
            tops = outputs(net.eval()(images))
            answers[contender] = torch.cat([top.reshape(-1) for top in tops]).double()
    for contender, answer in answers.items():
        error = float((answer - answers[TORCH]).norm() / answers[TORCH].norm())
        if not error <= 3e-3:
            raise RuntimeError(f"{contender}'s answer differs from {TORCH}'s by {error:.1e}")


def outputs(tops) -> list:
    """In the order of the file, whoever made them."""
    if isinstance(tops, torch.Tensor):
        return [tops]
    if isinstance(tops, dict):
        return [tops[name] for name in sorted(tops, key=lambda n: int("".join(filter(str.isdigit, n))))]
    return tops


def step(net: nn.Module, images, run: str, mode: str) -> Callable[[], object]:
    """A function without arguments that runs the net once."""
    call = torch.compile(net) if mode == COMPILED else net
    labels = torch.randint(0, CLASSES, images.shape[:1], device=images.device)

    def forward():
        with torch.inference_mode():
            return call(images)

    def loss():
        tops = outputs(call(images))
        # SSD's own loss is not compared.
        several = len(tops) > 1
        return sum(top.square().mean() for top in tops) if several else F.cross_entropy(tops[0], labels)

    net.train(run == TRAINING)
    if run != TRAINING and isinstance(net, CaffeNet):
        net.fuse()
    return training_step(net, loss) if run == TRAINING else forward
