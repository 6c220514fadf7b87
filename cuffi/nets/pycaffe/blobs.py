"""The blobs of a pycaffe Net: numpy arrays for tensors on any device."""

from __future__ import annotations

import functools
import io
import warnings
from collections import OrderedDict
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from ...base import CaffeRuntimeError, some
from ...base.files import written_whole
from ...caffe_files.parameters import did_you_mean
from ..data.sources import package
from ..net.blob import Blob, BlobVec
from ..stock import blobs_of, share_blob
from ..stock._late_checks import raise_if_refused


class Mirror:
    """A tensor's numpy array: its own memory on the processor, else a copy that `send` writes back."""

    def __init__(self):
        self.host: np.ndarray | None = None
        self.place, self.version = None, -1

    def array(self, tensor: Tensor) -> np.ndarray:
        """The same array at each call, as long as the tensor has the same memory."""
        tensor, place = tensor.detach(), (tensor.data_ptr(), tensor.shape, tensor.device)
        if self.host is None or self.place != place:
            self.host, self.place = tensor.cpu().numpy(), place
        elif tensor.device.type != "cpu" and self.version != tensor._version:
            np.copyto(self.host, tensor.cpu().numpy())
        raise_if_refused(wait=True)  # what was copied is computed, and so are the checks before it
        self.version = tensor._version
        return self.host

    def send(self, tensor: Tensor) -> None:
        if self.host is not None and tensor.device.type != "cpu":
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(self.host))
            self.version = tensor._version


class NetBlob(Blob):
    """A blob of a net. As in Caffe, later calls write to arrays that a script already has.

    Args:
        shape: the shape before the first call.
        device: returns the device of the net.
        settle: called before a value is read.
        weight: the blob's loss_weight, which Caffe keeps in its diff.
    """

    def __init__(
        self, shape: tuple[int, ...], device: Callable, settle: Callable = bool, weight: float = 0.0
    ):
        super().__init__()
        self._device, self._settle, self._weight = device, settle, weight
        self._shape, self._tensor, self._mirror, self.is_out = shape, None, Mirror(), False

    def tensor(self) -> Tensor:
        """Its value on the net's device, with the script's changes to its array."""
        device = torch.device(self._device())
        if self._tensor is None:
            self._tensor = torch.zeros(self._shape, device=device)
        elif self._tensor.device.type != device.type:
            self._tensor, self._mirror = torch.from_numpy(self.data).to(device), Mirror()
        self._mirror.send(self._tensor)
        return self._tensor

    def take(self, made: Tensor) -> None:
        """Store a call's result."""
        made = made.detach()
        own = self._tensor if self.is_out else None
        if own is not None and own.shape == made.shape and own.dtype == made.dtype:
            own.copy_(made)
        else:
            self._tensor, self._mirror, self.is_out = made, Mirror(), False
        self._shape = tuple(made.shape)

    def _values(self) -> np.ndarray:
        self._settle()
        tensor = self.tensor() if self._tensor is None else self._tensor
        self.is_out = True
        return self._mirror.array(tensor)

    def _gradient(self) -> np.ndarray:
        is_new = self._diff is None
        diff = super()._gradient()
        if is_new and self._weight:
            diff[...] = self._weight
        return diff

    @property
    def has_diff(self) -> bool:
        """Does it have a diff: one that the script wrote, or that of a loss?"""
        return self._diff is not None or bool(self._weight)

    @property
    def shape(self) -> tuple[int, ...]:
        self._settle()
        return self._shape

    def shared(self) -> Tensor:
        raise CaffeRuntimeError(
            "a blob that a net computes cannot be a layer's parameter: its memory changes. Write its values: "
            "net.params[layer][i].data[...] = blob.data"
        )

    def _resized(self, new: np.ndarray) -> None:
        self._tensor = torch.from_numpy(new).to(self._device())
        self._shape, self._mirror, self.is_out = new.shape, Mirror(), True


class Input(NetBlob):
    """An input: `changed` is called when its shape changes."""

    def __init__(self, shape, device: Callable, changed: Callable):
        super().__init__(shape, device)
        self._changed = changed

    def _resized(self, new: np.ndarray) -> None:
        super()._resized(new)
        self._changed()


