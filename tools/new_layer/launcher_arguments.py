"""The parameters of a launcher in C, and what its kernel gets for each.

arguments = Arguments(file, kernel, template)
arguments.add_all()                     those of the kernel's own parameters
arguments.add_parameter("int", "grid")  one that only the launch needs
"""

from __future__ import annotations

import keyword
import re

from ..cuda.analysis import Kernel
from ..cuda.outline import Parameter
from .c_types import (
    C_TYPES,
    COMPLEX,
    DTYPES,
    HALVES,
    MADE_OF,
    SAME,
    STATE,
    STATE_BYTES,
    VECTORS,
    alignment_of,
    tidy_words,
)
from .declared import tidy_type
from .instances import Template
from .kernel_file import KernelFile
from .kernel_launcher import Argument, NoLauncher
from .naming import unique
from .structs import layout_of

# Names that no parameter may have: the runtime fills in some, and the others are Python's keywords.
RESERVED = {"dtype", "stream", *keyword.kwlist}
PAIRS = ("std :: pair", "thrust :: pair")
# Words of a parameter's type that a launcher does without.
UNTOLD = re.compile(
    r"\b(__restrict__|__restrict|restrict|volatile|typename|struct|enum|__grid_constant__)\b"
    r"|\bstd\s*::\s*(?=(u?int\d+|size|ptrdiff)_t\b)"
)


