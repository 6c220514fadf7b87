"""Load a layer from any folder: `python examples/own_folder.py`.

`make LAYERS_DIR=examples/my_layers` builds the same folder ahead of time. Then `make test` with that setting tests it.
"""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # not needed if the toolkit is installed
from cuffi import load

leaky = load(Path(__file__).parent / "my_layers" / "leaky").leaky

x = torch.tensor([-2.0, -1.0, 0.5], requires_grad=True)
y = leaky(x, 0.1)
(x_diff,) = torch.autograd.grad(y.sum(), x)
print(y.tolist(), x_diff.tolist())
print(torch.compile(leaky, fullgraph=True, backend="eager")(x, 0.1).tolist())
