"""Elementwise layers of all sizes on the GPU: their bandwidth against that of copy_ and of the peer."""

import torch

from cuffi.runtime.cases import Draw, cast

from ._cases import benched, least_bytes
from ._machine import GPU
from ._report import Report, Settings
from ._timing import in_turns
from .layer_cases import COPY, DTYPES, OURS, copies, repeated, timer

GROUP = "layers"


def measure(settings: Settings) -> Report:
    report = Report("Elementwise layers by size, forward, on the GPU (all sizes: JSON)")
    if not torch.cuda.is_available():
        report.notes.append("Nothing was measured: there is no GPU.")
        return report
    sizes = [1 << e for e in (range(12, 29, 4) if settings.quick else [*range(12, 29), 29])]
    for layer, case in benched(GPU, settings.layer, report.notes):
        if case.elementwise:
            arguments = next(iter(case.bench.values()))(Draw())
            for dtype in DTYPES[GPU]:
                for count in sizes:
                    one(report, layer, case, sized(arguments, dtype, count), count)
                    torch.cuda.empty_cache()
    where = f"at {sizes[-1]} elements"
    report.notes.append(f"of copy_: the least from 2^22 elements on, and where. GB/s: {where}.")
    curves = {}
    for row in report.rows:
        curves.setdefault((row["layer"], row["dtype"]), []).append(row)
    for (layer, dtype), rows in curves.items():
        large = min((r for r in rows if r["elements"] >= 1 << 22), key=lambda r: r["of copy_"])
        row = {"layer": layer, "dtype": dtype, "of copy_": large["of copy_"]}
        row["at"] = f"2^{large['elements'].bit_length() - 1}"
        row |= {key: rows[-1][key] for key in ("GB/s", "copy_ GB/s", "peer GB/s")}
        row |= {"ours / peer, largest": rows[-1]["ours / peer"], "smallest": rows[0]["ours / peer"]}
        report.shown.append(row)
    return report


def sized(arguments: tuple, dtype: torch.dtype, count: int) -> tuple:
    """The arguments, with every tensor repeated or cut to `count` elements."""

    def one(argument):
        if not isinstance(argument, torch.Tensor):
            return argument
        flat = argument.flatten()
        return flat.repeat(-(-count // flat.numel()))[:count].clone()

    return tuple(one(a) for a in cast(arguments, dtype, GPU))


def one(report: Report, layer: str, case, arguments: tuple, count: int) -> None:
    moved = least_bytes(case, arguments, backward=False)
    contenders = {OURS: case.function, **case.peers}
    calls = {name: repeated(f, arguments, False, moved, GPU) for name, f in contenders.items()}
    calls[COPY] = copies(moved, GPU)
    timers = {name: timer(name, c, moved, GPU) for name, c in calls.items()}
    times = in_turns(timers, seconds=0.03)
    peer = next(iter(case.peers), None)
    report.rows.append(
        {
            "layer": layer,
            "dtype": str(arguments[0].dtype).removeprefix("torch."),
            "elements": count,
            "us": times.median(OURS) * 1e6,
            "peer": peer,
            "GB/s": moved / times.median(OURS) / 1e9,
            "copy_ GB/s": moved / times.median(COPY) / 1e9,
            "peer GB/s": moved / times.median(peer) / 1e9 if peer else None,
            "of copy_": times.ratio(COPY, OURS),
            "ours / peer": times.ratio(OURS, peer) if peer else None,
        }
    )
