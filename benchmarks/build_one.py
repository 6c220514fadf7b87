"""Cold build of one layer, up to a loadable operator, against cpp_extension.load of the same kernel."""

import shutil
import tempfile
from pathlib import Path

from cuffi.backends import HOST

from . import _machine, _make, _peer
from ._report import Report, Settings
from ._timing import in_turns

GROUP = "build"
TARGET = 0.2  # of the peer's time


def measure(settings: Settings) -> Report:
    how = f"make -j{_machine.cores()} against cpp_extension.load of the same kernel"
    report = Report(f"Cold build of one layer: {how}")
    timers = ours()
    peer = None
    if reason := _peer.absent():
        report.notes.append(f"The peer is absent: {reason}.")
    else:
        endings = " + ".join(Path(source).suffix for source in _peer.sources())
        peer = f"cpp_extension.load, {endings}"
        timers[peer] = lambda: peer_build(settings.out)
        if not _peer.has_cuda():
            half = "the peer compiles only its C++ half, ours both halves"
            report.notes.append(f"This torch has no CUDA: {half}.")
    times = in_turns(timers, 0, least=1 if settings.quick else 2, warm=False)
    for name in timers:
        ratio = times.ratio(name, peer) if peer else None
        report.row(build=name, **{"s": times.median(name), "least": times.least(name), "of the peer": ratio})
        if ratio is not None and name != peer:
            compared = TARGET if name in targeted(timers) else None
            report.figure(f"cold build, {name} / {peer}", _machine.here("cpu"), ratio, compared)
    left_out = "The peer's time excludes `import torch`; ours is that of the whole make."
    report.notes.append(f"The layer is round, four dtypes. {left_out}")
    return report


def targeted(timers: dict) -> list[str]:
    """The names of the builds that have the target: those of every backend that make builds here."""
    both = [name for name in timers if name.startswith("make, host and CUDA")]
    return both or ["make, host"]


def ours() -> dict:
    """A timer for each way to build our layer, by name."""
    one = f"sm_{_machine.gpu_arch().replace('.', '')}"
    host, cuda = HOST.name, _make.CUDA.name
    timers = {"make, host": lambda: our_build(BACKENDS=host)}
    if _make.has_nvcc():
        timers[f"make, CUDA {one}"] = lambda: our_build(BACKENDS=cuda, ARCH=one)
        timers["make, CUDA all-major"] = lambda: our_build(BACKENDS=cuda)
        timers[f"make, host and CUDA {one}"] = lambda: our_build(ARCH=one)
        timers["make, host and CUDA all-major (default)"] = lambda: our_build()
    return timers


def our_build(**settings: str) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        _make.copy_layer(_make.ROOT / "layers" / "round", folder, "round")
        return _make.make(folder, "libraries", **settings).seconds


def peer_build(out: Path) -> float:
    """The seconds of the peer's build in a new process. Its folder stays for the benchmark `call`."""
    shutil.rmtree(_peer.kept(out), ignore_errors=True)
    _peer.kept(out).mkdir(parents=True)
    return _make.seconds_of("benchmarks._peer", TORCH_EXTENSIONS_DIR=str(_peer.kept(out)))
