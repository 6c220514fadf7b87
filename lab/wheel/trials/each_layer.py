"""Each layer of the package runs the first input of each of its cases, forward and backward, against its reference."""

import importlib
import platform
from pathlib import Path

import torch

import cuffi
from cuffi.runtime.cases import Draw, layer_of

devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
layers = sorted(f.parent.name for f in Path(cuffi.__file__).parent.glob("**/_host.abi3.so"))
done = 0
for name in layers:
    layer = layer_of(importlib.import_module(f"cuffi.{name}"))
    for case in importlib.import_module(f"cuffi.{name}.cases").CASES:
        for device in (d for d in devices if case.supports(layer, d, torch.float32)):
            verdict = case.run(next(iter(case.inputs.values()))(Draw()), torch.float32, device)
            assert verdict.right, (name, case.name, device, verdict.words)
            done += 1
assert done, "no layer is in the wheel"
where = torch.cuda.get_device_name() if len(devices) > 1 else "cpu"
print("ROW", platform.python_version(), torch.__version__, len(layers), done, where, sep="|")
