"""pytest --cuffi-judge: one test for each kernel of the .cu files that pytest collects.

A file is built and judged once. A kernel's test fails with what was found in it, or in the program around it. It is
skipped if the kernel did not run, or if there is no verdict.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("cuffi")
    group.addoption(
        "--cuffi-judge", action="store_true", help="judge the kernels of .cu files, without a GPU"
    )
    group.addoption("--cuffi-judge-seconds", type=float, default=20, help="of each run of a file (20)")


def pytest_collect_file(file_path: Path, parent):
    if file_path.suffix == ".cu" and parent.config.getoption("--cuffi-judge"):
        return CudaFile.from_parent(parent, path=file_path)
    return None


class Wrong(Exception):
    """What is wrong with a kernel."""


class CudaFile(pytest.File):
    """A .cu file; its kernels are its tests."""

    _verdict: dict | None = None

    def collect(self):
        from .programs import NotBuilt, rewritten

        try:
            kernels = rewritten([self.path]).kernels or ["main"]
        except NotBuilt as error:
            if error.kind == "no-kernel":
                return
            kernels = ["file"]
        for name in kernels:
            yield Kernel.from_parent(self, name=name)

    def verdict(self) -> dict:
        if self._verdict is None:
            from ..judge import judge
            from .limits import Limits

            self._verdict = judge([self.path], limits=Limits(self.config.getoption("--cuffi-judge-seconds")))
        return self._verdict


class Kernel(pytest.Item):
    """One kernel of a file."""

    def runtest(self):
        assert isinstance(self.parent, CudaFile)
        said = self.parent.verdict()
        found = [one for one in said["findings"] if one["kernel"] in ("", self.name)]
        text = "\n".join(
            f"{one['kind']}: {one['text']}"
            + (f"\n    {one['place']}" if one["place"] not in one["text"] else "")
            for one in found
        )
        if said["status"] == 3 or (not found and self.name not in said["ran"]):
            pytest.skip(text or f"{self.name} did not run")
        if any(not one["is_warning"] for one in found):
            raise Wrong(text)
        if found:
            warnings.warn(text, stacklevel=1)

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, Wrong):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"{self.path.name}: {self.name}"
