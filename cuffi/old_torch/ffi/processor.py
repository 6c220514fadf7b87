"""Replaces the GPU by the processor, for scripts that need one (front.py)."""

import sys

import torch

stands_in = False


def stand_in(module: str = "torch.utils.ffi") -> None:
    """Make code that asks for a GPU use the processor."""
    global stands_in
    stands_in = True
    print(f"{module}: there is no GPU: this script uses the processor instead", file=sys.stderr)
    cuda = torch.cuda
    vars(cuda).update(is_available=lambda: True, device_count=lambda: 1, current_device=lambda: 0)
    # A function for each name: torch.compile has a table of them, in which none may be there twice.
    for name in ("synchronize", "set_device", "empty_cache"):
        setattr(cuda, name, lambda *_, **__: None)
    for name in ("manual_seed", "manual_seed_all"):
        setattr(cuda, name, lambda seed: torch.default_generator.manual_seed(int(seed)) and None)
    for kind in (torch.Tensor, torch.nn.Module):
        kind.cuda = lambda self, *_, **__: self
    for name, of_tensor in (("is_cuda", property(lambda self: True)), ("get_device", lambda self: 0)):
        setattr(torch.Tensor, name, of_tensor)
    for kind in ("Float", "Double", "Half", "Long", "Int", "Short", "Char", "Byte", "Bool"):
        setattr(cuda, f"{kind}Tensor", getattr(torch, f"{kind}Tensor"))
