"""One line for each finding whose class has a usual remedy."""

from __future__ import annotations

import re

from .arrays import written
from .findings import Finding, line_at

USUAL = {
    "bounds": "guard the access: if (i < n), for each index that may be outside",
    "null": "check what cudaMalloc returned, and the order of the arguments",
    "lane": "name all lanes that call, and no other, in the mask",
    "unset": "write the memory first: cudaMemset, or a barrier after the write",
    "barrier": "move the barrier out of the condition, so that all threads of the block come to it",
    "constant": "write it by cudaMemcpyToSymbol, or take a __device__ variable",
    "launch": "ask for cudaGetLastError() after the launch",
    "host-pointer": "copy it to memory of cudaMalloc, or take cudaMallocManaged",
    "early-read": "wait before the host uses it: cudaDeviceSynchronize(), or cudaStreamSynchronize(stream)",
    "not-the-kernel": "return what the kernel wrote",
}


def remedy(one: Finding) -> str:
    """What usually helps; "" if nothing does."""
    return _of_race(one) if one.kind == "race" else USUAL.get(one.kind, "")


def _of_race(one: Finding) -> str:
    if "asynchronous copy" in one.text:
        return "wait for the copy, then put a barrier before others read it"
    if len(one.accesses) < 2:
        return "put an atomic, or a barrier, between the two accesses"
    first, second = one.accesses
    if "for one block only" in one.text:
        return "take the atomic operation of the whole device, without _block"
    line = line_at(first["place"])
    if first["place"] == second["place"] and is_one_element(line):
        name = one.array or "it"
        return f"change {name} by an atomic operation, such as atomicAdd, or give each thread an element of its own"
    if first["block"] != second["block"]:
        return "no barrier orders two blocks: take an atomic operation, or a second launch"
    if first["thread"] // 32 == second["thread"] // 32:
        return "put __syncwarp() between the two accesses"
    return "put __syncthreads() between the two accesses"


def is_one_element(line: str) -> bool:
    """Does this line change one element of an array, and use no other one of it? As `*total += 1` does."""
    return any(
        len(set(re.findall(rf"\b{re.escape(name)}\s*\[([^\[\]]*)\]", line))) <= 1 for name in written(line)
    )
