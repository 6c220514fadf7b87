"""share_mode: PERMISSIVE: a layer's blob is another layer's, in another shape of the same count."""

from __future__ import annotations

from torch import nn

from ...base.once import once


def view(module: nn.Module, attribute: str, owner: nn.Parameter) -> None:
    """Let the module's blob be the owner's values, in the shape that the blob has now.

    The module holds the owner as `shared_ATTRIBUTE`, so that it trains, moves and is copied as any shared parameter.
    """
    views = module.__dict__.get("_views", {}) | {attribute: getattr(module, attribute).shape}
    del module._parameters[attribute]
    module.register_parameter(f"shared_{attribute}", owner)
    module.__dict__["_views"] = views
    if not isinstance(module, _Viewing):
        module.__class__ = _viewing(type(module))


class _Viewing:
    def __getattr__(self, name: str):
        views = self.__dict__.get("_views", {})
        if name in views and name not in self._parameters:
            return self._parameters[f"shared_{name}"].view(views[name])
        return super().__getattr__(name)

    def __reduce_ex__(self, protocol):
        return _empty, (type(self).__mro__[2],), self.__getstate__()


@once
def _viewing(kind: type[nn.Module]) -> type:
    return type(kind.__name__, (_Viewing, kind), {"__module__": kind.__module__})


def _empty(kind: type[nn.Module]) -> nn.Module:
    made = _viewing(kind)
    return made.__new__(made)
