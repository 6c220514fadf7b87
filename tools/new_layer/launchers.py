"""Make launchers (launcher.py) from the signatures of kernels and from their launches.

launchers, left_out = make_launchers("foo", split(text, path))
print(launchers[0].declaration(), launchers[0].definition())
"""

from __future__ import annotations

import itertools
import keyword
import re

from ..cuda.analysis import Kernel
from ..cuda.certain import touched_elements
from ..cuda.source import Launch
from ..cuda.tokens import LOOP
from .caffe_file import Parts, tidy_type
from .launcher import Argument, Launcher, wrapped
from .naming import launcher_name, numbered, unique

# Of a kernel that has template parameters besides its dtype.
MOST_INSTANCES = 8

# By the type of a kernel's parameter: the C type of a number, and of what a pointer points to.
C_TYPES = {
    "bool": ("bool", "bool"),
    "float": ("float", "float"),
    "double": ("double", "double"),
    **dict.fromkeys(("int", "signed", "signed int", "int32_t"), ("int", "int32_t")),
    **dict.fromkeys(("unsigned", "unsigned int", "uint", "uint32_t"), ("uint32_t", "int32_t")),
    **dict.fromkeys(("long", "long int", "long long", "int64_t", "ptrdiff_t"), ("int64_t", "int64_t")),
    **dict.fromkeys(("unsigned long", "unsigned long long", "size_t", "uint64_t"), ("uint64_t", "int64_t")),
    **dict.fromkeys(("short", "int16_t"), ("int16_t", "int16_t")),
    **dict.fromkeys(("char", "signed char", "int8_t"), ("int8_t", "int8_t")),
    **dict.fromkeys(("unsigned char", "uint8_t", "uchar"), ("uint8_t", "uint8_t")),
}
# Types that are the same in C++. A pointer to another type needs a cast.
SAME = {
    "bool", "float", "double", "int", "int32_t", "int64_t", "int16_t", "int8_t", "uint8_t", "unsigned char",
}  # fmt: skip
# CUDA's vectors. For a pointer to them Python passes a tensor of their elements.
VECTORS = {
    f"{name}{size}": element
    for name, element in {
        "char": "char", "uchar": "uchar", "short": "short", "ushort": "short", "int": "int", "uint": "uint",
        "long": "long", "ulong": "unsigned long", "longlong": "long long", "ulonglong": "unsigned long long",
        "float": "float", "double": "double",
    }.items()
    for size in (1, 2, 3, 4)
}  # fmt: skip
# Types that a count may have.
WHOLE = {"int", "unsigned", "unsigned int", "long", "long long", "size_t", "int64_t"}
# Names in a launch's expression that mean the same in a launcher.
EVERYWHERE = {"CAFFE_GET_BLOCKS", "CAFFE_CUDA_NUM_THREADS", "dim3", "sizeof", "int", "float", "double"}
# Names that no parameter may have: the runtime fills in some, and the others are Python's keywords.
RESERVED = {"dtype", "stream", *keyword.kwlist}


class NoLauncher(Exception):
    """Why there can be no launcher for a kernel."""


def make_launchers(layer: str, parts: Parts) -> tuple[list[Launcher], list[tuple[str, str]]]:
    """A launcher for each kernel that can have one, and (kernel, why not) for the others."""
    launchers, left_out = [], list(parts.left_out)
    words = {token.text for token in parts.source.lexed.tokens}
    used: set[str] = set()
    for kernel, scope, template_parameters in parts.kernels:
        try:
            name = launcher_name(layer, kernel.name)
            while name in words:  # it would overload a function of the file
                name += "_launch"
            name = numbered(name, used)
            launcher = _Maker(parts, kernel, scope, template_parameters).launcher(name)
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


