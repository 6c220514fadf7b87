"""Make launchers (kernel_launcher.py) from the signatures of kernels and from their launches.

launchers, left_out = make_launchers("foo", kernels_of(text, path))
print(launchers[0].declaration(), launchers[0].definition())

A launcher has the instances of the kernel's template (instances.py), its parameters in C (launcher_arguments.py), what
it uploads (uploads.py), and its grid, block and shared memory (geometry.py).
"""

from __future__ import annotations

from ..cuda.analysis import Kernel
from ..cuda.certain import touched_elements
from .c_types import DTYPES
from .geometry import Geometry
from .instances import Template
from .kernel_file import KernelFile
from .kernel_launcher import KernelLauncher, NoLauncher, wrapped
from .launcher_arguments import Arguments
from .naming import launcher_name, numbered
from .uploads import Upload, add_uploads


def make_launchers(layer: str, file: KernelFile) -> tuple[list[KernelLauncher], list[tuple[str, str]]]:
    """A launcher for each kernel that can have one, and (kernel, why not) for the others."""
    launchers, left_out = [], list(file.left_out)
    words = {token.text for token in file.source.lexed.tokens}
    used: set[str] = set()
    for kernel, scope, template_parameters in file.kernels:
        try:
            name = launcher_name(layer, kernel.name)
            while name in words:  # it would overload a function of the file
                name += "_launch"
            name = numbered(name, used)
            launcher = LauncherBuilder(file, kernel, scope, template_parameters).launcher(name)
        except NoLauncher as why:
            left_out.append((kernel.name, str(why)))
        else:
            used.add(name)
            # In a header a tensor's size also holds for the declarations below. [0] ends that.
            for said in [tensor for earlier in launchers for tensor in earlier.extents]:
                if said in launcher.python_parameters:
                    launcher.extents.setdefault(said, "0")
            launchers.append(launcher)
    return launchers, left_out


class LauncherBuilder:
    """Builds the launcher of one kernel."""

    def __init__(self, file: KernelFile, kernel: Kernel, scope: str, template_parameters):
        self.file, self.kernel, self.scope = file, kernel, scope
        if "std::" in scope or "::::" in scope:
            raise NoLauncher("is in a namespace that can't be named")
        count = len(kernel.parameters)
        alike = [k for k, *_ in file.kernels if (k.name, len(k.parameters)) == (kernel.name, count)]
        # Of two kernels with one name, the text does not show which one a launch means.
        launches = kernel.launches if len(alike) == 1 else ()
        self.launches = [launch for launch in launches if len(launch.arguments) == count]
        self.template = Template(file, kernel, scope, self.launches, template_parameters)
        self.arguments = Arguments(file, kernel, self.template)
        self.geometry = Geometry(file, kernel, self.template, self.arguments)

    def launcher(self, name: str) -> KernelLauncher:
        template, arguments = self.template, self.arguments
        arguments.add_all()
        exported = {own: arguments.add_parameter(kind, own).name for own, kind in template.free().items()}
        instances = template.instances(exported)
        uploads = add_uploads(arguments, self.file.symbols.get(self.kernel.name, ()))
        self._note(uploads)
        grid, block, shared = self.geometry.of_launch()
        return KernelLauncher(
            name,
            self.kernel,
            self.scope + self.kernel.name,
            arguments.all,
            template.dispatch,
            instances,
            grid,
            block,
            shared,
            arguments.notes,
            [*arguments.filled, *(upload.statement() for upload in uploads), *self.geometry.prologue],
            {**self._extents(), **{u.parameter: str(u.count) for u in uploads if u.count}},
            [upload.symbol.name for upload in uploads],
            arguments.indices,
            {f"CAFFE_{DTYPES[kind].upper()}": kind for kind in template.dtypes},
            self.kernel.name in self.file.cooperative,
            self.launches[0].line if self.launches else self.kernel.line,
            self.geometry.asked,
        )

    def _note(self, uploads: list[Upload]) -> None:
        """Say in the launcher's comment which kernel and which launch it stands for."""
        notes, name_of_file = self.arguments.notes, self.file.source.path.rpartition("/")[2]
        notes.append(f"{self.kernel.name}, line {self.kernel.line} of {name_of_file}.")
        for launch in self.launches[:1]:
            where = f"{launch.function}, line {launch.line}" if launch.function else f"line {launch.line}"
            config = ", ".join(filter(None, (launch.grid, launch.block, launch.shmem)))
            notes += wrapped(f"As launched in {where}: <<<{config}>>>({', '.join(launch.arguments)})")
        notes += [
            f"{u.parameter}: the values of {u.symbol.name}, which the kernel reads."
            for u in uploads
            if u.count
        ]

    def _extents(self) -> dict[str, str]:
        """The number of elements of each tensor whose every element the kernel's loop uses."""
        count, touched = touched_elements(self.file.source, self.kernel) or ("", [])
        size = " * ".join(f.name for f in self.geometry.factors(count))
        if not size:
            return {}
        return {a.name: size for a in self.arguments.all if a.kernel_name in touched}
