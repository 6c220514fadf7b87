"""help() of public objects has arguments, results and errors; layers name their source."""

import importlib
import inspect
import re

import pytest
import torch

import cuffi
from cuffi.folders import toolkit_folders
from cuffi.nets import forks, stock
from cuffi.nets import net as _net
from lab.site import INNER

SHIPPED = sorted(f.parent.name for place in toolkit_folders() for f in place.glob("[a-z]*/__init__.py"))


def own(module, kind):
    """The public objects of a kind that a module defines."""
    found = [(n, o) for n, o in vars(module).items() if kind(o) and not n.startswith("_")]
    return [(n, o) for n, o in found if getattr(o, "__module__", "").startswith(module.__name__)]


def functions():
    """Public functions: those of cuffi/__init__.py, the methods of its classes, the operators of the layers."""
    for name in sorted(cuffi._PUBLIC):
        public = getattr(cuffi, name)
        if inspect.isfunction(public):
            yield f"cuffi.{name}", public
    for public in (cuffi.CaffeNet, importlib.import_module("cuffi.caffe_layers.call.module").CaffeModule):
        for name, method in vars(public).items():
            overridden = hasattr(torch.nn.Module, name) and name != "forward"
            if inspect.isfunction(method) and not name.startswith("_") and not overridden:
                yield f"{public.__name__}.{name}", method
    for folder in SHIPPED:
        module = importlib.import_module(f"cuffi.{folder}")
        for name, operator in own(module, lambda o: callable(o) and hasattr(o, "backward")):
            yield f"cuffi.{folder}.{name}", operator


@pytest.mark.parametrize(
    "name, function",
    [p for p in functions() if p[0] not in INNER],
    ids=lambda o: o if isinstance(o, str) else "",
)
def test_a_function_says_arguments_results_and_errors(name, function):
    text = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    arguments = [a for a in signature.parameters if a not in ("self", "cls")]
    wanted = ["Args:"] * bool(arguments) + ["Raises:"]
    if signature.return_annotation not in (None, "None"):
        wanted.append("Returns:")
    # The operators below a public function have its arguments.
    same = re.search(r"arguments, (first two )?results? and errors are", text)
    assert same or not [w for w in wanted if w not in text], f"{name}: {text}"


@pytest.mark.parametrize("folder", SHIPPED)
def test_a_layers_module_says_what_it_computes(folder):
    module = importlib.import_module(f"cuffi.{folder}")
    modules = own(module, lambda o: inspect.isclass(o) and issubclass(o, torch.nn.Module))
    assert modules
    for name, cls in modules:
        assert len(inspect.getdoc(cls) or "") > 60, name
        assert inspect.getdoc(cls.forward) != inspect.getdoc(torch.nn.Module.forward), f"{name}.forward"


@pytest.mark.parametrize("folder", ["correlation", "normalize", "psroi_pooling", "smooth_l1_loss"])
def test_a_caffe_layers_help_has_formula_blobs_and_paper(folder):
    module = importlib.import_module(f"cuffi.{folder}")
    (cls,) = (o for o in vars(module).values() if inspect.isclass(o) and issubclass(o, torch.nn.Module))
    text = inspect.getdoc(cls) or ""
    assert not [
        word for word in ("top", "=", "Bottom", "Top:", "Written from", "_param:") if word not in text
    ], text


STOCK = [stock.stock_class(name) for name in stock.stock_types()]


@pytest.mark.parametrize("cls", STOCK, ids=lambda cls: cls.__name__)
def test_a_stock_type_says_its_formula_and_its_source(cls):
    text = cls.__doc__ or ""
    assert "Source: BVLC's " in text and len(text) > 40, cls


def test_types_of_forks_say_their_source():
    for cls in (cls for name in forks.fork_types() for cls in forks.fork_classes(name)):
        assert cls.source, cls
        assert len(cls.__doc__ or "") > 20, cls


def test_the_nets_class_is_public():
    assert cuffi.CaffeNet is _net.CaffeNet
