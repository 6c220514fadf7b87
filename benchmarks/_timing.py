"""Measure times: contenders run in turns, medians are over the turns, and ratios are within a turn.

A timer is a function without arguments that runs its contender and returns the seconds of one call.
"""

import itertools
import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import torch

from ._machine import GPU

Timer = Callable[[], float]
# Enough seconds to make the start of a CUDA graph negligible.
LONG = 2e-4


class Times(dict):
    """The samples of each contender by name. The i-th samples of all contenders are from the same turn."""

    def median(self, name: str) -> float:
        return statistics.median(self[name])

    def least(self, name: str) -> float:
        return min(self[name])

    def ratio(self, ours: str, peer: str) -> float:
        """The median of ours / peer over the turns. If the machine becomes slower, both become slower."""
        return statistics.median(a / b for a, b in zip(self[ours], self[peer], strict=True))

    def spread(self, name: str) -> float:
        """The range of the middle half of the samples, as a share of the median."""
        low, _, high = statistics.quantiles(self[name], n=4)
        return (high - low) / self.median(name)


def in_turns(
    timers: Mapping[str, Timer], seconds: float, least: int = 5, most: int = 60, warm: bool = True
) -> Times:
    """Run all contenders for about `seconds`, in a new order each turn. Without `warm`, run `least` turns."""
    start = time.perf_counter()
    for timer in timers.values() if warm else ():
        timer()  # this sample is discarded
    turns = int(seconds / max(time.perf_counter() - start, 1e-6)) if warm else least
    times = Times({name: [] for name in timers})
    order, shuffle = list(timers), random.Random(1701).shuffle
    for _ in range(max(least, min(most, turns))):
        shuffle(order)
        for name in order:
            times[name].append(timers[name]())
    return times


def loop(call: Callable, arguments: tuple, calls: int, device: str) -> Timer:
    """A timer of many calls in a tight loop: the time of the processor for a call.

    On a GPU, a full launch queue (1024) would make every call as slow as its kernel. So `calls` is far below that, and
    the time does not include the wait for the GPU.
    """
    wait = torch.cuda.synchronize if device == GPU else lambda: None

    def timer() -> float:
        wait()
        start = time.perf_counter()
        for _ in itertools.repeat(None, calls):
            call(*arguments)
        seconds = time.perf_counter() - start
        wait()
        return seconds / calls

    return timer


def on_cpu(calls: Sequence[Callable]) -> Timer:
    """A timer of calls over different buffers, one after the other, after a pause.

    torch's OpenMP threads spin for about a millisecond after their work, and the next contender would share the cores
    with them. (In real programs, too, ours is slower right after a torch operator.)
    """

    def timer() -> float:
        time.sleep(0.01)
        start = time.perf_counter()
        for call in calls:
            call()
        return (time.perf_counter() - start) / len(calls)

    return timer


def on_wall(calls: Sequence[Callable], rounds: int = 1) -> Timer:
    """A timer of the wall time of a call on a GPU, as in user programs: calls from Python, and a wait after the last.

    Calls are queued ahead of the GPU, so a call takes the time of its kernels or of its Python code, the longer one.
    """
    for call in calls[:3]:
        call()

    def timer() -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(rounds):
            for call in calls:
                call()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / (rounds * len(calls))

    return timer


def limit_on_gpu(calls: Sequence[Callable], bytes_each: int) -> Timer:
    """A timer of copy_, the physical limit: the faster of calls in a graph and calls queued one by one.

    From 1 GiB on, a copy in a graph reached only 2.7 TB/s on an H200, whose memory reaches 4.3.
    """
    in_graph = on_gpu(calls)
    if bytes_each < 1 << 26:  # the copy takes less time than its queueing
        return in_graph

    one_by_one = queued_on_gpu(calls)
    return lambda: min(in_graph(), one_by_one())


def queued_on_gpu(calls: Sequence[Callable]) -> Timer:
    """A timer of calls queued one by one between two events. It includes gaps that Python makes between short calls."""

    def timer() -> float:
        for call in calls[:8]:  # the GPU is busy with these while the timed calls are queued
            call()
        return _between_events(lambda: [call() for call in calls]) / len(calls)

    return timer


def on_gpu(calls: Sequence[Callable]) -> Timer:
    """A timer of the GPU's time for a call: a CUDA graph of calls over different buffers, between two events.

    A graph has none of the gaps that Python makes. The benchmark `call` measures the time of Python.

    Args:
        calls: one for each set of buffers. They are repeated until they take LONG seconds.
    """
    side = torch.cuda.Stream()  # a capture requires a warm-up on another stream than the default one
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls[:4]:
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()

    def capture(times: int) -> tuple[torch.cuda.CUDAGraph, deque]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            # The last results of each set are kept, so that there are as many output buffers as inputs.
            kept = deque((call() for _ in range(times) for call in calls), maxlen=len(calls))
        return graph, kept

    def seconds(graph) -> float:
        graph.replay()  # keeps the GPU busy until the timed one is queued
        return _between_events(graph.replay)

    graph, kept = capture(1)
    seconds(graph)
    times = min(64, max(1, round(LONG / seconds(graph))))
    if times > 1:
        graph, kept = capture(times)

    def timer(graph=graph, kept=kept) -> float:
        return seconds(graph) / (times * len(calls))

    return timer


def _between_events(work: Callable) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def sets_beyond_cache(bytes_each: int) -> int:
    """The number of sets of buffers to rotate over, so that none is still in the GPU's L2 at its next turn.

    At most 64. Sets of less than a few MB are in the L2, as they are in user programs.
    """
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    return max(1, min(64, 4 * cache // max(bytes_each, 1)))
