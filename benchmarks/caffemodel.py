"""A .caffemodel of VGG16's size (553 MB) into its net, against torch.load of the same tensors into the same net.

The file is in the cache when it is read. Memory is the process's peak over what it had with the net built, as a
multiple of the parameters' own size, each way in a process of its own.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from cuffi import caffe_net

from . import _machine, _make
from ._report import Report, Settings
from ._timing import in_turns, on_cpu
from .nets import VGG, Prototxt

GROUP = "caffemodel"
OURS, TORCH = "load_caffemodel", "torch.load, load_state_dict"
# Outputs of the last layers. Few for --quick.
FULL, QUICK = (4096, 4096, 1000), (256, 256, 10)
PEAK_IN = "peak / parameters"

PEAK = """
import re, sys, torch
from cuffi import caffe_net
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
    net, x = Prototxt(1, 224), "data"
    for stage in VGG:
        for outputs in stage:
            x = net.conv(x, outputs, 3, "pad: 1")
        x = net.pool(x, "kernel_size: 2 stride: 2")
    for outputs in sizes:
        x = net.fc(x, outputs)
    return net.text


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
