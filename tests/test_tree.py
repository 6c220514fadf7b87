"""The shape of the tree: short test files, short functions, imports that point one way."""

import ast
import subprocess

import pytest
from conftest import ROOT
from support.syntax import lines_of, named_in
from support.typed import not_none
from test_walls import room_of


def sources(*folders: str):
    return [f for folder in folders for f in sorted((ROOT / folder).rglob("*.py")) if "build" not in f.parts]


def test_no_file_of_tests_is_long():
    long = {
        str(f.relative_to(ROOT)): n for f in sources("tests") if (n := len(f.read_text().splitlines())) > 500
    }
    assert not long, "split it by what it tests"


def test_few_functions_are_longer_than_a_screen():
    folders = ("cuffi", "layers", "tools", "benchmarks", "tests", "examples", "lab", "packaging")
    long = [
        f"{file.relative_to(ROOT)}: {node.name}"
        for file in [*sources(*folders), *ROOT.glob("*.py")]
        for node in named_in(file)
        if isinstance(node, ast.FunctionDef) and lines_of(node) > 50
    ]
    assert len(long) <= 6, long


# A folder or file of tools/ imports only those before it. tests/test_walls.py has the arrows between rooms.
TOOLS = ("package_module", "console", "files", "refused", "cuda", "make", "cases", "new_layer")


