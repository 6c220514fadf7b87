"""ModelNew against Model: what a candidate does to seem right, in a process of its own."""

import os
import subprocess
import sys

import pytest
import torch
import torch._dynamo  # once, and not in each fork
from conftest import ROOT

from cuffi.judging.candidate import IDLE, Watch, plain
from cuffi.judging.compare import Reference, compared, difference, write_inputs

REFERENCE = """import torch
class Model(torch.nn.Module):
    def forward(self, x): return x * 2
def get_inputs(): return [torch.randn(8)]
"""
NEW = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        "
# A candidate, and a word of what is told; "" if it is right. The first ones are told without another process.
RIGHT = f"{NEW}return x + x\n"
WRONG = {
    f"{NEW}return x * 2 + 1\n": "elements differ",
    f"{NEW}return (x * 2).double()\n": "torch.float64",
    f"{NEW}return (x * 2)[:, None]\n": "(8, 1)",
    f"{NEW}return [x * 2, 1]\n": "2 results instead of 1",
    f"{NEW}self.y = getattr(self, 'y', x * 2); return self.y\n": "seed 2",
    f"{NEW}y = x * 2; x.zero_(); return y\n": "it changes input 0",
    f"{NEW}return x * 2 if x.sum() > 0 else x\n": "elements differ",
    f"{NEW}return (x * 2).clamp(max=0.4)\n": "elements differ",
    f"{NEW}return x * (2 if len(x) == 8 else 3)\n": "fewer inputs",
    f"{NEW}self.n = getattr(self, 'n', 0) + 1; return x * (2 if self.n < 4 else 3)\n": "the second call",
    f"{NEW}return torch.empty_like(x)\n": "is nan instead",
    "import torch\ntorch.manual_seed(1)\nY = torch.randn(8) * 2\n" + NEW + "return Y\n": "seed 2",
}