class Arguments:
    """The C parameters of one kernel's launcher.

    Attributes:
        all: in their order.
        notes: lines of the launcher's comment.
        filled: its statements that fill structs.
        indices: by type of indices, the tensors that have it.
    """

    def __init__(self, file: KernelFile, kernel: Kernel, template: Template):
        self.file, self.kernel, self.template = file, kernel, template
        # A macro of the file would replace a launcher's parameter, also if it stands below the kernel.
        self.used_names = RESERVED | {macro.tokens[0].text for macro in file.source.macros}
        self.all: list[Argument] = []
        self.notes: list[str] = []
        self.filled: list[str] = []
        self.indices: dict[str, list[str]] = {alias: [] for alias in template.indices}

    def add_all(self) -> None:
        """Add what the kernel's parameters need. NoLauncher if C can't give one, or no tensor tells the dtype."""
        for parameter in self.kernel.parameters:
            self.all.append(self._argument(parameter, self.template.types))
        if not any(a.type.endswith("*") for a in self.all):
            like = self.add_parameter("const float *", "like").name
            self.notes.append(f"{like}: a tensor on the device that runs it. The kernel takes none.")
        floating = [a for a in self.all if a.kernel_type not in self.indices]
        if self.template.dispatch and not any(a.type.endswith("void *") for a in floating):
            raise NoLauncher("has a dtype that none of its tensors has")

    def add_parameter(self, kind: str, name: str) -> Argument:
        """Add a C parameter of the launch, which the kernel does not get."""
        self.all.append(Argument(kind, self.named(name)))
        return self.all[-1]

    def named(self, name: str) -> str:
        """The name, changed if it is used already."""
        name = unique(name, self.used_names)
        self.used_names.add(name)
        return name

    def layout(self, kind: str) -> tuple[int, int] | None:
        """(bytes, alignment) of a struct; None if they are unknown."""
        if re.search(r"__align__|alignas|#\s*pragma\s+pack|__attribute__", self.file.text):
            return None
        alias, structs = self.file.aliases, {name: fields for name, (_, fields) in self.file.structs.items()}
        plain = {
            name: fields and [field._replace(type=alias.get(field.type, field.type)) for field in fields]
            for name, fields in structs.items()
        }
        return layout_of(plain.get(kind), plain)

    def _argument(self, parameter: Parameter, types: dict[str, str]) -> Argument:
        """The last C parameter for one of the kernel's; those before it are added here."""
        text = UNTOLD.sub("", parameter.type)
        words, stars = re.findall(r"\w+|::|[<>&,]", text), text.count("*") + text.count("[")
        if not parameter.type:
            raise NoLauncher("has a parameter without a name")
        const = "const " if "const" in text.split("*")[0].split() else ""
        base = " ".join(w for w in words if w != "const")
        kind, bare = types.get(base, base), base.split(" ")[-1]
        if not stars and "&" not in words and bare in self.file.structs and "<" not in words:
            return self._struct(parameter.name, bare)
        if stars == 1 and bare in self.file.rows and not {"&", "<"} & set(words):
            return self._rows(parameter.name, bare, const)
        if stars == 1 and (pair := self._pair(base)):
            return self._rows(parameter.name, pair, const)
        refused = NoLauncher(f"takes a {tidy_type(parameter.type)} {parameter.name}, which C can't give it")
        if stars > 1 or re.search(r"[<>&:]|\d+\s*\]", text):
            raise refused
        if not stars and kind in MADE_OF and kind not in self.file.types:
            return self._vector(parameter.name, kind)
        name = self.named(parameter.name)
        of_launcher = self._of_dispatch(parameter.name, name, kind, const if stars else None)
        found = of_launcher or self._of_c_type(parameter.name, name, kind, const if stars else None)
        if found is None:
            raise refused
        return found

    def _of_dispatch(self, kernel_name: str, name: str, kind: str, const: str | None) -> Argument | None:
        """A tensor or a number whose type the launcher chooses. `const` is None for a number."""
        if kind == "Dtype" and const is not None:
            value = f"static_cast<{const}Dtype*>({name})"
            dtypes = self.template.dtypes or ("float", "double")
            one_of = ", ".join(dict.fromkeys(DTYPES[one] for one in dtypes))
            return Argument(f"{const}void *", name, value, kernel_name, "Dtype", element=f"one of {one_of}")
        if kind == "Dtype":
            if self._is_called(kernel_name):
                raise NoLauncher(f"takes a function, {kernel_name}")
            whole = set(self.template.dtypes) - {"float", "double", *HALVES}
            value = f'checked_number<Dtype>({name}, "{name}")' if whole else f"static_cast<Dtype>({name})"
            return Argument("double", name, value, kernel_name, "Dtype")
        if kind in self.indices and const is not None:
            self.indices[kind].append(name)
            return Argument(f"{const}void *", name, f"static_cast<{const}{kind}*>({name})", kernel_name, kind)
        if kind in self.indices:
            return Argument("int64_t", name, f'checked_as<{kind}>({name}, "{name}")', kernel_name, "int64_t")
        return None

    def _of_c_type(self, kernel_name: str, name: str, kind: str, const: str | None) -> Argument | None:
        """A tensor or a number of one type; None if C has nothing for it. `const` is None for a number."""
        if kind == "void" and const is not None:
            return Argument(f"{const}void *", name, name, kernel_name, "void")
        if const is not None and STATE.match(kind) and kind not in self.file.types:
            self.notes.append(f"{name}: {STATE_BYTES} bytes for each {kind}.")
            value = f"reinterpret_cast<{const}{kind}*>({name})"
            return Argument(f"{const}uint8_t *", name, value, kernel_name, kind, 16)
        if kind in HALVES.keys() | COMPLEX.keys() and kind not in self.file.types:
            return self._of_two_parts(kernel_name, name, kind, const)
        if const is None and kind in self.file.enums:
            qualified = self.template.scope + kind
            return Argument("int", name, f"static_cast<{qualified}>({name})", kernel_name, qualified)
        element = (VECTORS.get(kind) if const is not None else None) or tidy_words(kind)
        if element not in C_TYPES:
            return None
        number, pointed = C_TYPES[element]
        if const is None:
            return Argument(number, name, name, kernel_name, kind)
        value = name if kind in SAME else f"reinterpret_cast<{const}{kind}*>({name})"
        return Argument(f"{const}{pointed} *", name, value, kernel_name, kind, alignment_of(kind))

    def _of_two_parts(self, kernel_name: str, name: str, kind: str, const: str | None) -> Argument:
        """A pointer to halves or to complex numbers, or one half (`const` is None)."""
        element, count, pointed = (HALVES | COMPLEX)[kind]
        if const is not None:
            value = f"reinterpret_cast<{const}{kind}*>({name})"
            alignment = 1 if kind in COMPLEX else 2 * count
            return Argument(f"{const}{pointed} *", name, value, kernel_name, kind, alignment, element)
        return Argument("float", name, f"{kind}({name})", kernel_name, kind)

    def _is_called(self, name: str) -> bool:
        low, high = self.kernel.body
        return re.search(rf"\b{name}\s*\(", self.file.source.text[low:high]) is not None

    def _vector(self, name: str, kind: str) -> Argument:
        """A number for each component of a vector or of a complex number. The last one has it as its value."""
        number, count, maker = MADE_OF[kind]
        parts = [Argument(number, self.named(f"{name}_{axis}")) for axis in "xyzw"[:count]]
        self.all += parts[:-1]
        value = f"{maker}({', '.join(part.name for part in parts)})"
        return Argument(number, parts[-1].name, value, name, kind)

    # --------------------------------------------------------------------------------- structs

    def _pair(self, base: str) -> str | None:
        """The type as C++ writes it, if it is a pair of two numbers. A tensor has their bytes."""
        head, _, inside = base.removesuffix(" >").partition(" < ")
        of = inside.split(" , ")
        is_plain = len(of) == 2 and all(tidy_words(one) in C_TYPES for one in of)
        return f"{head.replace(' ', '')}<{', '.join(of)}>" if is_plain and head in PAIRS else None

    def _rows(self, kernel_name: str, kind: str, const: str) -> Argument:
        """A pointer to structs: a tensor has their bytes."""
        qualified = self.file.rows.get(kind, kind)
        name, (size, alignment) = self.named(kernel_name), self.layout(kind) or (0, 16)
        self.notes.append(f"{name}: sizeof({kind}){f' = {size}' * bool(size)} bytes for each {kind}.")
        value = f"reinterpret_cast<{const}{qualified}*>({name})"
        return Argument(f"{const}uint8_t *", name, value, kernel_name, kind, alignment)

    def _struct(self, name: str, kind: str) -> Argument:
        """An argument for each field of a struct, `p_n` for `p.n`. The last one has the struct as its value."""
        qualified, _ = self.file.structs[kind]
        variable, first = self.named(name), len(self.all)
        at = len(self.filled)
        self.filled.append(f"  {qualified} {variable}{{}};")
        self._fill(variable, name, kind, (kind,))
        if self._is_constructed(
            kind
        ):  # its fields are what the caller gives, whatever a constructor would make
            self.filled[at] = (
                f"  cuffi::Filled<{qualified}> {variable}_made;\n  {qualified}& {variable} = {variable}_made.value;"
            )
        if len(self.all) == first:
            raise NoLauncher(f"takes a {kind} {name}, which is empty")
        for argument in self.all[first:]:
            argument.value = argument.kernel_name = ""
        last = self.all.pop()
        last.value, last.kernel_name, last.kernel_type = variable, name, kind
        return last

    def _is_constructed(self, kind: str) -> bool:
        """Has a struct, or one in it, a constructor?"""
        fields = self.file.structs[kind][1] or ()
        inner = {f.type for f in fields if f.type in self.file.structs and not f.is_pointer}
        return kind in self.file.constructed or any(map(self._is_constructed, inner))

    def _fill(self, variable: str, name: str, kind: str, within: tuple[str, ...]) -> None:
        """Add the arguments for a struct's fields, and the statements that set them. A field may be a struct."""
        fields = self.file.structs[kind][1]
        if fields is None:
            raise NoLauncher(f"takes a {within[0]} {name}, with a part that C can't give it")
        for field in fields:
            kernel_type = self.file.aliases.get(field.type, field.type) + "*" * field.is_pointer
            kernel_type = f"const {kernel_type}" if field.is_const else kernel_type
            for place in range(max(1, field.count)):
                at = f"{variable}.{field.name}" + (f"[{place}]" if field.count else "")
                own = f"{name}_{field.name}" + (f"_{place}" if field.count else "")
                if field.type in self.file.structs and not field.is_pointer:
                    if field.type in within:
                        raise NoLauncher(f"takes a {within[0]} {name}, with a part that C can't give it")
                    self._fill(at, own, field.type, (*within, field.type))
                    continue
                argument = self._argument(Parameter(kernel_type, own), {})
                self.filled.append(f"  {at} = {argument.value};")
                self.all.append(argument)
