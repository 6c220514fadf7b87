"""A .caffemodel of VGG16's size (553 MB) into its net, against torch.load of the same tensors into the same net.

The file is in the cache when it is read. Memory is the process's peak over what it had with the net built, as a
multiple of the parameters' own size, each way in a process of its own.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from layers import caffe_net

from . import _machine, _make
from ._report import Report, Settings
from ._timing import in_turns, on_cpu

GROUP = "caffemodel"
OURS, TORCH = "load_caffemodel", "torch.load, load_state_dict"
# Channels of the convolutions; None: a pooling. A small one of the same shape for --quick.
CONVOLUTIONS = (64, 64, None, 128, 128, None, 256, 256, 256, None, *(512, 512, 512, None) * 2)
FULL, QUICK = (4096, 4096, 1000), (256, 256, 10)
PEAK_IN = "peak / parameters"

PEAK = """
import re, sys, torch
from layers import caffe_net
net = caffe_net(sys.argv[1])
# getrusage's peak begins with that of the process that started this one.
peak = lambda: 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = peak()
if sys.argv[2].endswith(".pt"):
    net.load_state_dict(torch.load(sys.argv[2]))
else:
    net.load_caffemodel(sys.argv[2])
size = sum(p.numel() * p.element_size() for p in net.parameters())
print((peak() - before + size) / size)
"""


def prototxt(sizes: tuple[int, ...]) -> str:
    text = 'input: "data" input_shape { dim: 1 dim: 3 dim: 224 dim: 224 }\n'
    bottom = "data"

    def add(name: str, type: str, parameters: str) -> str:
        return f'layer {{ name: "{name}" type: "{type}" bottom: "{bottom}" top: "{name}" {parameters} }}\n'

    for i, channels in enumerate(CONVOLUTIONS):
        name = f"layer{i}"
        if channels is None:
            text += add(name, "Pooling", "pooling_param { kernel_size: 2 stride: 2 }")
        else:
            said = f"num_output: {channels} kernel_size: 3 pad: 1"
            text += add(name, "Convolution", f"convolution_param {{ {said} }}")
        bottom = name
    for i, outputs in enumerate(sizes):
        text += add(f"fc{i}", "InnerProduct", f"inner_product_param {{ num_output: {outputs} }}")
        bottom = f"fc{i}"
    return text


def measure(settings: Settings) -> Report:
    report = Report("A .caffemodel into its net")
    with TemporaryDirectory(dir=settings.out) as place:
        deploy, caffe, saved = (Path(place, name) for name in ("deploy.prototxt", "w.caffemodel", "w.pt"))
        deploy.write_text(prototxt(QUICK if settings.quick else FULL))
        net = caffe_net(deploy)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.uniform_(-1, 1)
        net.save_caffemodel(caffe)
        torch.save(net.state_dict(), saved)
        calls = {
            OURS: lambda: net.load_caffemodel(caffe),
            TORCH: lambda: net.load_state_dict(torch.load(saved)),
        }
        times = in_turns({name: on_cpu([call]) for name, call in calls.items()}, seconds=10, least=5, most=20)
        for name, file in ((OURS, caffe), (TORCH, saved)):
            peak = float(_make.run([sys.executable, "-c", PEAK, str(deploy), str(file)]))
            seconds, spread = times.median(name), times.spread(name)
            report.row(by=name, MB=file.stat().st_size / 1e6, s=seconds, spread=spread, **{PEAK_IN: peak})
    here = _machine.here("cpu")
    report.figure(f"{OURS} / {TORCH}, wall time", here, times.ratio(OURS, TORCH), 1.5)
    report.figure(f"{OURS}, peak memory / parameters", here, report.rows[0][PEAK_IN], 2.2)
    return report
