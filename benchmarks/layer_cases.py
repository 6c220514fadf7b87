"""Every layer on its benchmark inputs, forward and forward + backward, against its peers and copy_."""

import torch

from cuffi.runtime.cases import Draw, cast, differentiable, results

from . import _machine
from ._cases import benched, check_passes, forward_backward, least_bytes, tensors
from ._machine import GPU
from ._report import Report, Settings
from ._timing import Timer, Times, in_turns, limit_on_gpu, on_cpu, on_gpu, on_wall, sets_beyond_cache

GROUP = "layers"
DTYPES = {GPU: (torch.float32, torch.float16, torch.bfloat16), "cpu": (torch.float32,)}
OURS, COPY = "ours", "copy_"
EAGER = " eager"  # the suffix of a contender's name for its wall time, called from Python
HOST_TARGET = 1.1  # elementwise layers, forward, against torch's own operator
HOST_MOST = 1 << 26  # elements of an input on the processor: more take minutes


def measure(settings: Settings) -> Report:
    report = Report("Layers on their benchmark inputs")
    for device in _machine.devices():
        for layer, case in benched(device, settings.layer, report.notes):
            for name, inputs in case.bench.items():
                arguments = inputs(Draw())
                if device == "cpu" and max(a.numel() for a in tensors(arguments)) > HOST_MOST:
                    report.notes.append(f"CPU: {layer} {name} is left out: it is too large.")
                    continue
                for dtype in DTYPES[device]:
                    one(report, settings, layer, case, name, arguments, dtype, device)
    report.notes += [
        "Bytes: all tensors in and out once; tensors that one pass saves for the other are not counted again.",
        "of copy_: the time of copy_ into a new tensor, over ours; 1 is the memory's speed.",
        "GPU: us is the kernels' time, in CUDA graphs over buffers beyond the L2; eager us the wall time of calls from "
        "Python.",
        "CPU: the first touch of a new tensor's pages costs more than the bytes; of copy_ may then exceed 1.",
    ]
    return report


def one(report, settings, layer, case, name, arguments, dtype, device) -> None:
    exact = cast(arguments, torch.float64, device)
    check_passes(layer, case, cast(arguments, dtype, device), exact, backward=False)
    passes = (False,) if case.gradient == "none" else (False, True)
    for backward in passes:
        ready = cast(arguments, dtype, device, grad=backward)
        moved = least_bytes(case, ready, backward)
        contenders = {OURS: case.function, **case.peers}
        calls = {peer: repeated(f, ready, backward, moved, device) for peer, f in contenders.items()}
        calls[COPY] = copies(moved, device)
        timers = {n: timer(n, c, moved, device) for n, c in calls.items()}
        if device == GPU:
            timers |= {n + EAGER: on_wall(c, max(1, 20 // len(c))) for n, c in calls.items() if n != COPY}
        times = in_turns(timers, seconds=0.2 if device == GPU else 1.0 if settings.quick else 2.0)
        del calls, timers  # their graphs hold the memory that the next ones need
        what = {"on": device, "layer": layer, "case": name, "dtype": str(dtype).removeprefix("torch.")}
        what["run"] = "forward + backward" if backward else "forward"
        add(report, times, case, moved, what)


def repeated(function, arguments: tuple, backward: bool, moved: int, device: str) -> list:
    """The same call for each of several sets of buffers. There are so many sets that the GPU's cache does not help."""
    count = sets_beyond_cache(moved) if device == GPU else 1
    calls = []
    for _ in range(count):
        own = tuple(own_copy(a) if isinstance(a, torch.Tensor) else a for a in arguments)
        if backward:
            with torch.no_grad():
                top_diffs = tuple(torch.randn_like(t) for t in differentiable(results(function(*own))))
            calls.append(lambda own=own, diffs=top_diffs: forward_backward(own, diffs)(function))
        else:
            calls.append(lambda own=own: function(*own))
    return calls


def own_copy(leaf: torch.Tensor) -> torch.Tensor:
    return leaf.detach().clone().requires_grad_(leaf.requires_grad)


def copies(moved: int, device: str) -> list:
    """Calls of copy_ into a new tensor, because the layers write new tensors. It reads half of the bytes."""
    count = sets_beyond_cache(moved) if device == GPU else 1
    sources = [torch.rand(moved // 8, device=device) for _ in range(count)]
    return [lambda s=source: torch.empty_like(s).copy_(s) for source in sources]


def timer(name: str, calls: list, moved: int, device: str) -> Timer:
    if device == "cpu":
        return on_cpu(calls)
    return limit_on_gpu(calls, moved) if name == COPY else on_gpu(calls)


def add(report: Report, times: Times, case, moved: int, what: dict) -> None:
    of_copy, device = times.ratio(COPY, OURS), what["on"]
    for peer in case.peers or [None]:
        ratio = times.ratio(OURS, peer) if peer else None
        row = {
            "us": times.median(OURS) * 1e6,
            "GB/s": moved / times.median(OURS) / 1e9,
            "of copy_": of_copy,
            "spread": times.spread(OURS),
            "peer": peer,
            "its us": times.median(peer) * 1e6 if peer else None,
            "ours / peer": ratio,
            "eager us": times.median(OURS + EAGER) * 1e6 if device == GPU else None,
            "eager ours / peer": times.ratio(OURS + EAGER, peer + EAGER) if peer and device == GPU else None,
        }
        report.row(**what, **row)
        if ratio is not None:
            aimed = device == "cpu" and case.elementwise and what["run"] == "forward"
            title = f"{what['layer']} {what['case']} {what['dtype']} {what['run']}, ours / {peer}"
            report.figure(title, _machine.here(device), ratio, HOST_TARGET if aimed else None)
