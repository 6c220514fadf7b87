"""cuffi.dnn beside OpenCV 4's own importer, one thread of the processor: the processor's time of `forward`.

OpenCV 5 has no importer of Caffe's files. Both get the same files, with random weights, and the same image.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cuffi import caffe_net, dnn
from cuffi.nets.net.net import CaffeNet

from . import _machine
from ._report import Report, Settings
from ._timing import Timer, in_turns
from .nets import BOXES, SSD_CLASSES, Prototxt, mobilenet, resnet50, ssd300

GROUP = "nets"
OURS, OPENCV = "cuffi.dnn", "OpenCV"
REACH = 1.1  # ours over OpenCV's time
# Of a Fire module: the channels that it squeezes to and expands to, twice. "pool" stands before the next.
FIRES: tuple[tuple[int, int] | str, ...] = (
    (16, 64), (16, 64), "pool", (32, 128), (32, 128), "pool", (48, 192), (48, 192), (64, 256), (64, 256),
)  # fmt: skip
# Of each map: the least and the most size of its boxes in pixels, and the ratios of their sides.
SIZES = ((30, 60), (60, 111), (111, 162), (162, 213), (213, 264), (264, 315))
RATIOS = ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,))
HEADS = {boxes * outputs for boxes in BOXES for outputs in (4, SSD_CLASSES)}  # the channels of SSD's heads
BACKGROUND = 6.0  # the bias of the scores of no class: most boxes are of none, as in a trained net


def squeezenet(net: Prototxt) -> None:
    pool = "kernel_size: 3 stride: 2"
    x = net.pool(net.relu(net.conv("data", 64, 3, "stride: 2")), pool)
    for fire in FIRES:
        if isinstance(fire, str):
            x = net.pool(x, pool)
            continue
        squeezed = net.relu(net.conv(x, fire[0], 1))
        parts = [net.relu(net.conv(squeezed, fire[1], size, f"pad: {size // 2}")) for size in (1, 3)]
        x = net.add("Concat", parts)
    x = net.pool(net.relu(net.conv(x, 1000, 1)), "pool: AVE global_pooling: true")
    net.add("Softmax", x)


def whole_ssd300(net: Prototxt) -> None:
    """With its last layers, up to the found boxes."""
    offsets, scores, priors = [], [], []
    for (map, *heads), (low, high), ratios in zip(ssd300(net), SIZES, RATIOS, strict=True):
        for head, of in zip(heads, (offsets, scores), strict=True):
            moved = net.add("Permute", head, "permute_param { order: 0 order: 2 order: 3 order: 1 }")
            of.append(net.add("Flatten", moved, "flatten_param { axis: 1 }"))
        said = f"min_size: {low} max_size: {high} flip: true offset: 0.5 "
        said += " ".join([f"aspect_ratio: {ratio}" for ratio in ratios])
        said += "".join(f" variance: {variance}" for variance in (0.1, 0.1, 0.2, 0.2))
        priors.append(net.add("PriorBox", [map, "data"], f"prior_box_param {{ {said} }}"))
    joined = [net.add("Concat", of, "concat_param { axis: 1 }") for of in (offsets, scores)]
    prior = net.add("Concat", priors, "concat_param { axis: 2 }")
    shaped = f"reshape_param {{ shape {{ dim: 0 dim: -1 dim: {SSD_CLASSES} }} }}"
    found = net.add("Softmax", net.add("Reshape", joined[1], shaped), "softmax_param { axis: 2 }")
    found = net.add("Flatten", found, "flatten_param { axis: 1 }")
    said = f"num_classes: {SSD_CLASSES} share_location: true background_label_id: 0 code_type: CENTER_SIZE"
    said += " keep_top_k: 200 confidence_threshold: 0.01"
    said += " nms_param { nms_threshold: 0.45 top_k: 400 }"
    net.add("DetectionOutput", [joined[0], found, prior], f"detection_output_param {{ {said} }}")


# The net, the side of its image.
NETS: dict[str, tuple[Callable[[Prototxt], object], int]] = {
    "SqueezeNet": (squeezenet, 227),
    "SSD300": (whole_ssd300, 300),
    "MobileNet": (mobilenet, 224),
    "ResNet-50": (resnet50, 224),
}


def measure(settings: Settings) -> Report:
    report = Report("cuffi.dnn and OpenCV's own importer, one thread, ms of the processor for one image")
    try:
        import cv2
    except ImportError:
        report.notes.append("Nothing was measured: cv2 is not installed.")
        return report
    if int(cv2.__version__.split(".")[0]) > 4:
        report.notes.append(f"Nothing was measured: OpenCV {cv2.__version__} does not read Caffe's files.")
        return report
    before = torch.get_num_threads(), cv2.getNumThreads()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    try:
        for name in NETS:
            row(report, settings, name, cv2)
    finally:
        torch.set_num_threads(before[0])
        cv2.setNumThreads(before[1])
    report.notes.append(f"OpenCV {cv2.__version__}, torch {torch.__version__}.")
    return report


def row(report: Report, settings: Settings, name: str, cv2) -> None:
    write, side = NETS[name]
    net = Prototxt(1, side)
    write(net)
    image = np.random.default_rng(0).standard_normal((1, 3, side, side), np.float32)
    with tempfile.TemporaryDirectory() as folder:
        files = str(Path(folder, "net.prototxt")), str(Path(folder, "net.caffemodel"))
        Path(files[0]).write_text(net.text)
        torch.manual_seed(0)
        trained(caffe_net(files[0]), torch.from_numpy(image)).save_caffemodel(files[1])
        nets = {OURS: dnn.readNetFromCaffe(*files), OPENCV: cv2.dnn.readNetFromCaffe(*files)}
    ours, theirs = (forward(one, image) for one in nets.values())
    if ours.shape != theirs.shape or not difference(ours, theirs) < 1e-2:
        raise RuntimeError(f"{name}: the results differ")
    timers = {contender: timer(one, image) for contender, one in nets.items()}
    times = in_turns(timers, seconds=3.0 if settings.quick else 20.0, least=5, most=40)
    ratio = times.least(OURS) / times.least(OPENCV)
    report.row(net=name, **{contender: times.least(contender) * 1e3 for contender in times}, ratio=ratio)
    report.figure(f"{name}, one thread, cuffi.dnn / OpenCV", _machine.here("cpu"), ratio, REACH)


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Of the results, as a share of the largest; of found boxes that of their scores.

    OpenCV's convolutions round otherwise, by 1e-5, so a box whose overlap is at the threshold stays in one of both.
    """
    if ours.shape[-1] == 7:
        ours, theirs = (np.sort(found[..., 2], None) for found in (ours, theirs))
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def trained(net: CaffeNet, image: Tensor) -> CaffeNet:
    """The net as if it had been trained: statistics of the image; boxes near their priors, most without a class."""
    with torch.no_grad():
        net.train()(image)
        for name, parameter in net.named_parameters():
            if "convolution" not in name or parameter.shape[0] not in HEADS:
                continue
            of_scores = parameter.shape[0] % SSD_CLASSES == 0
            if parameter.dim() > 1:
                parameter.mul_(0.5 if of_scores else 0.02)
            elif of_scores:
                parameter.reshape(-1, SSD_CLASSES)[:, 0] = BACKGROUND
    return net.eval()


def forward(net, image: np.ndarray) -> np.ndarray:
    net.setInput(image)
    return net.forward()


def timer(net, image: np.ndarray) -> Timer:
    def once() -> float:
        start = time.thread_time()
        forward(net, image)
        return time.thread_time() - start

    return once