class Param(Blob):
    """A parameter of a layer: `data` is its memory, `diff` that of its gradient."""

    def __init__(self, tensor: Tensor):
        super().__init__()
        self.parameter, self._mirrors = tensor, (Mirror(), Mirror())
        self._is_out = False  # the script has the array, and may write to it at any time

    def _values(self) -> np.ndarray:
        self._is_out = True
        return self._mirrors[0].array(self.parameter)

    def _gradient(self) -> np.ndarray:
        if self.parameter.grad is None:
            self.parameter.grad = torch.zeros_like(self.parameter)
        return self._mirrors[1].array(self.parameter.grad)

    def shared(self) -> Tensor:
        return self.parameter

    def send(self) -> None:
        """Copy the script's changes to the arrays to the device."""
        self._mirrors[0].send(self.parameter)
        if self._is_out:  # values derived from the old parameter become invalid
            torch.autograd.graph.increment_version(self.parameter)
        if self.parameter.grad is not None:
            self._mirrors[1].send(self.parameter.grad)

    def _resized(self, new: np.ndarray) -> None:
        self.parameter.data = torch.from_numpy(new).to(self.parameter.device)
        self.parameter.grad = None


def layer_blobs(module: nn.Module | None, name: str) -> BlobVec:
    """The parameters of a net's layer: always those that its module has now."""

    def update(held: list[Param]) -> list[Param]:
        known = {id(param.parameter): param for param in held}
        tensors = blobs_of(module) if module is not None else ()
        return [known.get(id(tensor)) or Param(tensor) for _, tensor in tensors]

    def share(i: int, blob: Blob) -> Param:
        assert module is not None  # without one there is no blob i
        share_blob(module, i, blob.shared())
        tensor = blobs_of(module)[i][1]
        return blob if isinstance(blob, Param) and blob.parameter is tensor else Param(tensor)

    blobs = BlobVec((), name, update)
    blobs.fix(share)
    return blobs


def save_hdf5(params: dict[str, BlobVec], filename) -> None:
    """Write the layers' parameters as Caffe's HDF5: data/LAYER/0, data/LAYER/1 and so on."""
    h5py = package("h5py", "save_hdf5")
    content, seen = io.BytesIO(), set()
    with h5py.File(content, "w") as file:
        data = file.create_group("data")
        for name, blobs in params.items():
            group = data.create_group(name)
            for i, blob in enumerate(blobs):
                if id(blob.parameter) not in seen:  # a shared blob is its first layer's
                    group[str(i)] = blob.data
                seen.add(id(blob.parameter))
    with written_whole(filename) as target:
        target.write(content.getbuffer())


class UnknownName(KeyError):
    """A KeyError whose text is a sentence."""

    def __str__(self) -> str:
        return str(self.args[0])


class Names(OrderedDict):
    """A dict of a net's blobs or parameters. As in pycaffe, a change of the dict itself does not reach the net."""

    def __init__(self, items, name: str, what: str, known: dict[str, str] | None = None):
        """`known`: what is to be said of names that are not here."""
        super().__init__()
        self._name, self._what, self._known = "", what, known or {}
        for key, value in items:
            self[key] = value
        self._name = name

    def __missing__(self, key):
        asked = f"{self._name}[{key!r}]"
        if key in self._known:
            raise UnknownName(f"{asked}: the layer {self._known[key]}")
        near = did_you_mean(key, self) or "."
        raise UnknownName(
            f"{asked}: no {self._what} of that name{near} There are: {', '.join(some(self, 20))}"
        )

    def _say(self, key) -> None:
        if self._name:
            name = f"{self._name}[{key!r}]"
            warnings.warn(
                f"{name}: as in pycaffe, only the dict changes, and the net does not. Write to its blobs: "
                "blob.data[...] = values",
                stacklevel=3,
            )

    def __setitem__(self, key, value) -> None:
        self._say(key)
        super().__setitem__(key, value)

    def __delitem__(self, key) -> None:
        self._say(key)
        super().__delitem__(key)


class NetLayer:
    """A layer of a net. As in pycaffe, its list of blobs cannot be replaced: assign to its elements."""

    def __init__(self, kind: str, blobs: BlobVec):
        self._type, self._blobs = kind, blobs

    @property
    def type(self) -> str:
        """The layer's type."""
        return self._type

    @property
    def blobs(self) -> BlobVec:
        """The layer's parameters."""
        return self._blobs


class Layers(tuple):
    """A net's layers."""

    def __setitem__(self, i, layer) -> None:
        raise CaffeRuntimeError(
            f"net.layers[{i!r}]: a layer cannot be replaced here. Share its blobs: net.layers[{i!r}].blobs[0] = blob"
        )

    __delitem__ = functools.partialmethod(__setitem__, layer=None)
