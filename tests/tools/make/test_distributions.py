"""Which file of the package belongs to which distribution."""

import ast

from conftest import ROOT

from cuffi.installed import KERNELS
from tools.make.distributions import NETS, is_of_nets


def test_each_name_is_there():
    assert not [name for name in NETS if not (ROOT / "cuffi" / name).exists()]


def test_a_path_belongs_to_its_top():
    assert is_of_nets("base/files.py") and is_of_nets("__init__.py")
    assert not is_of_nets("runtime/__init__.py") and not is_of_nets("edge.py")


def test_what_the_pure_one_imports_at_once_is_in_it():
    """Or a wing of the other, whose absence is told with the command that installs it."""
    package = ROOT / "cuffi"
    lacking = []
    for file in (f for f in package.rglob("*.py") if is_of_nets(f.relative_to(package).as_posix())):
        folders = ["cuffi", *file.relative_to(package).parent.parts]
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ImportFrom) and node.level:
                above = folders[: len(folders) - node.level + 1]
                path = [*above[1:], *(node.module or "").split(".")] if node.module else above[1:]
                names = [path[0]] if path else [alias.name for alias in node.names]
                own = [n for n in names if (package / n).is_dir() or (package / f"{n}.py").exists()]
                lacking += [
                    f"{file.relative_to(ROOT)}: {n}"
                    for n in own
                    if not {n, f"{n}.py"} & {*NETS} and n not in KERNELS
                ]
    assert not lacking