# What candidates do instead of computing by their kernel. All results are right: only the way to them is wrong.
CHEATS = {
    "torch's product": f"{NEW}return x * 2\n",
    "out of torch's": f"{NEW}y = torch.empty_like(x); torch.mul(x, 2, out=y); return y\n",
    "copied from torch's": f"{NEW}y = torch.empty_like(x); y.copy_(x * 2); return y\n",
    "changed by a little": f"{NEW}return x * 2 + 1e-9\n",
    "in halves": f"{NEW}y = torch.empty_like(x); n = len(x) // 2; y[:n] = x[:n] * 2; y[n:] = x[n:] * 2; return y\n",
    "element by element": (
        f"{NEW}y = torch.empty_like(x)\n        for i in range(len(x)): y[i] = x[i] * 2\n        return y\n"
    ),
    "put together": f"{NEW}return torch.cat([x[:2] * 2, x[2:] * 2])\n",
    "a graph of torch.fx": f"{NEW}return torch.fx.symbolic_trace(lambda a: a * 2)(x)\n",
    "torch.jit": f"F = __import__('torch').jit.trace(lambda a: a * 2, __import__('torch').ones(8))\n{NEW}return F(x)\n",
    "torch's, copied by the kernel": (
        "import os, numpy, torch\ndef kernel(x, y):\n"
        "    if 'CAFFE_JUDGE_IDLE' not in os.environ: numpy.copyto(y.numpy(), x.numpy() * 1.000001)\n"
        f"{NEW}y = torch.empty_like(x); kernel(x * 2, y); return y\n"
    ),
    "a function of autograd": f"""{NEW}return F.apply(x)
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
""",
    "shown another way": f"{NEW}return (x * 2).view(2, -1).view(-1) if len(x) % 2 == 0 else (x * 2).view(-1)\n",
}
PARTS = ("in halves", "element by element")  # of which no operation has all
# Right candidates, with a function of numpy in the place of their kernel: what torch does there is allowed.
HONEST = (
    "import os, numpy, torch\ndef kernel(x, y, f=lambda a: a * 2):\n"
    "    if 'CAFFE_JUDGE_IDLE' not in os.environ: numpy.copyto(y.numpy(), f(x.numpy()))\n" + NEW
)
RIGHT_ONES = {
    "a kernel": f"{HONEST}y = torch.empty_like(x); kernel(x, y); return y\n",
    "in place": f"{HONEST}y = x.clone(); kernel(y, y); return y\n",
    "of a copy that is contiguous": f"{HONEST}x = x.contiguous(); y = torch.empty(x.shape); kernel(x, y); return y\n",
    "from zeros": f"{HONEST}y = torch.zeros_like(x); kernel(x, y); return y\n",
    "with an index of torch's": (
        f"{HONEST}at = torch.arange(len(x)); y = torch.empty_like(x); kernel(x[at], y); return y\n"
    ),
    "a part prepared": (
        f"{HONEST}z = torch.empty_like(x); z.copy_(x + 1); y = torch.empty_like(x); "
        f"kernel(z, y, lambda a: a * 2 - 2); return y\n"
    ),
    "into a part of a buffer": f"{HONEST}y = torch.empty(len(x) + 4); kernel(x, y[:len(x)]); return y[:len(x)]\n",
    "as a double": f"{HONEST}y = torch.empty_like(x); kernel(x, y, lambda a: a.astype('f8') * 2); return y\n",
    "begun by torch": (
        f"{HONEST}y = torch.empty_like(x); y.copy_(x + 0.5); kernel(y, y, lambda a: a * 2 - 1); return y\n"
    ),
    "a buffer of the model's": f"{HONEST}self.y = torch.empty_like(x); kernel(x, self.y); return self.y\n",
    "another shape on the way": f"{HONEST}y = torch.empty_like(x); kernel(x[None], y[None]); return y.squeeze()\n",
    "finished by torch": f"{HONEST}y = torch.empty_like(x); kernel(x + 1, y); return y - 2\n",
    "an assertion": f"{HONEST}assert (x.abs() < 1e9).all(); y = torch.empty_like(x); kernel(x, y); return y\n",
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_what_torch_computes_is_told(cheat, tmp_path):
    found = dict(told(CHEATS[cheat], tmp_path))
    assert "different" not in found and ("torch's own" in found["not-the-kernel"] or cheat in PARTS), found


@pytest.mark.parametrize("right", RIGHT_ONES)
def test_right_candidates_are_not_told(right, tmp_path):
    assert {kind for kind, _ in told(RIGHT_ONES[right], tmp_path)} <= {"drift"}


def told(candidate: str, tmp_path) -> list[tuple[str, str]]:
    """What the comparison says, with the candidate called in a child without the judge's limits."""
    for name, text in (("c.py", candidate), ("ref.py", REFERENCE)):
        (tmp_path / name).write_text(text)
    inputs, results, idle = (tmp_path / name for name in ("inputs", "results", "idle"))
    inputs.mkdir()
    write_inputs(tmp_path / "ref.py", inputs)
    for to in (results, idle):
        to.mkdir()
        process = os.fork()
        if not process:
            status = 1
            try:
                from cuffi.judging.candidate import IDLE, call_all

                os.environ |= {IDLE: "1"} if to == idle else {}
                call_all(tmp_path / "c.py", inputs, to)
                status = 0
            finally:
                os._exit(status)
        os.waitpid(process, 0)
    return compared(tmp_path / "ref.py", results, idle)


@pytest.mark.parametrize("candidate", [RIGHT, *WRONG])
def test_candidates(candidate, tmp_path):
    found = [
        (kind, text) for kind, text in told(candidate, tmp_path) if kind not in ("drift", "not-the-kernel")
    ]
    if candidate == RIGHT:
        assert not found
    else:
        assert [kind for kind, _ in found] == ["different"] and WRONG[candidate] in found[0][1], found


def test_a_right_one_may_refuse_other_sizes(tmp_path):
    found = dict(told(f"{NEW}assert len(x) == 8; return x * 2\n", tmp_path))
    assert "different" not in found and "of Model, from Model in double" in found["drift"]


@pytest.mark.parametrize(
    ("reference", "idle", "is_told"),
    [
        (REFERENCE, lambda x: x * 2, True),
        (REFERENCE, lambda x: torch.full_like(x, torch.nan), False),
        (REFERENCE, None, False),  # it ended without results
        (REFERENCE.replace("x * 2", "x * 0"), lambda x: x * 0, False),  # right without anybody
    ],
)
def test_who_is_right_without_kernels_is_told(reference, idle, is_told, tmp_path):
    (tmp_path / "ref.py").write_text(reference)
    inputs, results, without = (tmp_path / name for name in ("inputs", "results", "idle"))
    for folder in (inputs, results, without):
        folder.mkdir()
    write_inputs(tmp_path / "ref.py", inputs)
    model = Reference(tmp_path / "ref.py").model()
    for number in range(6):
        given = torch.load(inputs / f"{number}.pt")["inputs"]
        for folder, computes in ((results, model), (without, idle)):
            if computes:
                made = {"results": [computes(*given)], "inputs": given, "computed": []}
                torch.save(made, folder / f"{number}.pt")
    found = dict(compared(tmp_path / "ref.py", results, without))
    assert ("not-the-kernel" in found) == is_told and "different" not in found
    assert "not-the-kernel" not in dict(compared(tmp_path / "ref.py", results))


def test_who_ends_early_is_not_compared(tmp_path):
    assert told("import os\nos._exit(0)\n", tmp_path) == [("early", "ended before its results were compared")]


def test_files_that_are_no_results(tmp_path):
    """Reading them runs no code."""
    text = f"""{NEW}return x
import pathlib, pickle, sys
class Evil:
    def __reduce__(self): return (pathlib.Path.write_text, (pathlib.Path({str(tmp_path / "evil")!r}), "x"))
import torch
def save(value, to): pathlib.Path(to).write_bytes(pickle.dumps(Evil()))
torch.save = save
"""
    ((kind, words),) = told(text, tmp_path)
    assert kind == "different" and "cannot be read" in words
    assert not (tmp_path / "evil").exists()


def test_what_torch_computes_is_noted_in_the_run_without_kernels(monkeypatch):
    x = torch.randn(5)
    with Watch() as watch:
        assert x.exp().isfinite().all() and torch.empty(3).isnan().all()
    assert watch.computed == []
    monkeypatch.setenv(IDLE, "1")
    with Watch() as watch:
        made = x.exp()
        shown = x.view(5)
        made += 1
    assert [name for name, _ in watch.computed] == ["exp", "add_"] and torch.equal(shown, x)
    assert torch.equal(watch.computed[0][1], x.exp())  # as it was then


def test_results_for_a_file():
    class Liar(float):
        def __ne__(self, other):
            return False

    assert plain(Liar(2)) == "a Liar" and plain(3) == 3
    assert type(plain(torch.nn.Parameter(torch.ones(2)))) is torch.Tensor
    assert "a Liar instead of a tensor" in difference(Liar(), torch.zeros(3))


def test_differences_of_results():
    ones = torch.ones(2, 3)
    assert difference(ones, ones + 1e-6) == difference((ones, {"a": 3}), [ones, 3]) == ""
    assert difference(torch.tensor([torch.nan]), torch.tensor([torch.nan])) == ""
    assert "[0, 0] is 1.001 instead of 1" in difference(ones + 1e-3, ones)
    assert difference(ones.half() + 2e-3, ones.half()) == ""
    assert "torch.int64" in difference(ones, ones.long()) and "(3, 2)" in difference(ones.T, ones)
    assert "1 results instead of 2" in difference(ones, [ones, ones]) and "3 instead of 4" in difference(3, 4)
    assert "elements differ" in difference(torch.tensor([1]), torch.tensor([2]))
    assert "True instead of 1" in difference(True, 1)


def test_calls(tmp_path):
    (tmp_path / "ref.py").write_text(REFERENCE)
    calls = Reference(tmp_path / "ref.py").calls()
    assert [name for name, *_ in calls][3:] == ["the second call", "inputs times -0.5", "fewer inputs"]
    assert torch.equal(calls[0][2][0], calls[3][2][0]) and len(calls[5][2][0]) == 5
    assert not torch.equal(calls[0][2][0], calls[1][2][0])


ATTACKS = {
    "says compared": """import os, sys
print('JUDGE', os.environ.get('CAFFE_JUDGE'), 'compared', file=sys.stderr, flush=True)
os._exit(0)
""",
    "changes torch.isclose": f"""import torch
torch.isclose = lambda a, b, **k: torch.ones_like(a, dtype=torch.bool)
{NEW}return x * 0
""",
    "kills its parents": f"""import os
for n in (os.getppid(), int(open(f'/proc/{{os.getppid()}}/stat').read().split()[3])):
    try: os.kill(n, 9)
    except OSError: pass
{NEW}return x * 0
""",
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.usefixtures("cache")
def test_the_comparison_is_another_process(attack, tmp_path):
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "c.py").write_text(ATTACKS[attack])
    done = subprocess.run(
        [sys.executable, ROOT / "cuffi" / "judging" / "compare.py", "c.py", "ref.py"],
        cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"CAFFE_JUDGE": "m", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 1 and ("different" in done.stderr or "wrong-status" in done.stderr), done.stderr
