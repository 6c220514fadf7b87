"""Programs with thrust and cub's device algorithms, run, judged, and compared with Python and a GPU's thrust."""

import itertools
import statistics
import subprocess

import numpy as np
import pytest
from conftest import ROOT

from cuffi import run
from cuffi.judge import judge

PROGRAM = ROOT / "tests" / "fixtures" / "thrust" / "program.cu"
MODULUS = 2147483647


def engine(multiplier: int, seed: int):
    """The numbers of a linear congruential engine, less the least one."""
    while True:
        seed = seed * multiplier % MODULUS
        yield seed - 1


def uniform(number: int, low: float, high: float, dtype) -> float:
    value = dtype(number) / (dtype(1) + dtype(MODULUS - 2))
    return value * dtype(high - low) + dtype(low)


def normal(number: int, mean: float, deviation: float) -> float:
    return statistics.NormalDist(mean, deviation).inv_cdf((number + 0.5) / (MODULUS - 2))


def lines() -> dict:
    """What the program prints, in its order."""
    dice = [int(uniform(x, 1, 7, np.float64)) for x in itertools.islice(engine(48271, 1337), 12)]
    twice = sorted((2 * x for x in dice), reverse=True)
    runs = [len([*group]) for _, group in itertools.groupby(sorted(dice))]
    return {
        "dice": dice,
        "sum": [sum(twice)],
        "sorted": twice,
        "larger": [sum(x > 3 for x in dice), sum(x > 4 for x in dice)],
        "drawn": [uniform(x, 0, 10, np.float32) for x in itertools.islice(engine(48271, 5), 4)],
        "normal": [normal(x, 1, 2) for x in itertools.islice(engine(16807, 7), 4)],
        "zipped": [x + 10 * y for x, y in zip(dice, twice, strict=True)],
        "permuted": [dice[3] + dice[1] + dice[2]],
        "runs": runs,
        "different": sorted(set(dice)),
        "scan": [*itertools.accumulate(i + 78 for i in range(1, 13))],
    }


def check(said: str) -> None:
    found = {name: [*map(float, numbers)] for name, *numbers in map(str.split, said.splitlines())}
    wanted = lines()
    assert [*found] == [*wanted]
    for name, numbers in wanted.items():
        np.testing.assert_allclose(found[name], numbers, rtol=2e-5, err_msg=name)


def test_a_program_runs(capfd):
    assert run.main([str(PROGRAM)]) == 0
    check(capfd.readouterr().out)


@pytest.mark.gpu
def test_a_program_on_a_gpu(nvcc, tmp_path):
    subprocess.run([nvcc, "-std=c++17", "-arch=native", PROGRAM, "-o", tmp_path / "program"], check=True)
    check(subprocess.run([tmp_path / "program"], check=True, capture_output=True, text=True).stdout)


def test_what_algorithms_write_is_set():
    """The race finder sees no code of the host's."""
    found = judge([PROGRAM])
    assert found["verdict"] == "ok", found


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("x[threadIdx.x + 1] = 1;", "bounds"),
        ("x[0] = threadIdx.x;", "race"),
        ("if (x[threadIdx.x] > y[0]) x[threadIdx.x] = 0;", "unset"),
    ],
)
def test_what_a_kernel_does_to_a_vector_is_told(kernel, kind, tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(
        "#include <thrust/device_vector.h>\n"
        f"__global__ void k(int* x, const int* y) {{\n  {kernel}\n}}\n"
        "int main() {\n  thrust::device_vector<int> x(64);\n  int* y;\n  cudaMalloc(&y, 4);\n"
        "  k<<<1, 64>>>(thrust::raw_pointer_cast(x.data()), y);\n  cudaDeviceSynchronize();\n}\n"
    )
    assert judge([file])["verdict"] == kind
