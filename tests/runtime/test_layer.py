"""The error for a layer whose libraries are not built; copies of a layer."""

import copy
import importlib
import io
import operator
import pickle
import re
from typing import Any

import pytest
import torch
from support.workshop import ROOT

from cuffi.runtime import CaffeRuntimeError
from cuffi.runtime.layer import launcher_of
from cuffi.runtime.library import how_to_build
from tools.make.job import init_text


def test_import_of_a_layer_that_is_not_built(workshop):
    """The import works; the first call's error has the command to type."""
    workshop.layer("one")
    (workshop.folder / "__init__.py").write_text(init_text())
    said = workshop.import_and_fill("one")
    wanted = (
        r"CaffeRuntimeError: one: not built for host: /.*_host\.abi3\.so is missing\. "
        r"Type `make LAYERS_DIR=\S+my_layers LAYERS=one`"
    )
    assert re.match(wanted, said), said


def test_what_to_type(tmp_path):
    """The command depends on who built the layer: make in the toolkit, make elsewhere, pip, load()."""
    beside, own = tmp_path / "my", tmp_path / "pip"
    (own / "_toolkit").mkdir(parents=True)
    loaded = tmp_path / "cache" / "foo-12" / "src" / "foo" / "_cuda.abi3.so"
    loaded.parent.mkdir(parents=True)
    (tmp_path / "cache" / "foo-12" / "complete").touch()

    def said(path, backend="cuda", wrong=""):
        return how_to_build("foo", backend, path, wrong)

    path = ROOT / "layers" / "foo" / "_cuda.abi3.so"
    needs = "in the toolkit's folder (needs nvcc, see README.md)."
    assert said(path) == f"foo: not built for cuda: {path} is missing. Type `make LAYERS=foo` {needs}"
    assert said(path, wrong="torn") == f"foo: torn. Type `make LAYERS=foo` {needs}"
    assert said(path, "host", "torn") == "foo: torn. Type `make LAYERS=foo` in the toolkit's folder."
    assert said(beside / "foo" / "a.so", wrong="torn") == (
        f"foo: torn. Type `make LAYERS_DIR={beside} LAYERS=foo` {needs}"
    )
    again = "Install it again on a machine with nvcc: pip install --force-reinstall --no-deps --no-cache-dir"
    assert said(own / "foo" / "a.so", wrong="torn") == f"foo: torn. {again}"
    assert said(own / "foo" / "a.so") == (
        f"foo: not built for cuda: there was no compiler for it when pip was installed. {again}"
    )
    load = "load it with backends='cuda', which needs its compiler."
    assert said(loaded) == f"foo: not built for cuda: {load}"
    assert said(loaded, wrong="torn") == f"foo: torn: {load}"


def test_only_the_missing_backend_is_missing(kernels, monkeypatch):
    """A tensor on the GPU and only a library for the host: the error has the command to type."""
    loops = kernels["loops"]
    if "cuda" in loops.backends():
        pytest.skip("the kernels are built for CUDA here")
    with pytest.raises(
        RuntimeError, match=r"loops: not built for cuda: .*make LAYERS_DIR=.* LAYERS=loops.*needs nvcc"
    ):
        loops.library("cuda")


class Holds(torch.nn.Module):
    def __init__(self, held):
        super().__init__()
        self.held, self.weight = held, torch.nn.Parameter(torch.rand(3))


@pytest.mark.parametrize("name", ["layer", "layer.sigmoid_forward", "sigmoid"])
def test_a_module_that_holds_a_layer_is_copied_and_pickled(name):
    """The copy holds the same layer: it has no state."""
    # As it is now: another test may have imported the layer again.
    held = operator.attrgetter(name)(importlib.import_module("cuffi.sigmoid"))
    module, file = Holds(held), io.BytesIO()
    torch.save(module, file)
    averaged = torch.optim.swa_utils.AveragedModel(module)
    averaged.update_parameters(module)
    copies: list[Any] = [
        copy.copy(module), copy.deepcopy(module), pickle.loads(pickle.dumps(module)), averaged.module,
        torch.load(io.BytesIO(file.getvalue()), weights_only=False),
    ]  # fmt: skip
    for found in copies:
        assert found.held is held
        assert torch.equal(found.weight, module.weight)


def test_a_pickle_of_a_layer_that_is_not_loaded():
    with pytest.raises(CaffeRuntimeError, match=r"^foo: there is no module cuffi\.loaded_1\.foo\. If load"):
        launcher_of("cuffi.loaded_1.foo", "foo_kernel")
