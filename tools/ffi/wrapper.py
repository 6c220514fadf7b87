"""Write the Python module of an extension's C functions, in C++: src/th_call.h and a table.

python -m tools.ffi.wrapper job.json host _round_host build/_round_host.o --cxx "g++ -O1" --flags "-march=native" --info "host native"
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

from build_ffi import ROOT, compile_into, cpu_features

from ..files import read
from ..make.backends import edge
from ..refused import Refused
from .declarations import Function, functions_of
from .uses import Uses


def functions(job: dict) -> list[Function]:
    """The functions that the job's headers declare, each once."""
    found = {}
    for header in job["headers"]:
        for function in functions_of(header, shown(job, header)):
            found.setdefault(function.name, function)
    if not found:
        raise Refused(f"{', '.join(shown(job, h) for h in job['headers'])}: error: no function is declared")
    return list(found.values())


def shown(job: dict, path: str) -> str:
    """The user's path of a copied file."""
    return path.replace(job["copies"], job["above"], 1)


def source_of(job: dict, module: str) -> str:
    found = functions(job)
    uses = Uses(
        {
            path: read(path)
            for path in [*job["sources"], *(k["source"] for k in job["kernels"]), *job["local"]]
        }
    )
    declared, runs, rows, tables = [], [], [], []
    for function in found:
        linkage = "" if uses.is_cpp(function.name) else 'extern "C" '
        declared.append(f"{linkage}{_typed(function)};")
        runs.append(_run(function))
        rows.append(_row(function, uses))
        row = f"{function.name}_parameters, {len(function.parameters)}, th::{function.returns.kind}"
        tables.append(f'  {{"{function.name}", {row}, {function.name}_run}},')
    return "\n".join([
        '#include "th_call.h"', "#include <THC/THC.h>" if job["with_cuda"] else "", *declared, *runs, *rows,
        "static const th::Function all[] = {", *tables, "};",
        f'extern "C" __attribute__((visibility("default"))) PyObject* PyInit_{module}(void) {{',
        f'  return th::make_module("{module}", all, {len(found)});', "}", "",
    ])  # fmt: skip


def _typed(function: Function) -> str:
    return f"{function.returns.type} {function.name}({', '.join(p.type for p in function.parameters)})"


def _run(function: Function) -> str:
    """A function that calls this one with words."""
    member = {
        "kTensor": "tensor",
        "kInteger": "integer",
        "kReal": "real",
        "kText": "address",
        "kMemory": "address",
    }
    given = ", ".join(
        f"words[{i}].tensor" if p.kind == "kTensor" else f"({p.type})words[{i}].{member[p.kind]}"
        for i, p in enumerate(function.parameters)
    )
    kind = function.returns.kind
    stored = "" if kind == "kNothing" else f"result->{member[kind]} = "
    body = f"{stored}{function.name}({given});"
    return f"static void {function.name}_run(const th::Word* words, th::Word* result) {{ {body} }}"


def _row(function: Function, uses: Uses) -> str:
    """The table of a function's parameters. One without a name in the header has that of the definition."""
    rows = []
    for i, p in enumerate(function.parameters):
        name = p.name or uses.name(function.name, i) or f"argument{i + 1}"
        layout = uses.any_layout(function.name, i)
        writes = p.kind == "kTensor" and uses.writes(function.name, uses.name(function.name, i))
        values = [f'"{name}"', f"th::{p.kind}", f'"{p.shown}"', p.code, p.bits, p.on_gpu, layout, writes]
        values += ["INT64_MIN" if p.least == -(2**63) else f"{p.least}LL", f"{p.most}LL"]
        words = (str(v).lower() if isinstance(v, bool) else str(v) for v in values)
        rows.append(f"  {{{', '.join(words)}}},")
    none = '  {"", th::kNothing, "", 0, 0, false, false, false, 0, 0},'
    return "\n".join(
        [f"static const th::Parameter {function.name}_parameters[] = {{", *(rows or [none]), "};"]
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job", type=Path, help="what layers/_ffi/extension.py wrote")
    parser.add_argument("module", help="the module's name")
    parser.add_argument("output", type=Path, help="the object to write")
    for option in ("cxx", "flags", "info"):
        parser.add_argument(f"--{option}", default="", help="as build_ffi.py has it")
    arguments = parser.parse_args()
    job, cxx, output = (
        json.loads(arguments.job.read_text()),
        shlex.split(arguments.cxx),
        arguments.output.resolve(),
    )
    try:
        features = " ".join(f'X("{f}")' for f in cpu_features(cxx, shlex.split(arguments.flags)))
        head = (
            f'#define CAFFE_EDGE "{edge.digest(ROOT, edge.FFI)}"\n#define CAFFE_CPU_FEATURES(X) {features}\n'
        )
        head += f"#define CAFFE_BUILD_INFO {json.dumps(arguments.info)}\n"
        generated = output.with_suffix(".cpp")
        generated.write_text(head + source_of(job, arguments.module))
        compile_into(output, [*cxx, "-std=c++17", "-w", str(generated)])
    except Refused as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError:
        return 1  # the compiler has said why
    return 0


if __name__ == "__main__":
    sys.exit(main())
