"""An update of ResNet-50's parameters by caffe_solver, against torch.optim with foreach and the same groups."""

from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from cuffi import caffe_net
from cuffi.train import caffe_solver

from . import _machine
from ._machine import GPU
from ._report import Report, Settings
from ._timing import in_turns, on_cpu, on_wall
from .nets import prototxt

GROUP = "nets"
TORCH = {
    "SGD": lambda groups: torch.optim.SGD(groups, momentum=0.9, foreach=True),
    "Nesterov": lambda groups: torch.optim.SGD(groups, momentum=0.9, nesterov=True, foreach=True),
    "Adam": lambda groups: torch.optim.Adam(groups, foreach=True),
}


def measure(settings: Settings) -> Report:
    report = Report("An update of ResNet-50's parameters")
    report.notes.append("Caffe's update is not torch's: the two compute other numbers, from as many arrays.")
    device = GPU if torch.cuda.is_available() else "cpu"
    net = caffe_net(prototxt("ResNet-50", 1, 224), phase="TRAIN").to(device)
    for parameter in net.parameters():
        parameter.grad = torch.randn_like(parameter)
    with TemporaryDirectory(dir=settings.out) as folder:
        for kind, peer in TORCH.items():
            path = Path(folder, "solver.prototxt")
            path.write_text(
                f'type: "{kind}" base_lr: 1e-6 momentum: 0.9 weight_decay: 1e-4 lr_policy: "fixed"'
            )
            ours, _ = caffe_solver(path, net)
            theirs = peer(net.parameter_groups(1e-6, 1e-4))
            timed = on_wall if device == GPU else on_cpu
            timers = {"ours": timed([ours.step]), "torch": timed([theirs.step])}
            times = in_turns(timers, seconds=2 if settings.quick else 6)
            for name in timers:
                report.row(
                    on=device, type=kind, by=name, us=times.median(name) * 1e6, spread=times.spread(name)
                )
            here = _machine.here(device)
            report.figure(
                f"{kind}: caffe_solver / torch.optim, foreach", here, times.ratio("ours", "torch"), 1.1
            )
    return report
