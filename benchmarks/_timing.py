"""How time is taken: contenders in turns, medians over the turns, ratios within a turn.

A timer is a function of no argument that runs its contender and returns the seconds of one call.
"""

import itertools
import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence

import torch

from ._machine import GPU

Timer = Callable[[], float]


class Times(dict):
    """The samples of each contender by name; the i-th of all come from the same turn."""

    def median(self, name: str) -> float:
        return statistics.median(self[name])

    def least(self, name: str) -> float:
        return min(self[name])

    def ratio(self, ours: str, peer: str) -> float:
        """The median of ours / peer turn by turn, so that a machine that slows down meanwhile slows both."""
        return statistics.median(a / b for a, b in zip(self[ours], self[peer], strict=True))

    def spread(self, name: str) -> float:
        """Half of the samples lie within this share of the median."""
        low, _, high = statistics.quantiles(self[name], n=4)
        return (high - low) / self.median(name)


def in_turns(
    timers: dict[str, Timer], seconds: float, least: int = 5, most: int = 60, warm: bool = True
) -> Times:
    """Run all contenders, in a new order each turn, for about so many seconds; not warm: `least` times."""
    start = time.perf_counter()
    for timer in timers.values() if warm else ():
        timer()  # its sample is not kept
    turns = int(seconds / max(time.perf_counter() - start, 1e-6)) if warm else least
    times = Times({name: [] for name in timers})
    order, shuffle = list(timers), random.Random(1701).shuffle
    for _ in range(max(least, min(most, turns))):
        shuffle(order)
        for name in order:
            times[name].append(timers[name]())
    return times


def loop(call: Callable, arguments: tuple, calls: int, device: str) -> Timer:
    """Many calls in a tight loop: what one costs the processor.

    On a GPU, `calls` stays far below what its launch queue holds (1024), and the wait for the GPU comes after
    the clock is read: a full queue would make every call as slow as its kernel.
    """
    wait = torch.cuda.synchronize if device == GPU else lambda: None

    def timer() -> float:
        wait()
        start = time.perf_counter()
        for _ in itertools.repeat(None, calls):
            call(*arguments)
        taken = time.perf_counter() - start
        wait()
        return taken / calls

    return timer


def on_cpu(calls: Sequence[Callable]) -> Timer:
    """One call after the other over different buffers, after a pause.

    torch's OpenMP threads spin for about a millisecond after their work: whoever comes next in turn would
    share the cores with them. (In real life too: right after a torch operator, ours is that much slower.)
    """

    def timer() -> float:
        time.sleep(0.01)
        start = time.perf_counter()
        for call in calls:
            call()
        return (time.perf_counter() - start) / len(calls)

    return timer


def on_wall(calls: Sequence[Callable], rounds: int = 1) -> Timer:
    """Wall time of a call as users make it on a GPU: one after the other from Python, with a wait for the last.

    They queue ahead as in real life: a call costs its kernels or Python's part of it, whichever is longer.
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


def limit_on_gpu(calls: Sequence[Callable], at_least: float, bytes_each: int) -> Timer:
    """The same for copy_, the physical limit: queued one by one where that is faster than in a graph.

    From 1 GiB on, a copy in a graph was seen at 2.7 TB/s on an H200 whose memory does 4.3: no limit, that.
    """
    in_graph = on_gpu(calls, at_least)
    if bytes_each < 1 << 26:  # shorter than its own queueing
        return in_graph

    one_by_one = queued_on_gpu(calls)
    return lambda: min(in_graph(), one_by_one())


def queued_on_gpu(calls: Sequence[Callable]) -> Timer:
    """Calls queued one by one between two events: with the gaps that Python makes, if they are short ones."""

    def timer() -> float:
        for call in calls[:8]:  # keeps the GPU busy meanwhile
            call()
        return _between_events(lambda: [call() for call in calls]) / len(calls)

    return timer


def on_gpu(calls: Sequence[Callable], at_least: float) -> Timer:
    """The GPU's time for a call: a CUDA graph of calls over different buffers, between two events.

    A graph leaves no gaps that Python would make; what a call costs Python is the benchmark `call`'s matter.

    Args:
        calls: one for each set of buffers. They are run over again until they fill `at_least` seconds.
        at_least: so long that starting the graph does not count.
    """
    side = torch.cuda.Stream()  # warm up as capture wants it: on a stream that is not the default one
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls[:4]:
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()

    def capture(times: int) -> tuple[torch.cuda.CUDAGraph, deque]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            # Each set keeps its last results, so that as many output buffers are written as inputs are read.
            kept = deque((call() for _ in range(times) for call in calls), maxlen=len(calls))
        return graph, kept

    def seconds(graph) -> float:
        graph.replay()  # keeps the GPU busy until the timed one is queued
        return _between_events(graph.replay)

    graph, kept = capture(1)
    seconds(graph)
    times = min(64, max(1, round(at_least / seconds(graph))))
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
    """How many sets of buffers to rotate over, so that none is still in the GPU's L2 at its next turn.

    At most 64: sets of less than a few MB do come from the L2, as they do for those who call a layer on them.
    """
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    return max(1, min(64, 4 * cache // max(bytes_each, 1)))
