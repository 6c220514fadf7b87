"""Vector loops: which loops become one, and that difficult loops give the body's own result."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests" / "fixtures" / "kernels" / "vectors" / "vectors.cu"

# Around the sizes where a thread starts to take 16 bytes, whole and broken ones.
COUNTS = (1, 3, 511, (1 << 19) - 1, (1 << 19) + 5, 1200001, 1 << 20)
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def test_each_loop_is_decided_as_its_comment_says(tmp_path):
    output = tmp_path / "vectors.cu"
    subprocess.run([sys.executable, "-m", "tools.cuda.for_nvcc", SOURCE, output], check=True, cwd=ROOT)
    decided = dict(re.findall(r"\d+: (\w+): (.*)", Path(f"{output}.loops").read_text()))
    wanted = {
        name: why
        for why, name in re.findall(r"// (.*)\ntemplate.*\n__global__ void (\w+)", SOURCE.read_text())
    }
    assert decided == wanted and len(wanted) > 15


@pytest.fixture
def vectors(kernels):
    return kernels["vectors"]


def tensor(count, dtype, device, seed=5):
    generator = torch.Generator().manual_seed(seed)
    # Small multiples of 1/4: exact in every dtype, also twice or half of them, so results can be compared for equality.
    return (torch.randint(-40, 40, (count,), generator=generator) / 4).to(device, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("count", COUNTS)
def test_relu(vectors, device, count, dtype):
    bottom = tensor(count, dtype, device)
    top = torch.full((count + 8,), 7.0, dtype=dtype, device=device)
    vectors.vectors_relu(bottom, top, count)
    assert torch.equal(top[:count], torch.where(bottom > 0, bottom, bottom * 0.5))
    assert bool((top[count:] == 7).all()), "wrote behind the end"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shift", [1, 2, 3])
def test_misaligned_pointers(vectors, device, dtype, shift):
    count = 1200003
    memory, result = (
        tensor(count + shift, dtype, device),
        torch.zeros(count + 2 * shift, dtype=dtype, device=device),
    )
    vectors.vectors_relu(memory[shift:], result[2 * shift :], count)
    bottom = memory[shift:]
    assert torch.equal(result[2 * shift :], torch.where(bottom > 0, bottom, bottom * 0.5))
    assert bool((result[: 2 * shift] == 0).all())


@pytest.mark.parametrize("count", COUNTS)
def test_in_place(vectors, device, count):
    bottom = tensor(count, torch.float32, device)
    wanted = torch.where(bottom > 0, bottom, bottom * 0.5)
    vectors.vectors_relu(bottom, bottom, count)
    assert torch.equal(bottom, wanted)


@pytest.mark.parametrize("function", ["early_return", "conditional_write", "skipped"])
@pytest.mark.parametrize("count", COUNTS)
def test_elements_that_are_not_written_stay(vectors, device, function, count):
    bottom = tensor(count, torch.float32, device)
    top = torch.full_like(bottom, 99.0)
    getattr(vectors, f"vectors_{function}")(bottom, top, count)
    written = bottom >= 0 if function != "conditional_write" else bottom > 0
    assert torch.equal(top, torch.where(written, bottom, 99.0))


@pytest.mark.parametrize("count", COUNTS)
def test_break_ends_one_thread_only(vectors, device, count):
    bottom = tensor(count, torch.float32, device)
    top = torch.full_like(bottom, 99.0)
    vectors.vectors_broken_off(bottom, top, count)
    assert torch.equal(top, torch.where(bottom >= 0, bottom, 99.0))


@pytest.mark.parametrize("count", COUNTS)
def test_a_kernel_that_does_not_loop_still_gets_a_thread_for_each_element(vectors, device, count):
    bottom = tensor(count, torch.float32, device)
    top = torch.zeros_like(bottom)
    vectors.vectors_no_loop(bottom, top, count)
    assert torch.equal(top, bottom + 1)


@pytest.mark.parametrize("given", [True, False])
def test_a_pointer_that_may_be_null(vectors, device, given):
    bottom, bias = tensor(1200001, torch.float16, device), tensor(1200001, torch.float16, device, seed=6)
    top = torch.zeros_like(bottom)
    vectors.vectors_optional(bottom, bias if given else None, int(given), top, bottom.numel())
    assert torch.equal(top, bottom + bias if given else bottom)


def test_accumulation_into_the_top(vectors, device):
    bottom, top = tensor(1200001, torch.float32, device), tensor(1200001, torch.float32, device, seed=6)
    wanted = top + bottom
    vectors.vectors_accumulated(bottom, top, bottom.numel())
    assert torch.equal(top, wanted)


def test_two_tops_of_which_one_is_the_bottom(vectors, device):
    bottom = tensor(1200001, torch.float32, device)
    other, doubled = torch.zeros_like(bottom), bottom * 2
    vectors.vectors_two_writes(bottom, bottom, other, bottom.numel())
    assert torch.equal(bottom, doubled)
    assert torch.equal(other, doubled + doubled), (
        "other is in + out, both of which are the doubled one by then"
    )


def test_a_gather_beside_the_vector_loop(vectors, device):
    bottom, scale = tensor(2 * 7 * 60013, torch.float32, device), tensor(7, torch.float32, device, seed=6)
    top = torch.zeros_like(bottom)
    vectors.vectors_per_channel(bottom, scale, 60013, 7, top, bottom.numel())
    assert torch.equal(top, (bottom.view(2, 7, -1) * scale.view(1, 7, 1)).flatten())


def test_neighbours_and_reversed_order(vectors, device):
    bottom = tensor(1200002, torch.float32, device)
    top = torch.zeros(1200001, device=device)
    vectors.vectors_neighbour(bottom, top, 1200001)
    assert torch.equal(top, bottom[1:])
    vectors.vectors_reversed_write(bottom, top, 1200001)
    assert torch.equal(top, bottom[:1200001].flip(0))


@pytest.mark.parametrize(
    "function", ["inner_loop", "moved_pointer", "changed_index", "kept_plain", "read_after_write"]
)
def test_plain_loops(vectors, device, function):
    bottom = tensor(1200001, torch.float32, device)
    top = torch.zeros_like(bottom)
    getattr(vectors, f"vectors_{function}")(bottom, top, bottom.numel())
    assert torch.equal(top, bottom * {"inner_loop": 3, "read_after_write": 2}.get(function, 1))


@pytest.mark.parametrize("grid", [(0, 0), (1, 1), (3, 64), (1, 1024), (5, 33)], ids=str)
@pytest.mark.parametrize("count", [1, 1000, 40009])
def test_any_grid_and_mixed_types(vectors, device, grid, count):
    bottom = tensor(count, torch.bfloat16, device)
    at = torch.arange(count, dtype=torch.int32, device=device) % 17
    top = torch.zeros(count, dtype=torch.float64, device=device)
    vectors.vectors_mixed_types(bottom, at, top, count, *grid)
    assert torch.equal(top, bottom.double() * at)
