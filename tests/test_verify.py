"""make verify's tool: layers with a mistake each are caught, right ones pass, on tests/caffe_crooked."""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from conftest import ROOT, make

sys.path.append(str(ROOT / "tools"))
from verify_gradient import GradientCheck


class Outcome(NamedTuple):
    status: int
    text: str

    @property
    def verdicts(self) -> set[str]:
        return set(re.findall(r"\b(right|no gradient|no code|WRONG|FAILED)\b", self.table))

    @property
    def table(self) -> str:
        return "\n".join(line for line in self.text.splitlines() if line.startswith("│"))


@pytest.fixture(scope="session")
def crooked(tmp_path_factory):
    """A folder with the layers of caffe_crooked, built with the engine that make has compiled for the tree."""
    folder = tmp_path_factory.mktemp("verify") / "layers"
    shutil.copytree(ROOT / "tests" / "caffe_crooked", folder / "crooked")
    settings = [] if torch.cuda.is_available() else ["NVCC="]
    done = make(f"LAYERS_DIR={folder}", f"BUILD={ROOT / 'build'}", *settings, "-j4", "libraries", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def verify(crooked):
    def run(type_name: str, *options: str) -> Outcome:
        command = [sys.executable, ROOT / "tools" / "verify.py", "--layers-dir", crooked, "--type", type_name]
        done = subprocess.run([*command, *options, "crooked"], capture_output=True, text=True, timeout=300)
        assert not done.stderr, done.stderr
        return Outcome(done.returncode, done.stdout)

    return run


def test_right(verify):
    found = verify("SquareRight")
    assert found.status == 0, found.text
    assert found.verdicts == {"right"}
    assert "its own CPU code" in found.table and "its kernels, host" in found.table
    assert ("GPU" in found.table) == torch.cuda.is_available()
    assert "guessed: SquareRight on 2,3,6,5" in found.text


@pytest.mark.parametrize("type_name", ["SquareHalved", "SquareDeaf", "SquareAdding"])
def test_wrong_everywhere(verify, type_name):
    found = verify(type_name)
    assert found.status == 1 and found.verdicts == {"WRONG"}, found.text
    assert "Backward says" in found.text and "bottom 0[" in found.text
    assert ("adds to a diff" in found.text) == (type_name == "SquareAdding")


def test_phase(verify):
    """Whose Backward is wrong in training alone."""
    found = verify("SquareHalved", "--param", "phase: TEST")
    assert found.status == 0 and found.verdicts == {"right"}, found.text


def test_wrong_kernels_alone(verify):
    """Half a percent."""
    found = verify("SquareTornBack")
    assert found.status == 1 and found.verdicts == {"right", "WRONG"}, found.text
    assert all(
        ("WRONG" in line) == ("kernels" in line)
        for line in found.table.splitlines()
        if "double" in line or "float" in line
    )


def test_two_ways_that_differ(verify):
    """Each has the right gradient of what it computes."""
    found = verify("SquareTorn")
    assert found.status == 1 and found.verdicts == {"right", "WRONG"}, found.text
    assert "forward differs" in found.text


def test_wrong_parameter_diff(verify):
    found = verify("SquareWithBlob")
    assert found.status == 1 and found.verdicts == {"WRONG"}, found.text
    assert "blob 0[0]" in found.text and "bottom 0[" not in found.text


def test_no_gradient_is_not_a_right_one(verify):
    found = verify("SquareOneWay")
    assert found.status == 0 and found.verdicts == {"no gradient"}, found.text


def test_kernels_alone(verify):
    found = verify("SquareByKernels")
    assert found.status == 0 and found.verdicts == {"no code", "right"}, found.text


def test_labels_are_left_out(verify):
    """The layer refuses to go back to them; the other bottom is checked."""
    found = verify("SquareOfLabelled", "--shapes", "3,4 3,4")
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    assert "no gradient for bottom 1" in found.text and "cannot backpropagate to labels" in found.text


def test_bottom_that_is_left_out(verify):
    """By the prototxt: the layer is not asked for its gradient."""
    propagate_down = "propagate_down: true propagate_down: false"
    found = verify("SquareOfLabelled", "--shapes", "3,4 3,4", "--param", propagate_down)
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    assert "cannot backpropagate" not in found.text


class Largest:
    """The largest of a bottom's values, as the prober of a layer gives it. Backward goes to the first one."""

    def __init__(self, values: list[float], dtype: torch.dtype):
        self.bottoms, self.blobs = [torch.tensor(values, dtype=dtype)], []

    def run_forward(self, wanted=None):
        self.tops = [self.bottoms[0].max().view(1)]
        return self.tops

    def run_backward(self, diffs, wanted, fill=0.0):
        diff = torch.zeros_like(self.bottoms[0])
        diff[self.bottoms[0].argmax()] = diffs[0][0]
        return [diff]


@pytest.mark.parametrize("gap, wrong", [(1e-1, 0), (3e-5, 0), (3e-6, 0), (0, 4)])
def test_values_close_to_each_other(gap, wrong):
    """Steps in float are wider than these gaps; a tie has no gradient."""
    values = [1.0, 1.0 - gap, 0.5]
    check = GradientCheck(Largest(values, torch.float32), [True], lambda: Largest(values, torch.float64))
    assert check.run().wrong_count == wrong


def test_nothing_but_zeros_is_told():
    probe = Largest([1.0, 0.5], torch.float64)
    assert not GradientCheck(probe, [True]).run().zero
    probe.run_forward = lambda wanted=None: [probe.bottoms[0].new_ones(1)]
    probe.tops = probe.run_forward()
    probe.run_backward = lambda *_: [torch.zeros_like(probe.bottoms[0])]
    assert GradientCheck(probe, [True]).run().zero


def test_kink(verify):
    """|x|, with values as near to 0 as the steps are wide."""
    found = verify("SquareOfSize", "--shapes", "40,40")
    assert found.status == 0 and found.verdicts == {"right"}, found.text


def test_rounded_to_float(verify):
    found = verify("SquareInFloat")
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    assert "partly in float" in re.sub(r"[│\s]+", " ", found.table)


def test_shapes_it_does_not_take(verify):
    found = verify("SquareOfSeventeen")
    assert found.status == 1 and found.verdicts == {"FAILED"}, found.text
    told = re.sub(r"\s+", " ", found.text)
    assert "(3 vs. 17) channels of the famous paper" in told and "SHAPES='" in told
    given = verify("SquareOfSeventeen", "--shapes", "2,17")
    assert given.status == 0 and given.verdicts == {"right"}, given.text


def test_crash(verify):
    """What crashes is left out of the guesses; given explicitly, it is named."""
    found = verify("SquareThatCrashes")
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    assert "guessed: SquareThatCrashes on 5,4" in found.text
    given = verify("SquareThatCrashes", "--shapes", "2,3,4,5")
    assert given.status == 1 and "SIGSEGV" in given.text, given.text


def test_no_end(crooked):
    """A guess that takes for ever is left out, and its process with it."""
    program = f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); import verify; verify.PATIENCE = 5"
    program += f"; sys.argv[1:] = ['--layers-dir', {str(crooked)!r}, '--type', 'SquareInCircles', 'crooked']"
    command = [sys.executable, "-c", program + "; sys.exit(verify.main())"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "guessed: SquareInCircles on 5,4" in done.stdout, (
        done.stdout + done.stderr
    )
    command = [
        sys.executable,
        ROOT / "tools" / "verify.py",
        "--layers-dir",
        crooked,
        "--type",
        "SquareInCircles",
    ]
    with subprocess.Popen([*command, "crooked"], stdout=subprocess.DEVNULL) as parent:
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        give_up = time.monotonic() + 60
        while not (child := children.read_text().split()) and time.monotonic() < give_up:
            time.sleep(0.1)
        parent.kill()
    status = Path(f"/proc/{child[0]}/stat")
    while alive(status) and time.monotonic() < give_up:
        time.sleep(0.1)
    assert not alive(status)


def alive(status: Path) -> bool:
    try:
        return status.read_text().rpartition(")")[2].split()[0] not in "ZX"  # ended, and not yet asked about
    except FileNotFoundError:
        return False


def test_unknown_shapes_and_fields(verify):
    assert "expected sizes" in verify("SquareRight", "--shapes", "2,x").text
    assert "not 'lable'" in verify("SquareRight", "--shapes", "2,3:lable").text
    assert verify("SquareRight", "--shapes", "2,3:prob").status == 0
    found = verify("SquareRight", "--param", "no_such_param { a: 1 }")
    assert found.status == 1 and "no_such_param" in found.text


@pytest.mark.parametrize("layer", ["normalize", "smooth_l1_loss", "psroi_pooling"])
def test_own_layers(layer):
    """From their cases; those that are built. (Correlation is right, too, but takes minutes on the host.)"""
    if not (ROOT / "layers" / layer / "_host.abi3.so").exists():
        pytest.skip(f"{layer} is not built")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "verify.py", layer], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{layer}: gradient right in" in done.stdout
