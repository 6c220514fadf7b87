"""The Python module of an extension's C functions, in C++: cuffi/old_torch/src/th_call.h and a table."""

from __future__ import annotations

from tools.files import read
from tools.refused import Refused

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
