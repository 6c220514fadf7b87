"""pytest's hooks and the shared fixtures.

A test names a grid of points (support/points.py), and runs once for each point. Without a GPU, GPU tests are not
collected; the last line counts them.
"""

import atexit
import gc
import importlib
import os
from pathlib import Path

import pytest
import torch
from support.gpu import needs_gpu
from support.long import asks_for_all, long_of
from support.points import (  # noqa: F401 (tests import these from here, too)
    DEVICES,
    FOLDERS,
    GRIDS,
    LAYERS,
    LAYERS_DIR,
    PACKAGE,
    ROOT,
    Point,
    grid,
    points,
)
from support.seconds import Seconds
from support.surroundings import clean
from support.workshop import SharedLayers, Workshop, make  # noqa: F401

from cuffi.runtime import backend_of
from tools.make.find_nvcc import find

SURROUNDINGS = clean(os.environ)

pytest_plugins = [
    f"support.{name}" for name in ("folders", "fork", "load", "net_command", "stock", "wheels", "zoo")
]

# The tests that run for the layers of another folder: those of every layer, and none of the toolkit's own.
EVERY_LAYERS = ("cuda", "exotic", "layouts", "modules", "operators", "refusals", "short", "values")
collect_ignore_glob = (
    []
    if PACKAGE == "cuffi"
    else [
        *(
            p.name
            for p in Path(__file__).parent.iterdir()
            if p.name not in ("layers", "support", "conftest.py")
        ),
        *(
            f"layers/{p.name}"
            for p in Path(__file__).with_name("layers").glob("test_*.py")
            if p.stem.removeprefix("test_") not in EVERY_LAYERS
        ),
    ]
)

# --------------------------------------------------------------------------------- what runs here


def pytest_addoption(parser):
    parser.addoption(
        "--seconds", action="store_true", help="write tests/seconds.txt (tests/support/seconds.py)"
    )
    parser.addoption("--all", action="store_true", help="also run the tests of tests/long.txt")


def pytest_report_header():
    return SURROUNDINGS or None


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "only(predicate, first=False): of a grid's points, those of good cases; of their first inputs",
    )
    config.addinivalue_line("markers", "gpu: needs a GPU, which none of its parameters says")
    config.pluginmanager.register(LeftOut(config), "left out")
    option = config.option
    chosen = option.all or option.keyword or option.markexpr or option.file_or_dir
    whole = not (chosen or hasattr(config, "workerinput") or PACKAGE != "cuffi" or torch.cuda.is_available())
    if config.option.seconds or whole:
        config.pluginmanager.register(Seconds(config.option.seconds), "seconds")
    if hasattr(config, "workerinput"):
        # A worker has told all when it ends. But Python would first take apart torch and 13,000 tests, and the run
        # waits. Forks of a worker end without this.
        atexit.register(os._exit, 0)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Nothing that is collected is garbage: torch, the tests' modules, 13,000 items. Python's collector takes 0.1 s to
    look through it, and it is asked to by tests, and by torch."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


class LeftOut:
    """Leaves out tests that this machine cannot run, and the long ones if nobody asks for them. Prints their numbers.

    With several workers, each collects the whole suite, so the last worker's numbers are the run's.
    """

    def __init__(self, config):
        self.config, self.without_gpu, self.long = config, 0, 0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        on_gpu = torch.cuda.is_available()
        for item in filter(
            needs_gpu, items if on_gpu else ()
        ):  # one worker has the GPU; -m can choose by this mark
            item.add_marker(pytest.mark.xdist_group("gpu"))
        result = yield  # -k and -m leave out what nobody asked for
        self.without_gpu = 0 if on_gpu else self.leave_out(needs_gpu, items)
        every = PACKAGE != "cuffi" or asks_for_all(self.config.option)
        long = set() if every else long_of(item.nodeid for item in items)
        self.long = self.leave_out(lambda item: item.nodeid in long, items)
        return result

    def leave_out(self, is_left_out, items) -> int:
        gone = list(filter(is_left_out, items))
        without = set(gone)
        items[:] = [item for item in items if item not in without]
        self.config.hook.pytest_deselected(items=gone)
        return len(gone)

    def pytest_sessionfinish(self, session):
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["left out"] = self.without_gpu, self.long

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        output = getattr(node, "workeroutput", {})
        self.without_gpu, self.long = output.get("left out", (self.without_gpu, self.long))

    def pytest_terminal_summary(self, terminalreporter):
        if self.without_gpu:
            terminalreporter.write_line(f"Left out: {self.without_gpu} tests that need a GPU.")
        if self.long:
            terminalreporter.write_line(
                f"Left out: {self.long} long tests. `python3 test.py --all` runs them, too."
            )


def pytest_generate_tests(metafunc):
    for name in set(GRIDS) & set(metafunc.fixturenames):
        chosen = list(grid(name))
        for mark in metafunc.definition.iter_markers("only"):
            chosen = [point for point in chosen if mark.args[0](point.case)]
            if mark.kwargs.get("first"):
                chosen = [point for point in chosen if point.input == next(iter(point.case.inputs))]
        metafunc.parametrize(name, chosen, ids=str, indirect=True)


def skip_if_missing(device: str, layer=None):
    """Skip if the device, or the layer's library for it, does not exist."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    backend = backend_of(torch.device(device)).name
    if layer is not None and backend not in layer.backends():
        pytest.skip(f"{layer.name} is not built for {backend}")


def _grid_fixture(name: str):
    @pytest.fixture(name=name)
    def give(request):
        skip_if_missing(request.param.device, request.param.layer_object)
        return request.param

    return give


for _name in GRIDS:
    globals()[f"_{_name}"] = _grid_fixture(_name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure at a point ends with the lines that reproduce the call."""
    report = yield
    point = next((v for v in getattr(item, "funcargs", {}).values() if isinstance(v, Point)), None)
    if report.failed and point:
        report.sections.append(("The call, to try by hand", point.reproduction))
    return report


# ----------------------------------------------------------------------------- what tests are given


@pytest.fixture(scope="session")
def runtime():
    """For tests of layers: cuffi.runtime."""
    return importlib.import_module("cuffi.runtime")


@pytest.fixture(scope="session")
def nvcc() -> str:
    """The CUDA compiler that make finds; skips without one."""
    found = os.environ.get("NVCC", str(find(os.environ.get("CUDA_HOME", "")) or ""))
    if not found:
        pytest.skip("no nvcc")
    return found


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory) -> Path:
    """A folder that all workers of this run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def shared_layers(shared_folder) -> SharedLayers:
    """Layers of tests/, built outside of the tree: for the host and, if possible, for this GPU."""
    return SharedLayers(shared_folder / "shared")


@pytest.fixture(scope="session")
def kernels_folder(shared_layers) -> Path:
    """tests/fixtures/kernels, built."""
    return shared_layers.build_layers("kernels")


@pytest.fixture(scope="session")
def kernels(kernels_folder, shared_layers):
    """The Layer of each folder in tests/fixtures/kernels, by name."""
    names = [header.parent.name for header in (ROOT / "tests" / "fixtures" / "kernels").glob("*/*.h")]
    return {name: importlib.import_module(f"{shared_layers.package}.{name}").layer for name in names}


@pytest.fixture(params=DEVICES)
def device(request, kernels):
    skip_if_missing(request.param, next(iter(kernels.values())))
    return request.param


@pytest.fixture
def workshop(tmp_path, kernels_folder) -> Workshop:
    """Starts with the host's launcher compiled, as it was for the tests' own kernels."""
    return Workshop(tmp_path / "my_layers")
