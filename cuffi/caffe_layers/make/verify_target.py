"""`make verify`: build a Caffe layer, and compare its CPU code, kernels and finite differences (../verify)."""

from __future__ import annotations

import os
import subprocess
import sys

from tools.make import requirements
from tools.make.build import build, copied, is_dry, make_flags
from tools.make.folders import check_layer, layers_in
from tools.make.job import Job
from tools.make.settings import Settings
from tools.refused import Refused

# The last line, by the status of the program, because make itself exits with 2 for each of them.
VERDICTS = {0: "right", 1: "wrong"}


def verify(settings: Settings) -> int:
    arguments = settings.arguments
    layer = arguments.get("LAYER", "").strip()
    if not layer:
        names = (
            name for name, folder in layers_in(settings.layers_dir).items() if folder.kind.name == "caffe"
        )
        layers = " ".join(names) or "none"
        raise Refused(
            f"which layer? {settings.hint('verify', LAYER='foo')}\nCaffe layers in {settings.layers_dir}: {layers}"
        )
    check_layer(layer, "LAYER")
    requirements.need(["build", "run"], f"{settings.build}/packages")
    job = Job(settings, only=[layer])
    if job.folder(layer).kind.name != "caffe":
        raise Refused(
            f"LAYER={layer}: verify is for Caffe layers. A native layer has its reference in cases.py: "
            f"{settings.suite(f'-k {layer}')}"
        )
    if status := build(job):
        return status
    if is_dry(make_flags()):
        return 0
    place = os.path.dirname(job.folder(layer).path)
    command = [sys.executable, "-m", "cuffi.caffe_layers.verify", f"--layers-dir={place}"]
    for option in ("PARAM", "SHAPES", "TYPE"):
        if option in arguments:
            command.append(f"--{option.lower()}={arguments[option]}")
    if any(source.endswith(".cu") for source in job.folder(layer).sources):
        with_races = copied(settings, "races", f"{settings.build}/races")
        if status := build(Job(with_races, only=[layer])):
            return status
        command.append(f"--races={with_races.layers_dir}")
    status = subprocess.call([*command, "--", layer])
    print(f"verdict: {VERDICTS.get(status, 'none')}", flush=True)
    return status
