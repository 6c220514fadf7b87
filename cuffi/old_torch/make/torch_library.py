"""Build the libraries of one extension of torch/extension.h: the rules, and the C++ of its PyInit function.

The job (cuffi/old_torch/aten_build.py) has what build_library.py lists, and

    module          the last part of the module's name
    service         the Python module that the library imports (cuffi/old_torch/aten_service.py)
    edge            the digest of the toolkit's files that the library is made of
    include, src    folders of the toolkit: the headers, and aten_python.cpp
    declared        the folder of aten_operations.inc
    cxx, cuda       options for .cpp and for .cu
    nvcc            options for .cu that only nvcc knows
    std             the C++ standard
    behind          the user's own folders of headers, for those that no text names: they are searched last
    first           the sources that include torch's headers
"""

from __future__ import annotations

import json
import os

from tools.make import folders
from tools.make.backends import BACKENDS
from tools.make.settings import tidy

from .build_library import LibraryRules, escaped

RUNTIME = "aten_python.cpp"
# The files beside the job's own that its PyInit function is compiled from.
EDGE = (
    "build_ffi.py",
    "src/edge/cpu_arm.h",
    "src/edge/ffi_guard.h",
    "src/edge/way_out.h",
    "cuffi/old_torch/make/torch_library.py",
)


# Asked after each call. torch says so at its own next launch. On the host the launcher has this function.
LAUNCH_PROBLEM = """extern "C" int cudaGetLastError();
extern "C" const char* cudaGetErrorString(int);
const char* caffe_take_launch_problem() {
  const int error = cudaGetLastError();
  return error ? cudaGetErrorString(error) : nullptr;
}
"""


class TorchRules(LibraryRules):
    """The rules of one extension."""

    def flags(self, source: str, own: list[str]) -> list[str]:
        job = self.job
        words = ["-iquote", os.path.dirname(source), *own, f"-I{job['declared']}", f"-I{job['include']}"]
        words += [*job["flags"], *job["behind"], f"-std=c++{job['std']}"]
        return [*words, f"-ffile-prefix-map={job['copies']}={job['above']}"]

    def objects(self, backend: str, place: str) -> list[str]:
        made, on_host = [self.runtime_object(backend)], BACKENDS[backend].on_host
        self.core += made
        first = self.first(backend) if on_host else ""

        def compiled(recipe: str, source: str, path: str, own: list[str]) -> None:
            words = ["-include", first] if first and source in self.job["first"] else []
            needs = [f"{first}.gch"] if words else []
            made.append(self._object(recipe, source, path, backend, place, [*words, *own], needs=needs))

        for source in self.job["sources"]:
            compiled("aten_cpp", source, source, self.job["cxx"])
        for kernel in self.job["kernels"]:
            source = folders.check_path(kernel["source"], "EXT")
            rewritten = f"{place}/{os.path.relpath(source, self.job['copies'])}{BACKENDS[backend].rewritten}"
            word, tool = ("HOST", "to_host") if on_host else ("LOOPS", "for_nvcc")
            module = f"tools.cuda.{tool} --root {self.job['copies']}"
            self.rule(
                rewritten,
                [source, "$(REWRITERS)"],
                f"$(call rewrite,{word},{self._what(source)},{module})",
            )
            self.may_be_plain(rewritten, source, module, backend)
            compiled(
                "aten_kernel", source, rewritten, self.job["cuda"] + ([] if on_host else self.job["nvcc"])
            )
        return made

    def first(self, backend: str) -> str:
        """Add the rule of the headers that are precompiled. Returns the header's copy beside them.

        g++ does not take them for a file with other options, or macros that they read, and reads the copy.
        """
        header = f"{self.settings.core_of(backend)}/{self.job['edge']}/first.h"
        self.precompile(
            f"{tidy(self.job['include'], 'EXT')}/aten/first.h",
            os.path.dirname(header),
            "ATEN_FIRST",
            "../flags",
        )
        self.core.append(f"{header}.gch")
        return header

    def runtime_object(self, backend: str) -> str:
        """The object that all extensions share."""
        place, job = f"{self.settings.core_of(backend)}/{self.job['edge']}", self.job
        made = f"{place}/aten_python.o"
        own = escaped([f"-I{job['include']}", "-std=c++17"])
        self.rule(made, [f"{tidy(job['src'], 'EXT')}/{RUNTIME}"], f"$(call aten_runtime,{backend},{own})")
        self.told(made)
        return made

    def wrapper_rule(self, wrapper: str, module: str, backend: str) -> None:
        own = escaped([f"-I{self.job['include']}"])
        self.rule(wrapper, [self.path, *EDGE], f"$(call aten_wrapper,{module},{backend},{own})")


def source_of(job: dict, backend: str) -> str:
    """The C++ of the PyInit function. build_ffi.py compiles it with the edge's macros in front."""
    on_host = BACKENDS[backend].on_host and bool(job["kernels"])
    values = [json.dumps(job["module"]), json.dumps(job["service"]), json.dumps(job["edge"])]
    values += [str(on_host).lower(), "aten_fill", "aten_own_init"]
    return "\n".join([
        '#include "ffi_guard.h"', "#include <aten/module.h>", 'extern "C" {',
        '__attribute__((weak, visibility("hidden"))) void aten_fill(void* module);',
        '__attribute__((weak, visibility("hidden"))) void* aten_own_init();',
        f"const AtenModule aten_module = {{{', '.join(values)}}};",
        "int aten_guarded(void (*run)(void*), void* data) { return caffe_guard([&] { return run(data), 0; }); }",
        "const char* aten_left_by() { return caffe_last_error(); }",
        "const char* aten_unsupported() { return caffe_unsupported(); }",
        "int Py_IsInitialized();", "int Py_AddPendingCall(int (*)(void*), void*);",
        "__attribute__((constructor)) static void aten_loaded() {",
        "  if (Py_IsInitialized()) Py_AddPendingCall(aten_open, nullptr);", "}",
        f'__attribute__((visibility("default"))) void* PyInit_{job["module"]}() {{ return aten_make_module(); }}',
        "}", LAUNCH_PROBLEM if job["kernels"] and not BACKENDS[backend].on_host else "",
    ])  # fmt: skip