class _Maker:
    """Makes the launcher of one kernel."""

    def __init__(self, parts: Parts, kernel: Kernel, scope: str, template_parameters):
        self.parts, self.kernel, self.scope = parts, kernel, scope
        count = len(kernel.parameters)
        self.launches = [launch for launch in kernel.launches if len(launch.arguments) == count]
        self.template = [_template_parameter(tokens) for tokens in template_parameters]
        self.used_names = set(RESERVED)
        self.arguments: list[Argument] = []
        self.dispatch = False  # over dtype
        self.notes: list[str] = []
        self.prologue: list[str] = []

    def launcher(self, name: str) -> Launcher:
        if "std::" in self.scope or "::::" in self.scope:
            raise NoLauncher("is in a namespace that can't be named")
        types, choices = self._template_arguments()
        for parameter in self.kernel.parameters:
            self.arguments.append(self._argument(parameter, types))
        if not any(a.type.endswith("*") for a in self.arguments):
            raise NoLauncher("takes no tensor, so its device is unknown")
        self.dispatch = "Dtype" in types.values()
        if self.dispatch and not any(a.type.endswith("void *") for a in self.arguments):
            raise NoLauncher("has a dtype that none of its tensors has")
        instances = self._instances(types, choices)
        file = self.parts.source.path.rpartition("/")[2]
        self.notes.append(f"{self.kernel.name}, line {self.kernel.line} of {file}.")
        for launch in self.launches[:1]:
            where = f"{launch.function}, line {launch.line}" if launch.function else f"line {launch.line}"
            config = ", ".join(filter(None, (launch.grid, launch.block, launch.shmem)))
            self.notes += wrapped(f"As launched in {where}: <<<{config}>>>({', '.join(launch.arguments)})")
        grid, block, shared = self._geometry()
        return Launcher(
            name,
            self.kernel,
            self.scope + self.kernel.name,
            self.arguments,
            self.dispatch,
            instances,
            grid,
            block,
            shared,
            self.notes,
            self.prologue,
            self._extents(),
        )

    def _extents(self) -> dict[str, str]:
        """The number of elements of each tensor of which the kernel's loop touches every element."""
        count, touched = touched_elements(self.parts.source, self.kernel) or ("", [])
        size = " * ".join(f.name for f in self._factors(count))
        if not size:
            return {}
        return {a.name: size for a in self.arguments if a.kernel_name in touched}

    # ------------------------------------------------------------------------------- templates

    def _template_arguments(self) -> tuple[dict[str, str], dict[str, list[str]]]:
        """For each type parameter its type; for each other template parameter the values to compile for."""
        lists = [launch.template_arguments for launch in self.launches]
        types, choices = {}, {}
        for i, (kind, name, default) in enumerate(self.template):
            values = list(dict.fromkeys(arguments[i] for arguments in lists if i < len(arguments)))
            if kind in ("typename", "class"):
                concrete = [v for v in values if tidy_words(v) in C_TYPES]
                own = [v for v in values if re.match(r"\w+", v)[0] in self.parts.types]
                if own:
                    types[name] = own[0] if "<" not in own[0] else ""
                    if len(values) > 1 or not types[name]:
                        raise NoLauncher(f"has a template parameter {name} that stands for a class")
                    types[name] = self.scope + types[name]
                else:
                    types[name] = concrete[0] if concrete and len(values) == 1 else "Dtype"
            elif kind == "bool":
                choices[name] = ["true", "false"]
            else:
                values = values or ([default] if default else [])
                known = [v for v in values if re.fullmatch(r"-?\d+[uUlL]*", v) or v in self.parts.constants]
                if not known or kind not in C_TYPES:
                    raise NoLauncher(f"has a template parameter {kind} {name} whose values are unknown")
                choices[name] = [self.parts.constants.get(v, v) for v in known]
        return types, choices

    def _instances(self, types, choices) -> list[tuple[str, str]]:
        free = [name for name in choices if len(choices[name]) > 1]
        combinations = list(itertools.product(*choices.values()))
        if len(combinations) > MOST_INSTANCES:
            raise NoLauncher(f"has {len(combinations)} instances, too many to compile all of them")
        exported = {}
        for name in free:
            kind = "bool" if choices[name] == ["true", "false"] else "int"
            exported[name] = self._own(kind, name)
        instances = []
        for values in combinations:
            chosen = dict(zip(choices, values, strict=True))
            arguments = ", ".join(types.get(name) or chosen[name] for _, name, _ in self.template)
            tests = [
                exported[n] if chosen[n] == "true" else f"!{exported[n]}" if chosen[n] == "false"
                else f"{exported[n]} == {chosen[n]}"
                for n in free
            ]  # fmt: skip
            instances.append((" && ".join(tests), arguments))
        return instances

    # ------------------------------------------------------------------------------- arguments

    def _own(self, kind: str, name: str) -> str:
        """Add a C parameter of the launch, which the kernel does not get. Returns its name."""
        self.arguments.append(Argument(kind, unique(name, self.used_names)))
        self.used_names.add(self.arguments[-1].name)
        return self.arguments[-1].name

    def _argument(self, parameter, types) -> Argument:
        text = re.sub(r"\b(__restrict__|__restrict|restrict|volatile|typename|struct)\b", "", parameter.type)
        words, stars = re.findall(r"\w+|::|[<>&]", text), text.count("*") + text.count("[")
        if not parameter.type:
            raise NoLauncher("has a parameter without a name")
        is_const = "const" in text.split("*")[0].split()
        base = " ".join(w for w in words if w != "const")
        shown = tidy_type(parameter.type)
        kernel_base = types.get(base, base)
        if stars > 1 or re.search(r"[<>&:]|\d+\s*\]", text):
            raise NoLauncher(f"takes a {shown} {parameter.name}, which C can't give it")
        name = unique(parameter.name, self.used_names)
        self.used_names.add(name)
        const = "const " if is_const else ""
        if kernel_base == "Dtype":
            if stars:
                value = f"static_cast<{const}Dtype*>({name})"
                return Argument(f"{const}void *", name, value, parameter.name, "Dtype")
            return Argument("double", name, f"static_cast<Dtype>({name})", parameter.name, "Dtype")
        if kernel_base == "void" and stars:
            return Argument(f"{const}void *", name, name, parameter.name, "void")
        element = VECTORS.get(kernel_base) if stars else None
        element = element or tidy_words(kernel_base)
        if element not in C_TYPES:
            raise NoLauncher(f"takes a {shown} {parameter.name}, which C can't give it")
        number, pointed = C_TYPES[element]
        if not stars:
            return Argument(number, name, name, parameter.name, kernel_base)
        value = name if kernel_base in SAME else f"reinterpret_cast<{const}{kernel_base}*>({name})"
        return Argument(f"{const}{pointed} *", name, value, parameter.name, kernel_base)

    # -------------------------------------------------------------------------------- geometry

    def _geometry(self) -> tuple[str, str, str]:
        """Grid, block and shared memory of the launch. What only the caller knows becomes a parameter."""
        launch = self.launches[0] if self.launches else None
        grid, block = self._grid_and_block(launch)
        return grid, block, self._shared(launch)

    def _grid_and_block(self, launch: Launch | None) -> tuple[str, str]:
        kernel, bounds = self.kernel, self._loop_bounds()
        # A kernel that consists of a grid loop works with any grid.
        any_grid = kernel.has_loop and not kernel.uses_thread_identity and len(bounds) == 1
        if any_grid and (count := self._count(bounds.pop())):
            return f"CAFFE_GET_BLOCKS({count})", "CAFFE_CUDA_NUM_THREADS"
        found = {(self._translated(x.grid, x), self._translated(x.block, x)) for x in self.launches}
        if len(found) == 1 and None not in (only := found.pop()):
            return only
        three = launch is None or any(
            re.search(rf"\bdim3\s[^;]*\b{re.escape(text)}\b", self._around(launch)) or "dim3" in text
            for text in (launch.grid, launch.block)
        )
        why = "The file never launches it" if launch is None else "The host code worked out the launch"
        self.notes.append(f"{why}, so the caller passes grid and block.")
        parts = []
        for what in ("grid", "block"):
            if three:
                names = [self._own("int", f"{what}_{axis}") for axis in "xyz"]
                parts.append(f"dim3({', '.join(names)})")
            else:
                parts.append(self._own("int", what))
        return parts[0], parts[1]

    def _shared(self, launch: Launch | None) -> str:
        if launch is not None and not launch.shmem:
            return "0"
        if launch is not None and (text := self._translated(launch.shmem, launch)):
            return text
        low, high = self.kernel.body
        if launch is None and not re.search(r"extern\s+__shared__", self.parts.source.text[low:high]):
            return "0"
        return self._own("int", "shared_bytes")

    def _around(self, launch: Launch) -> str:
        function = self.parts.source.function_around(launch.start)
        return self.parts.source.text[function.body : launch.start] if function else ""

    def _loop_bounds(self) -> set[str]:
        """The ends of the kernel's own loops."""
        tokens, partner = self.parts.source.lexed.tokens, self.parts.source.lexed.partner
        low, high = self.kernel.body
        bounds = set()
        for i, token in enumerate(tokens):
            if not (low < token.start < high and LOOP.match(token.text)):
                continue
            inside = tokens[i + 2 : partner.get(i + 1, i + 1)]
            comma = next((j for j, t in enumerate(inside) if t.text == ","), len(inside))
            plain = token.text == "CUDA_KERNEL_LOOP"  # the ends of other loop macros are unknown
            bounds.add(" ".join(t.text for t in inside[comma + 1 :]) if plain else "")
        return bounds

    def _count(self, bound: str) -> str | None:
        """A count for CAFFE_GET_BLOCKS: a parameter or a product of parameters."""
        factors = self._factors(bound)
        if not factors:
            return None
        if len(factors) > 1:
            product = " * ".join([f"int64_t({factors[0].name})", *(f.name for f in factors[1:])])
            name = unique("count", self.used_names)
            self.used_names.add(name)
            self.prologue.append(f'  const int {name} = checked_int({product}, "{bound}");')
            return name
        return self._as_count(factors[0])

    def _factors(self, product: str) -> list[Argument]:
        """The whole numbers of a product `a * b` of the kernel's parameters; none for anything else."""
        factors = [self._parameter(word) for word in product.split(" * ")]
        return factors if all(f is not None and f.kernel_type in WHOLE for f in factors) else []

    def _as_count(self, argument: Argument) -> str:
        """A count as int64_t, as in all of the toolkit's C functions. It is checked if the kernel takes an int."""
        if argument.kernel_type == "int" and argument.type != "int64_t":
            argument.type = "int64_t"
            argument.value = f'checked_int({argument.name}, "{argument.name}")'
        return argument.name

    def _parameter(self, kernel_name: str) -> Argument | None:
        return next((a for a in self.arguments if a.kernel_name == kernel_name and a.value), None)

    def _translated(self, text: str, launch: Launch) -> str | None:
        """A launch's expression in C parameters; None if it needs variables of Caffe's."""
        by_text = {re.sub(r"\s", "", a): self.arguments_of_kernel[i] for i, a in enumerate(launch.arguments)}

        def number(expression: str) -> Argument | None:
            found = by_text.get(re.sub(r"\s", "", expression))
            return found if found is not None and not found.type.endswith("*") else None

        blocks = re.fullmatch(r"(?:caffe::)?CAFFE_GET_BLOCKS\s*\((.*)\)", text, re.DOTALL)
        if blocks and (argument := number(blocks[1])) is not None:
            return f"CAFFE_GET_BLOCKS({self._as_count(argument)})"
        if (argument := number(text)) is not None:
            return argument.name
        if re.search(r"\.|->|::|\[", text):
            return None
        result = text
        words = set(re.findall(r"\b[A-Za-z_]\w*(?!\s*')", text))
        for word in words:
            if word in EVERYWHERE or (word == "Dtype" and self.dispatch):
                continue
            if (argument := number(word)) is not None:
                result = re.sub(rf"\b{word}\b", argument.name, result)
            elif word in self.parts.constants:
                result = re.sub(rf"\b{word}\b", self.parts.constants[word], result)
            else:
                return None
        return result

    @property
    def arguments_of_kernel(self) -> list[Argument]:
        return [a for a in self.arguments if a.value]


def _template_parameter(tokens) -> tuple[str, str, str]:
    """(kind, name, default) of `typename T`, `bool flag = true`, `int N`."""
    texts = [t.text for t in tokens]
    stop = texts.index("=") if "=" in texts else len(texts)
    kind = " ".join(t for t in texts[: stop - 1] if t != "const")
    return kind, texts[stop - 1], "".join(texts[stop + 1 :])


def tidy_words(text: str) -> str:
    return " ".join(word for word in text.split() if word not in ("const", "typename"))
