"""The race finder (SANITIZE=races): kernels with a race are reported with kernel, lines and element; others are not."""

import importlib
import re
import subprocess

import pytest
import torch
from support.compiler import WORDS
from support.workshop import SharedLayers

from tools.cases.races import LaneRead, Mistake, OfHost, Race, watched

COUNT = 256


@pytest.fixture(scope="module")
def races(shared_folder):
    """tests/fixtures/kernels_with_races, built with the race finder."""
    layers = SharedLayers(shared_folder / "races", "NVCC=", "SANITIZE=races")
    layers.build_layers("kernels_with_races")
    return importlib.import_module(f"{layers.package}.races").layer


@pytest.fixture
def found(races):
    def run(function: str, *arguments) -> list[Race | LaneRead | Mistake | OfHost]:
        with watched() as watch:
            getattr(races, f"races_{function}")(*arguments)
        assert watch.kernels == {f"{function}_kernel"}
        return watch.races

    return run


def ones(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype)


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


def ints(*shape):
    return zeros(*shape, dtype=torch.int32)


def test_a_scatter_without_atomics(found):
    """The known case: right on the host, wrong on a GPU."""
    top = zeros(COUNT)
    (race,) = found("upsample_backward", ones(2 * COUNT), top, COUNT)
    assert bool((top == 2).all())  # right here, which is why nobody notices
    assert (race.kernel, race.space, race.bytes) == ("upsample_backward_kernel", "global", 4)
    (block, thread), (other_block, other) = race.threads
    assert block == other_block and thread // 2 == other // 2 == race.element and thread != other
    assert all(re.search(r"/races/races\.cu:5$", place) for place in race.places), race
    assert race.lines[0] == "top[i / 2] += bottom[i];"
    text = str(race)
    assert f"race in kernel upsample_backward_kernel: element {race.element} (4 bytes)" in text
    assert f"races.cu:5: thread {thread} of block {block}: top[i / 2]" in text


RACES = {
    "set_then_add": ((ints(1), 4), "written, then changed atomically|changed atomically, then written"),
    "last_one_wins": ((ints(1), 1), "written twice"),
    "reverse": ((ones(COUNT), zeros(COUNT), COUNT, 0), "written, then read|read, then written"),
    "neighbour": ((zeros(COUNT), zeros(COUNT), COUNT, 1), "written, then read|read, then written"),
    "warp": ((ints(COUNT), ints(COUNT), COUNT, 0), "written, then read|read, then written"),
    "half_warps": ((ints(COUNT), ints(COUNT), COUNT, 1), "written, then read|read, then written"),
    "last_block": ((ones(COUNT), zeros(4), ints(1), zeros(1), COUNT, 0), "written, then read"),
    "relay": ((ints(1), ints(2), ints(1), 0), "written, then read"),
}


@pytest.mark.parametrize("function", RACES)
def test_races(found, function):
    arguments, what = RACES[function]
    told = found(function, *(a.clone() if isinstance(a, torch.Tensor) else a for a in arguments))
    races = [race for race in told if isinstance(race, Race)]
    assert races, "not found"
    assert {race.kernel for race in races} == {f"{function}_kernel"}
    assert all(re.fullmatch(what, race.what) for race in races), races
    assert {race.space for race in races} == {"shared" if function == "reverse" else "global"}


NO_RACES = {
    "upsample_backward_atomic": (ones(2 * COUNT), zeros(COUNT), COUNT),
    "upsample_backward_swap": (
        ones(2 * COUNT, dtype=torch.float64),
        zeros(COUNT, dtype=torch.float64),
        COUNT,
    ),
    "same_value": (ints(1), 4),
    "reverse": (ones(COUNT), zeros(COUNT), COUNT, 1),
    "neighbour": (zeros(COUNT), zeros(COUNT), COUNT, 0),
    "warp": (ints(COUNT), ints(COUNT), COUNT, 1),
    "half_warps": (ints(COUNT), ints(COUNT), COUNT, 0),
    "last_block": (ones(COUNT), zeros(4), ints(1), zeros(1), COUNT, 1),
    "relay": (ints(1), ints(2), ints(1), 1),
    "bytes": (torch.zeros(COUNT, dtype=torch.int8), COUNT),
    "in_place": (ones(1), ones(COUNT), COUNT),
}


@pytest.mark.parametrize("function", NO_RACES)
def test_no_races(found, function):
    """Atomics, barriers, warps that synchronize, a fence before the atomic that says who is last."""
    arguments = [a.clone() if isinstance(a, torch.Tensor) else a for a in NO_RACES[function]]
    assert not found(function, *arguments)


def test_a_shuffle_from_a_lane_that_takes_no_part(found):
    assert not found("short_warp", ints(32), 32)
    (read,) = found("short_warp", ints(20), 20)
    assert (read.kernel, read.lane, read.thread) == ("short_warp_kernel", 20, (0, 4))
    assert re.search(
        r"shuffle in kernel short_warp_kernel: .* lane 20, .*\n .*/races\.cu:\d+: thread 4", str(read)
    )
    assert read.line == "top[lane] += __shfl_down_sync(0xffffffffu, lane, 16);"


def test_a_report_that_cannot_be_written_is_printed(races, monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("CAFFE_RACES", str(tmp_path / "no" / "folder"))
    races.races_in_place(ones(1), ones(COUNT), COUNT)
    races.races_upsample_backward(ones(2 * COUNT), zeros(COUNT), COUNT)
    assert re.match(r"race\t.*\tupsample_backward_kernel\t", capfd.readouterr().err)


def test_the_ends_of_memory(tmp_path):
    """A thread's stack belongs to the thread, shared memory to one block, exactly to the last byte."""
    program = tmp_path / "races_test"
    subprocess.run(
        [
            *WORDS,
            "-std=c++17",
            "-Isrc/host",
            "-Iinclude",
            "-Iinclude/host",
            "-DCAFFE_HOST_BACKEND",
            "tests/fixtures/host/races_test.cpp",
            "-ldl",
            "-o",
            program,
        ],
        check=True,
    )
    done = subprocess.run([program], capture_output=True, text=True, env={}, check=True)
    found = [line.split("\t") for line in done.stderr.splitlines() if line.startswith("race")]
    assert [(kernel, space, *rest) for _, _, kernel, _, space, _, _, *rest in found] == [
        *(("ends", "shared", "0", "1", "2", "-1", "4") for _ in range(2)),
        *(("ends", "global", "0", "1", "2", str(i), "4") for i in range(4)),
        *(("ends", "global", "0", "2", "2", str(i), "4") for i in range(4)),
        ("halves", "global", "0", "1", "2", "3", "4"),
    ]
    assert {row[3] for row in found} == {"written, then read"}


def test_each_pair_of_lines_once(races):
    """A launch of many threads gives one report per pair of lines; each launch starts without the last one's
    accesses.
    """
    with watched() as watch:
        for _ in range(3):
            races.races_upsample_backward(ones(2 * COUNT), zeros(COUNT), COUNT)
            races.races_in_place(ones(1), ones(COUNT), COUNT)
    assert len(watch.races) == 1 and watch.kernels == {"upsample_backward_kernel", "in_place_kernel"}