def imported(file):
    """The modules that a file imports, by their full names."""
    package = file.relative_to(ROOT).parts[:-1]
    for node in named_in(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_imports_point_one_way():
    wrong = [f"{f}: {name}" for f in sources("layers") for name in imported(f) if name.startswith("tools.")]
    for file in sources("tools"):
        own = file.relative_to(ROOT / "tools").with_suffix("").parts[0]
        if own == "__init__":
            continue
        later = TOOLS[TOOLS.index(own) + 1 :]
        of = {name.split(".")[1] for name in imported(file) if name.startswith("tools.")}
        wrong += [f"{file}: {other}" for other in sorted(of.intersection(later))]
        wrong += [f"{file}: {name}" for name in imported(file) if name.startswith("build_ffi")]
    assert not wrong


# Classes of types: tests/nets/net/test_stock*.py and tests/nets/forks have tables of types. Layers have cases.py.
OF_TYPES = ("cuffi/nets/stock/", "cuffi/nets/forks/", "cuffi/caffe_layers/layers/")
# Modules that no test imports and that have no mirror, and the tests of what they do.
TESTED_IN = {
    "tools/cuda/ptx/converting.py": "tools/cuda/ptx/test_translate.py",
    "tools/cuda/ptx/votes.py": "tools/cuda/ptx/test_translate.py",
    "cuffi/base/console.py": "tools/test_console.py",
    "cuffi/caffe_layers/make/verify_target.py": "caffe_layers/verify/test_verify.py",
    "cuffi/caffe_layers/port/calls.py": "caffe_layers/port/test_plan.py",
    "cuffi/caffe_layers/port/unsupported.py": "caffe_layers/port/test_refusals.py",
    "cuffi/caffe_layers/provides_fork_messages.py": "nets/pycaffe/proto/test_source.py",
    "cuffi/caffe_layers/verify/without_cases.py": "tools/cases/test_run_cases.py",
    "cuffi/installed.py": "test_setup.py",
    "cuffi/nets/net/blob_shapes.py": "nets/net/test_net.py",
    "cuffi/nets/net/choice.py": "nets/net/test_refusals.py",
    "cuffi/nets/net/parameter_groups.py": "nets/net/test_net.py",
    "cuffi/nets/net/report.py": "nets/net/test_refusals.py",
    "cuffi/nets/net/running.py": "nets/net/test_net.py",
    "cuffi/nets/python2/expressions.py": "nets/python2/test_statements.py",
    "cuffi/nets/python2/literals.py": "nets/python2/test_statements.py",
    "cuffi/nets/python2/methods.py": "nets/python2/test_statements.py",
    "cuffi/nets/python2/old_modules.py": "nets/python2/test_statements.py",
    "cuffi/nets/python2/old_pictures.py": "nets/python2/test_libraries.py",
    "cuffi/nets/python2/old_random.py": "nets/python2/test_statements.py",
    "cuffi/nets/python2/order.py": "nets/python2/test_statements.py",
    "cuffi/nets/python2/scopes.py": "nets/python2/test_statements.py",
    "cuffi/nets/python2/text.py": "nets/python2/test_statements.py",
    "cuffi/old_torch/blas.py": "old_torch/ffi/test_th_operations.py",
    "cuffi/old_torch/copies.py": "old_torch/test_cpp_extension.py",
    "cuffi/old_torch/ffi/torch_utils_ffi.py": "old_torch/ffi/test_front.py",
    "cuffi/old_torch/make/build_wrapper.py": "old_torch/make/test_wrapper.py",
    **{
        f"cuffi/proving/{room}.py": "proving/test_expressions.py"
        for room in (
            "calls",
            "constants",
            "declarations",
            "groups",
            "places",
            "questions",
            "statements",
            "thread",
            "values",
        )
    },
    "cuffi/runtime/conversion.py": "runtime/test_launcher.py",
    "cuffi/runtime/derivative.py": "runtime/test_operator.py",
    "cuffi/runtime/signature.py": "runtime/test_launcher_numbers.py",
    "cuffi/old_torch/on_processor.py": "old_torch/test_ext_front.py",
    "tools/cuda/brackets.py": "tools/cuda/test_tokens.py",
    "tools/make/ask_fork.py": "tools/make/test_forks.py",
    "tools/new_layer/build_inline.py": "loading/test_load_inline.py",
    **{
        f"tools/cuda/ptx/{room}.py": "include/ptx/test_answers.py"
        for room in (
            "arithmetic",
            "bits",
            "conversions",
            "copies",
            "loads",
            "matrices",
            "moves",
            "video",
            "warps",
        )
    },
    "tools/cuda/ptx/barriers.py": "include/ptx/test_mbarrier.py",
    "tools/cuda/ptx/writer.py": "tools/cuda/ptx/test_translate.py",
}


def is_tested(file) -> bool:
    """A module with a function: another one has nothing to run."""
    functions = (node for node in named_in(file) if isinstance(node, ast.FunctionDef))
    inside = not str(file.relative_to(ROOT)).startswith(OF_TYPES)
    return inside and file.stem not in ("__init__", "__main__") and any(functions)


def used_by_tests() -> set[str]:
    """The modules, and the names in them, that test files import."""
    names = set()
    for node in (node for file in sources("tests") for node in named_in(file)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def mirror_of(module: str) -> str:
    """cuffi/x/y.py: x/test_y.py. tools/x/y.py: tools/x/test_y.py."""
    *folders, name = (part.strip("_") for part in module.removesuffix(".py").split("/"))
    return "/".join([*(folders[1:] if folders[0] == "cuffi" else folders), f"test_{name}.py"])


def test_each_module_has_a_test():
    """A test imports it, or is the mirror of its path, or runs what it does (TESTED_IN)."""
    modules = [str(file.relative_to(ROOT)) for file in filter(is_tested, sources("cuffi", "tools"))]
    used = used_by_tests()
    lacking = [
        module
        for module in modules
        if module.removesuffix(".py").replace("/", ".") not in used
        and not (ROOT / "tests" / TESTED_IN.get(module, mirror_of(module))).exists()
    ]
    assert len(modules) > 200 and not lacking, "\n".join(lacking)


ROOT_FILES = {
    ".clang-format", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md",
    "MANIFEST.in", "build_ffi.py", "pyproject.toml", "requirements.txt", "setup.py", "test.py",
}  # fmt: skip


def test_no_stray_file_lies_at_the_root():
    """A file that a test or a tool leaves in the working directory is easily committed."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True).stdout
    if not listed:
        pytest.skip("no checkout of git's")
    stray = {f for f in listed.split("\0") if f and "/" not in f and (ROOT / f).exists()} - ROOT_FILES
    assert not stray, "a new file for the root is a line of ROOT_FILES"


# Modules of tools/ that hand on what a module of the package has, or read what one writes.
OF_THE_PACKAGE = {"backends", "folders", "races"}


def test_each_module_has_a_name_of_its_own():
    """In its room, so that tracebacks and an editor's tabs are clear."""
    seen: dict[tuple[str, str], list[str]] = {}
    for file in sources("cuffi", "tools"):
        name = str(file.relative_to(ROOT))
        if file.stem not in ("__init__", "__main__") and not name.startswith(OF_TYPES):
            seen.setdefault((not_none(room_of(name)), file.stem), []).append(name)
    alike = [names for (_, stem), names in seen.items() if len(names) > 1 and stem not in OF_THE_PACKAGE]
    assert len(seen) > 200 and not alike


# Words that name no thing and no deed. docs/architecture.md says what a site is.
EMPTY_WORDS = {"said", "asked", "found", "kept", "one", "own", "wanted", "parts", "items", "loose", "known"}


def test_functions_and_classes_are_named_by_a_verb_or_a_noun_of_the_field():
    names = [
        (node.name, file)
        for file in sources("cuffi", "layers", "tools")
        for node in named_in(file)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    assert len(names) > 2000
    assert not [f"{file}: {name}" for name, file in names if name.strip("_").lower() in EMPTY_WORDS]
