"""Python layers: `type: "Python"`, a subclass of caffe.Layer or a torch module in a file of the user's.

Its code runs in Python, on numpy arrays in the processor's memory. So torch.compile leaves it out of the graph, and
torch.export cannot take it.
"""

from __future__ import annotations

import ast
import functools
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ...base import CaffeRuntimeError, CaffeValueError, is_fake
from ...caffe_files.prototxt import Node
from ..python2 import Tree, place_of
from ..stock import share_blob
from .blob import Blob, Layer, Phase, RawBlobVec
from .graph import Spec
from .messages import layer_parameter

_TOOLKIT = __name__.rsplit(".", 3)[0]


class PythonPath:
    """Finds a net's Python layers: in the given folders, beside the prototxt, or in a folder above it.

    The search includes `lib`, `python` and `src` in these folders, and ends at the folder with `.git`, or after six
    folders. A script that `python -m cuffi.caffe` runs shares its modules with the layers.

    Args:
        beside: False: only in the given folders. The files beside the prototxt have not been trusted.
    """

    def __init__(self, folders: Iterable[str], prototxt: str, beside: bool = True):
        for folder in folders:
            if not Path(folder).is_dir():
                raise CaffeValueError(f"python_path: no folder {folder}")
        file = Path(prototxt).resolve()
        above = [folder for folder in file.parents if file.is_file()]
        end = next((i + 1 for i, folder in enumerate(above) if (folder / ".git").exists()), 6)
        self.above, self.beside = above[:end], beside
        self.tree = Tree.running or Tree((), {"caffe": public_face})
        self.tree.folders += [folder for folder in folders if folder not in self.tree.folders]

    def find(self, module: str):
        """The module of that name. None if it may not run."""
        if not any(_holds(Path(folder), module) for folder in self.tree.places):
            if not self.beside:
                return None
            inside = [folder / name for folder in self.above for name in ("", "lib", "python", "src")]
            found = next((place for place in inside if _holds(place, module)), None)
            if found is None:
                # The folders up to the root are looked at, but nobody keeps a module there.
                near = [folder for folder in self.above[:3] if folder != Path(folder.anchor)]
                looked = ", ".join(dict.fromkeys([*self.tree.places, *map(str, near)])) or "no folder"
                file = f"{module.replace('.', '/')}.py"
                raise CaffeValueError(
                    f"no module {module!r} in {looked}. Give the folder that has {file}: "
                    "python_path=['/folder/with/it']"
                )
            self.tree.folders.append(str(found))
        return self.tree.module(module)


def _holds(folder: Path, module: str) -> bool:
    place = folder.joinpath(*module.split("."))
    return place.with_name(place.name + ".py").is_file() or (place / "__init__.py").is_file()


def public_face():
    """The module that a file gets for `import caffe`."""
    return importlib.import_module(f"{_TOOLKIT}.caffe")


def python_layer(spec: Spec, find) -> nn.Module:
    """The module of a Python layer. `find` takes the name of a Python module and imports it.

    CaffeValueError if the file has no such class, or the class is neither a caffe.Layer nor a torch module.
    """
    param = spec.node.node("python_param") or Node()
    module, name, text = (param.value(field) for field in ("module", "layer", "param_str"))
    if not module or not name:
        raise CaffeValueError("python_param: module and layer have to be given")
    try:
        if (found := find(module)) is None:
            raise CaffeValueError(why_refused(spec))
        kind = getattr(found, name, None)
    except (CaffeValueError, CaffeRuntimeError):
        raise
    except Exception as error:  # the module's own code ran
        raise CaffeRuntimeError(f"import {module}: {place_of(error)}{_message_after_colon(error)}") from error
    if isinstance(kind, type) and issubclass(kind, nn.Module):
        return TorchLayer(spec, kind, text)
    if not (isinstance(kind, type) and issubclass(kind, Layer)):
        raise CaffeValueError(f"{module} has no class {name!r} that is a caffe.Layer or a torch.nn.Module")
    return PythonLayer(spec, kind, text)


def why_refused(spec: Spec) -> str:
    """The message for a Python layer that nobody has asked to run."""
    param = spec.node.node("python_param") or Node()
    name = f"{param.value('module')}.{param.value('layer')}"
    return f"runs Python code, {name}. If you trust it: python_layers=True, or --python-layers (make: PYTHON_LAYERS=1)"


def _message_after_colon(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


_WHY_EAGER = "it runs Python code, which a graph cannot hold: call the net eagerly"


def _eager(function):
    """The function, left out of graphs. torch.compiler.disable would import torch._dynamo, which takes seconds."""

    @functools.wraps(function)
    def outside(*arguments, **named):
        call = torch.compiler.disable(function) if "torch._dynamo" in sys.modules else function
        return call(*arguments, **named)

    # Marked as torch.compiler.disable would mark it.
    why = f"a Python layer: {_WHY_EAGER}"
    vars(outside).update(_torchdynamo_disable=True, _torchdynamo_disable_msg=why)
    return outside


class TorchLayer(nn.Module):
    """A torch module as a Python layer.

    param_str is a Python dict of its constructor's keywords, such as "{'groups': 4}" or "'groups': 4". It gets the
    bottoms, and returns the top or several tops.
    """

    def __init__(self, spec: Spec, kind: type[nn.Module], text: str):
        super().__init__()
        self.layer_name, self.top_count = spec.name, len(spec.tops)
        text = text.strip()
        try:
            keywords = ast.literal_eval(text if text[:1] == "{" else f"{{{text}}}")
            self.inner = kind(**keywords)
        except (ValueError, SyntaxError, TypeError) as error:
            raise CaffeValueError(
                f"param_str {text!r}, as the keywords of {kind.__name__}: {error}"
            ) from None

    def top_shapes(self, *shapes) -> list[tuple[int, ...]]:
        with torch.no_grad():
            return [tuple(top.shape) for top in self._tops(*(torch.zeros(shape) for shape in shapes))]

    def _tops(self, *bottoms: Tensor) -> tuple[Tensor, ...]:
        made = self.inner(*bottoms)
        made = made if isinstance(made, tuple | list) else (made,)
        if len(made) != self.top_count or not all(isinstance(top, Tensor) for top in made):
            got = ", ".join(type(top).__name__ for top in made)
            raise CaffeValueError(
                f"{type(self.inner).__name__} returned {got}; the file names {self.top_count} tops"
            )
        return tuple(made)

    def forward(self, *bottoms: Tensor):
        made = self._tops(*bottoms)
        return made if self.top_count != 1 else made[0]


class _Instance:
    """The user's object for one phase, with its tops."""

    def __init__(self, owner: PythonLayer, phase: Phase):
        self.owner, self.calls, self.tops = owner, 0, [Blob() for _ in owner.spec_tops]
        try:
            self.layer = owner.kind(owner.message)
            self.layer.param_str, self.layer.phase = owner.text, phase
        except Exception as error:
            raise owner.failed("__init__", error) from error
        self.is_set_up = False

    def call(self, name: str, *arguments):
        """Run a method of the user's."""
        try:
            return getattr(self.layer, name)(*arguments)
        except Exception as error:
            raise self.owner.failed(name, error) from error

    def prepare(self, bottoms: list[Blob], dtype) -> None:
        """setup, once, and reshape."""
        for top in self.tops:
            if top.data.dtype != dtype:
                top._data, top._diff = top.data.astype(dtype), None
        if not self.is_set_up:
            self.call("setup", RawBlobVec(bottoms), RawBlobVec(self.tops))
            self.is_set_up = True
        if hasattr(self.layer, "reshape"):
            self.call("reshape", RawBlobVec(bottoms), RawBlobVec(self.tops))
        if not self.layer.blobs.is_fixed:
            self.owner.adopt(self.layer.blobs)


class PythonLayer(nn.Module):
    """A caffe.Layer as a torch module. Each phase has an object of the user's class, as Caffe's nets had.

    Bottoms and tops are blobs on the processor, also if the tensors are on a GPU. The layer's own blobs, which `setup`
    adds, are the parameters `blob0`, `blob1` and so on.
    """

    def __init__(self, spec: Spec, kind: type, text: str):
        super().__init__()
        self.layer_name, self.kind, self.text = spec.name, kind, text
        self.message, _ = layer_parameter(spec.node)
        self.spec_tops = spec.tops
        # By top: the bottom that it overwrites.
        self.in_place = {i: spec.bottoms.index(top) for i, top in enumerate(spec.tops) if top in spec.bottoms}
        self.instances: dict[bool, _Instance] = {}
        self.count = 0
        # It moves with the net: the tops of a layer without bottoms, such as a source of data, are where the net is.
        self.register_buffer("place", torch.empty(0), persistent=False)

    @property
    def is_set_up(self) -> bool:
        return bool(self.instances)

    @property
    def instance(self) -> _Instance:
        if self.training not in self.instances:
            self.instances[self.training] = _Instance(self, Phase(0 if self.training else 1))
        return self.instances[self.training]

    def failed(self, method: str, error: Exception) -> Exception:
        kind = CaffeValueError if isinstance(error, ValueError) else CaffeRuntimeError
        return kind(f"{self.kind.__name__}.{method}: {place_of(error)}{_message_after_colon(error)}")

    def adopt(self, blobs) -> None:
        """Make parameters of the blobs that a layer has added. They share the blobs' memory."""
        for i, blob in enumerate(blobs):
            own = getattr(self, f"blob{i}", None)
            if own is None:
                self.register_parameter(f"blob{i}", nn.Parameter(torch.from_numpy(blob.data)))
            elif own.shape != blob.shape:
                raise CaffeValueError(
                    f"setup: blob {i} is {list(blob.shape)}, in the other phase {list(own.shape)}"
                )
            blob._data = _array(getattr(self, f"blob{i}"))
        self.count = max(self.count, len(blobs))
        blobs.fix(self._share)

    def _share(self, i: int, blob: Blob) -> Blob:
        share_blob(self, i, blob.shared())
        return Blob(_array(getattr(self, f"blob{i}")))

    def own_blobs(self) -> list[nn.Parameter]:
        return [getattr(self, f"blob{i}") for i in range(self.count)]

    def top_shapes(self, *shapes) -> list[tuple[int, ...]]:
        self.instance.prepare([Blob(np.zeros(shape, np.float32)) for shape in shapes], np.float32)
        return [top.shape for top in self.instance.tops]

    @_eager
    def forward(self, *bottoms: Tensor):
        if torch.jit.is_tracing() or any(map(is_fake, bottoms)):
            raise CaffeRuntimeError(_WHY_EAGER)
        device = bottoms[0].device if bottoms else self.place.device
        made = _Call.apply(self, device, len(bottoms), *bottoms, *self.own_blobs())
        return made if len(self.spec_tops) != 1 else made[0]

    def __getstate__(self) -> dict:
        return self.__dict__ | {"instances": {}}  # the user's objects may hold files and processes


def _array(tensor: Tensor) -> np.ndarray:
    """The tensor's memory, or a copy of it in float32 on the processor."""
    tensor = tensor.detach()
    if tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.float()
    return tensor.cpu().contiguous().numpy()


class _Call(torch.autograd.Function):
    """A call, with the user's own backward."""

    @staticmethod
    def forward(ctx, module: PythonLayer, device, count: int, *tensors: Tensor):
        bottoms = [Blob(_array(tensor)) for tensor in tensors[:count]]
        floats = [tensor.dtype for tensor in tensors[:count] if tensor.is_floating_point()]
        instance, dtype = module.instance, floats[0] if floats else torch.get_default_dtype()
        kept = dtype if dtype == torch.float64 else torch.float32
        for blob, parameter in zip(instance.layer.blobs, tensors[count:], strict=False):
            blob._data = _array(parameter)
        instance.prepare(bottoms, _NUMPY[kept])
        for top, bottom in module.in_place.items():
            instance.tops[top].reshape(*bottoms[bottom].shape)
            instance.tops[top].data[...] = bottoms[bottom].data
        instance.call("forward", RawBlobVec(bottoms), RawBlobVec(instance.tops))
        instance.calls += 1
        ctx.instance, ctx.number, ctx.bottoms, ctx.device = instance, instance.calls, bottoms, device
        ctx.dtypes = [tensor.dtype for tensor in tensors]
        made = [torch.from_numpy(top.data.copy()).to(device, dtype) for top in instance.tops]
        if any(ctx.needs_input_grad):
            ctx.tops = [Blob(top.data.copy()) for top in instance.tops]
        return tuple(made)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients: Tensor):
        instance, bottoms = ctx.instance, ctx.bottoms
        if ctx.number != instance.calls:
            raise CaffeRuntimeError(
                f"{instance.owner.layer_name}: backward of an earlier call: a Python layer keeps what backward needs "
                "in itself, and a later forward has replaced it"
            )
        for blob, gradient in zip(ctx.tops, gradients, strict=True):
            blob.diff[...] = _array(gradient)
        for blob in (*bottoms, *instance.layer.blobs):
            blob.diff[...] = 0
        needs = list(ctx.needs_input_grad[3:])
        instance.call("backward", RawBlobVec(ctx.tops), needs[: len(bottoms)], RawBlobVec(bottoms))
        found = [blob.diff for blob in (*bottoms, *instance.layer.blobs)]
        return (
            None,
            None,
            None,
            *(
                torch.from_numpy(diff.copy()).to(ctx.device, dtype) if need else None
                for diff, dtype, need in zip(found, ctx.dtypes, needs, strict=True)
            ),
        )


_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}
