"""Make launchers (kernel_launcher.py) from the signatures of kernels and from their launches.

launchers, left_out = make_launchers("foo", kernels_of(text, path))
print(launchers[0].declaration(), launchers[0].definition())
"""

from __future__ import annotations

import itertools
import keyword
import math
import re

from ..cuda.analysis import Kernel
from ..cuda.certain import touched_elements
from ..cuda.launches import Launch
from ..cuda.outline import Parameter
from .geometry import Geometry
from .host_code import HostCode, HostOnly, Translation
from .index_types import WHOLE, given_types, index_types
from .kernel_file import KernelFile, tidy_type
from .kernel_launcher import Argument, KernelLauncher, wrapped
from .naming import launcher_name, numbered, unique
from .pointed import pointed_types
from .structs import layout_of
from .symbols import Symbol

# The most instances of a kernel that has template parameters besides its dtype.
MOST_INSTANCES = 12

# The C type of a number, and of a pointer's target, by the type of a kernel's parameter.
C_TYPES = {
    "bool": ("bool", "bool"),
    "float": ("float", "float"),
    "double": ("double", "double"),
    **dict.fromkeys(("int", "signed", "signed int", "int32_t"), ("int", "int32_t")),
    **dict.fromkeys(("unsigned", "unsigned int", "uint", "uint32_t"), ("uint32_t", "uint32_t")),
    **dict.fromkeys(("long", "long int", "long long", "int64_t", "ptrdiff_t"), ("int64_t", "int64_t")),
    **dict.fromkeys(("unsigned long", "unsigned long long", "size_t", "uint64_t"), ("uint64_t", "uint64_t")),
    **dict.fromkeys(("short", "int16_t"), ("int16_t", "int16_t")),
    **dict.fromkeys(("unsigned short", "ushort", "uint16_t"), ("uint16_t", "uint16_t")),
    **dict.fromkeys(("char", "signed char", "int8_t"), ("int8_t", "int8_t")),
    **dict.fromkeys(("unsigned char", "uint8_t", "uchar"), ("uint8_t", "uint8_t")),
}
# Types of elements that C does not have: a tensor's dtype, its elements in one of them, and what C's pointer points to.
# Launchers of templates are not compiled for half types.
COMPLEX = {
    **dict.fromkeys(("cuComplex", "cuFloatComplex", "cufftComplex"), ("complex64", 1, "float")),
    **dict.fromkeys(("cuDoubleComplex", "cufftDoubleComplex"), ("complex128", 1, "double")),
}
HALVES = {
    **dict.fromkeys(("__half", "half"), ("float16", 1, "uint16_t")),
    **dict.fromkeys(("__half2", "half2"), ("float16", 2, "uint16_t")),
    **dict.fromkeys(("__nv_bfloat16", "nv_bfloat16"), ("bfloat16", 1, "uint16_t")),
    **dict.fromkeys(("__nv_bfloat162", "nv_bfloat162"), ("bfloat16", 2, "uint16_t")),
}
# The states of include/curand_kernel.h. A tensor has their bytes.
STATE = re.compile(r"curandState\w*\Z")
STATE_BYTES = 64
# Torch's names of half types, which are not here.
OF_TORCH = re.compile(r"(at|c10)::(Half|BFloat16)\Z")
# The dtypes of the types that a launcher may choose from, in the order of its cases.
DTYPES = {
    "float": "float32",
    "double": "float64",
    **{name: dtype for name, (dtype, count, _) in HALVES.items() if count == 1},
    **{name: pointed.removesuffix("_t") for name, (_, pointed) in C_TYPES.items() if pointed[-2:] == "_t"},
    "bool": "bool",
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
# What is given by value in parts: the C type of a part, the number of parts, and the function that joins them.
MADE_OF = {
    **{name: (C_TYPES[element][0], int(name[-1]), f"make_{name}") for name, element in VECTORS.items()},
    **{
        name: ("double" if "Double" in name else "float", 2, f"make_{name.replace('cufft', 'cu')}")
        for name in COMPLEX
    },
    **dict.fromkeys(("__half2", "half2"), ("float", 2, "__floats2half2_rn")),
    **dict.fromkeys(("__nv_bfloat162", "nv_bfloat162"), ("float", 2, "__floats2bfloat162_rn")),
}
# Names that no parameter may have: the runtime fills in some, and the others are Python's keywords.
RESERVED = {"dtype", "stream", *keyword.kwlist}


class NoLauncher(Exception):
    """Why there can be no launcher for a kernel."""


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
            launcher = _Maker(file, kernel, scope, template_parameters).launcher(name)
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

    def __init__(self, file: KernelFile, kernel: Kernel, scope: str, template_parameters):
        self.file, self.kernel, self.scope = file, kernel, scope
        count = len(kernel.parameters)
        alike = [k for k, *_ in file.kernels if (k.name, len(k.parameters)) == (kernel.name, count)]
        # Of two kernels with one name, the text does not show which one a launch means.
        launches = kernel.launches if len(alike) == 1 else ()
        self.launches = [launch for launch in launches if len(launch.arguments) == count]
        self.template = [
            ("typename" if self._is_concept(kind) else kind.removeprefix("std :: "), name, default)
            for kind, name, default in map(_template_parameter, template_parameters)
        ]
        self.mentions = self._mentions()
        # A macro of the file would replace a launcher's parameter, also if it stands below the kernel.
        self.used_names = RESERVED | {macro.tokens[0].text for macro in file.source.macros}
        self.arguments: list[Argument] = []
        self.dispatch = False  # over dtype
        self.dtypes: list[str] = []  # the types of that, if they are not float and double
        self.serves_more = False  # is one of float and double a type that the file does not launch?
        self.types: dict[str, str] = {}  # of its template's type parameters
        self.indices: dict[str, list[str]] = {}  # by type of indices: the tensors that have it
        self.choices: dict[str, list[str]] = {}  # the values of its template's other parameters
        self.chosen: dict[str, str] = {}  # and which of them a call means, in C
        self.notes: list[str] = []
        self._filled: list[str] = []  # statements that fill structs
        self._geometry = Geometry(self)

    def launcher(self, name: str) -> KernelLauncher:
        if "std::" in self.scope or "::::" in self.scope:
            raise NoLauncher("is in a namespace that can't be named")
        types, choices = self._template_arguments()
        self.types = types
        for parameter in self.kernel.parameters:
            self.arguments.append(self._argument(parameter, types))
        if not any(a.type.endswith("*") for a in self.arguments):
            like = self.add_parameter("const float *", "like").name
            self.notes.append(f"{like}: a tensor on the device that runs it. The kernel takes none.")
        self.dispatch = "Dtype" in types.values()
        floating = [a for a in self.arguments if a.kernel_type not in self.indices]
        if self.dispatch and not any(a.type.endswith("void *") for a in floating):
            raise NoLauncher("has a dtype that none of its tensors has")
        instances = self._instances(types, choices)
        filled = self._symbols()
        name_of_file = self.file.source.path.rpartition("/")[2]
        self.notes.append(f"{self.kernel.name}, line {self.kernel.line} of {name_of_file}.")
        for launch in self.launches[:1]:
            where = f"{launch.function}, line {launch.line}" if launch.function else f"line {launch.line}"
            config = ", ".join(filter(None, (launch.grid, launch.block, launch.shmem)))
            self.notes += wrapped(f"As launched in {where}: <<<{config}>>>({', '.join(launch.arguments)})")
        self.notes += [
            f"{a}: the values of {s.name}, which the kernel reads." for a, (s, n) in filled.items() if n
        ]
        grid, block, shared = self._geometry.of_launch()
        return KernelLauncher(
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
            [
                *self._filled,
                *(_upload(name, symbol, count) for name, (symbol, count) in filled.items()),
                *self._geometry.prologue,
            ],
            {**self._extents(), **{name: str(count) for name, (_, count) in filled.items() if count}},
            [symbol.name for symbol, _ in filled.values()],
            self.indices,
            {f"CAFFE_{DTYPES[kind].upper()}": kind for kind in self.dtypes},
            self.kernel.name in self.file.cooperative,
            self.launches[0].line if self.launches else self.kernel.line,
            self._geometry.asked,
        )

    def _symbols(self) -> dict[str, tuple[Symbol, int]]:
        """Add a parameter for each variable that the host code fills. Returns it with its number of elements."""
        found = {}
        for symbol in self.file.symbols.get(self.kernel.name, ()):
            if symbol.type.endswith("*") and tidy_words(symbol.type[:-1]) in C_TYPES and symbol.sizes == ():
                const = "const " * ("const" in symbol.type.split())
                pointed = f"{const}{C_TYPES[tidy_words(symbol.type[:-1])][1]} *"
                found[self.add_parameter(pointed, symbol.name).name] = symbol, 0
                continue
            element = tidy_words(VECTORS.get(symbol.type, symbol.type))
            bare = symbol.type.split()[-1]
            if bare in self.file.rows and symbol.sizes is not None and (layout := self._layout(bare)):
                name = self.add_parameter("const uint8_t *", f"{symbol.name}_values").name
                found[name] = symbol, math.prod(symbol.sizes) * layout[0]
                continue
            if element not in C_TYPES:
                raise NoLauncher(
                    f"reads {symbol.name}, a {symbol.type}, which the host code fills and C can't give it"
                )
            if symbol.sizes is None:
                raise NoLauncher(f"reads {symbol.name}, which the host code fills, and whose size is unknown")
            name = self.add_parameter(f"const {C_TYPES[element][1]} *", f"{symbol.name}_values").name
            count = math.prod(symbol.sizes) * (int(symbol.type[-1]) if symbol.type in VECTORS else 1)
            found[name] = symbol, count
        return found

    def _extents(self) -> dict[str, str]:
        """The number of elements of each tensor whose every element the kernel's loop uses."""
        count, touched = touched_elements(self.file.source, self.kernel) or ("", [])
        size = " * ".join(f.name for f in self._geometry.factors(count))
        if not size:
            return {}
        return {a.name: size for a in self.arguments if a.kernel_name in touched}

    # ------------------------------------------------------------------------------- templates

    def _given(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """For each template parameter the arguments of the launches, and what their tensors' declarations show."""
        names = [name for _, name, _ in self.template]
        given: dict[str, list[str]] = {name: [] for name in names}
        deduced: dict[str, list[str]] = {name: [] for name in names}
        for launch in self.launches:
            shown = given_types(launch, self.kernel, names)
            for name, text in shown.items():
                given[name] += self._values(launch, self.file.aliases.get(text, text))
            for name in names:
                deduced[name] += (
                    pointed_types(self.file.source, launch, self.kernel, name) if name not in shown else ()
                )
        for launch in self.mentions:
            for name, text in zip(names, launch.template_arguments, strict=False):
                given[name] += self._values(launch, self.file.aliases.get(text, text))
        for texts in self._instantiated():
            for name, text in zip(names, texts, strict=False):
                given[name].append(text)
        for found in (given, deduced):
            found |= {
                name: [*dict.fromkeys(v for v in found[name] if not OF_TORCH.match(v))] for name in names
            }
        for name, found in deduced.items():
            plain = [tidy_words(self.file.aliases.get(value, value)) for value in found]
            known = [value for value in plain if value in DTYPES]
            # A kernel that is launched for one of the two serves both.
            both = ["float", "double"] if {"float", "double"} & set(known) else []
            both = [] if self.file.launched_only else both
            self.serves_more = self.serves_more or bool(both and not set(both) <= set(known))
            deduced[name] = [*dict.fromkeys(both + known)]
        return given, deduced

    def _is_concept(self, kind: str) -> bool:
        """Is a template parameter of this kind a type that a concept constrains? `Real T`, `std::integral T`."""
        name = re.sub(r"\s*<.*", "", kind)
        own = re.search(rf"\bconcept\s+{name.rpartition(' ')[2]}\s*=", self.file.text)
        return bool(own) or (name.startswith("std :: ") and not re.search(r"(_t|byte)\Z", name))

    def _instantiated(self) -> list[list[str]]:
        """The template arguments that the file's explicit instantiations and the caller name."""
        return instantiated(self.file.source.text, self.kernel.name) + self.file.instances.get(
            self.kernel.name, []
        )

    def _mentions(self) -> list[Launch]:
        """`auto k = kernel<float, N>;`, for cudaLaunchKernel and the like: a launch of which only that is known."""
        source, found = self.file.source, []
        for at in re.finditer(rf"\b{self.kernel.name}\s*<([^<>;(){{}}]*)>\s*[;,)]", source.text):
            around = source.function_around(at.start()) if self.template else None
            if around and not around.is_device_only:
                arguments = tuple(text.strip() for text in at[1].split(","))
                found.append(
                    Launch("", 0, "", "", "", "", (), arguments, around.name, at.start(), (0, 0), (0, 0), 0)
                )
        return found

    def _values(self, launch: Launch, text: str) -> list[str]:
        """The values of a launch's template argument: several, if a template function launches, and is called so."""
        source = self.file.source
        function = next((f for f in source.functions if f.body <= launch.start < f.end), None)
        head = source.text[function.head : function.at] if function else ""
        own = re.match(r"template\s*<([^<>]*)>", head)
        names = [p.split("=")[0].split()[-1] for p in own[1].split(",") if p.strip()] if own else []
        if text not in names or function is None:
            return [self._constant(launch, text)]
        place, calls = names.index(text), re.findall(rf"\b{function.name}\s*<([^<>()]*)>\s*\(", source.text)
        passed = [[a.strip() for a in call.split(",")] for call in calls]
        return [call[place] for call in passed if len(call) > place] or [text]

    def _constant(self, launch: Launch, text: str) -> str:
        """A template argument; for a constant of the function that launches, what that is made of."""
        if not text.isidentifier() or text in self.file.constants:
            return text
        try:
            code = HostCode(self.file.source, launch, self.file.text, any(launch is n for n in self.mentions))
            value = Translation(code, {}, self.file.constants, {}).of(text)
        except HostOnly:
            return text
        return inner[1] if (inner := re.fullmatch(r"\w+\((\w+)\)", value)) else text

    def _template_arguments(self) -> tuple[dict[str, str], dict[str, list[str]]]:
        """The type of each type parameter, and the values of each other template parameter to compile for."""
        types, choices, given, deduced = {}, {}, *self._given()
        names = [name for kind, name, _ in self.template if kind in ("typename", "class")]
        whole = index_types(self.file.source, self.kernel, names, given)
        for kind, name, default in self.template:
            values = given[name]
            if kind in ("typename", "class"):
                values += [v for v in deduced[name] if v not in values] if name not in whole else []
                if own := [
                    v for v in values if re.split(r"\W", v, maxsplit=1)[0] in self.file.types - HALVES.keys()
                ]:
                    types[name] = own[0] if "<" not in own[0] else ""
                    if len(values) > 1 or not types[name]:
                        raise NoLauncher(f"has a template parameter {name} that stands for a class")
                    types[name] = self.scope + types[name]
                elif any(v in VECTORS.keys() | HALVES.keys() - DTYPES.keys() for v in values):
                    types[name] = self._following(name, types)
                else:
                    types[name] = self._type(name, values, name in whole)
            elif kind == "bool":
                choices[name] = ["true", "false"]
            else:
                values = values or ([default] if default else [])
                known = [*dict.fromkeys(filter(None, map(self._number, values)))]
                if kind in self.file.enums:
                    choices[name] = self.file.enums[kind]
                    continue
                if not known or kind not in C_TYPES:
                    raise NoLauncher(
                        f"has a template parameter {kind} {name} whose values are unknown; give them: "
                        f'load_inline(..., instances={{"{self.kernel.name}": ["{self._example()}"]}})'
                    )
                choices[name] = known
        return types, choices

    def _number(self, text: str) -> str:
        """A template argument of numbers and the file's constants, `2 * kTile`, with their qualified names; or ""."""
        constants = self.file.constants
        if text in constants or re.fullmatch(r"-?\d+[uUlL]*", text):
            return constants.get(text, text)
        words = re.findall(r"\b[A-Za-z_]\w*", text)
        if not re.fullmatch(r"[\w\s+*/%()-]+", text) or not constants.keys() >= set(words):
            return ""
        return "(" + re.sub(r"\b[A-Za-z_]\w*", lambda word: constants[word[0]], text) + ")"

    def _following(self, name: str, types: dict[str, str]) -> str:
        """The type of a parameter that is a vector for each dtype: `__half2` in `<__half, __half2>`."""
        names = [name for _, name, _ in self.template]
        lead = next((own for own, kind in types.items() if kind == "Dtype"), "")
        alias = self.file.aliases
        shown = [(x, x.template_arguments) for x in (*self.launches, *self.mentions)]
        pairs = set()
        for launch, given in [*shown, *((None, given) for given in self._instantiated())]:
            one = {own: alias.get(text, text) for own, text in zip(names, given, strict=False)}
            if one.keys() >= {lead, name}:
                several = [self._values(launch, one[own]) if launch else [one[own]] for own in (lead, name)]
                pairs |= {*zip(*several, strict=False)}
        followed, by_lead = {value for _, value in pairs}, dict(pairs)
        if not followed <= VECTORS.keys() | HALVES.keys():
            raise NoLauncher(f"has a template parameter {name} whose type is unknown")
        if len(followed) == 1:
            return followed.pop()
        if len(by_lead) != len(pairs) or by_lead.keys() != set(self.dtypes or ("float", "double")):
            raise NoLauncher(f"has a template parameter {name} of several types")
        *earlier, last = sorted(by_lead.items())
        return (
            "".join(
                f"std::conditional_t<std::is_same<Dtype, {kind}>::value, {value}, " for kind, value in earlier
            )
            + last[1]
            + ">" * len(earlier)
        )

    def _type(self, name: str, values: list[str], is_whole: bool) -> str:
        """The type of a template's parameter: one, or a name that the launcher's dispatch declares.

        Args:
            values: its arguments that the file shows.
            is_whole: does the kernel take indices for it?
        """
        plain = [tidy_words(value) for value in values]
        known = [value for value in plain if value in DTYPES]
        if len(known) == len(values) == 1:
            return known[0]
        others = [value for value in known if value not in ("float", "double")]
        if is_whole and not {"float", "double"} & set(known) and WHOLE.issuperset(others):
            return self._index(name)
        if others:
            # What is launched for whole numbers beside one of the two serves both.
            both = len(known) < len(values) or (
                not self.file.launched_only
                and {"float", "double"} & set(known)
                and not set(others) <= HALVES.keys()
            )
            found = [*(v for v in ("float", "double") if both or v in known), *others]
            if self.dtypes and set(found) != set(self.dtypes):
                raise NoLauncher(
                    f"has template parameters with the types {', '.join(self.dtypes)}, and others for {name}"
                )
            self.dtypes = found
        return "Dtype"

    def _example(self) -> str:
        """Arguments for the whole template, for a message."""
        kinds = {"typename": "float", "class": "float", "bool": "true"}
        return ", ".join(kinds.get(kind, "16") for kind, *_ in self.template)

    def _index(self, name: str) -> str:
        """The C++ name of the type of a template's indices. Without a tensor of them, it is int64_t."""
        if not any("*" in p.type or "[" in p.type for p in self.kernel.parameters if name in _words(p.type)):
            return "int64_t"
        alias = f"Index{len(self.indices) + 1 if self.indices else ''}"
        self.indices[alias] = []
        return alias

    def _instances(self, types, choices) -> list[tuple[str, str]]:
        free = [name for name in choices if len(choices[name]) > 1]
        combinations = list(itertools.product(*choices.values()))
        if len(combinations) > MOST_INSTANCES:
            combinations = self._launched(choices) or combinations
        if len(combinations) > MOST_INSTANCES:
            raise NoLauncher(f"has {len(combinations)} instances, too many to compile all of them")
        exported = {}
        for name in free:
            kind = "bool" if choices[name] == ["true", "false"] else "int"
            exported[name] = self.add_parameter(kind, name).name
        kinds = {name: kind for kind, name, _ in self.template}
        whole = {n: "static_cast<int>({})" if kinds[n] in self.file.enums else "{}" for n in free}
        self.choices = choices
        self.chosen = {name: exported.get(name) or values[0] for name, values in choices.items()}
        instances = []
        for values in combinations:
            chosen = dict(zip(choices, values, strict=True))
            arguments = ", ".join(types.get(name) or chosen[name] for _, name, _ in self.template)
            tests = [
                exported[n] if chosen[n] == "true" else f"!{exported[n]}" if chosen[n] == "false"
                else f"{exported[n]} == {whole[n].format(chosen[n])}"
                for n in free
            ]  # fmt: skip
            instances.append((" && ".join(tests), arguments))
        return instances

    def _launched(self, choices: dict[str, list[str]]) -> list[tuple[str, ...]]:
        """The combinations of the choices that the file itself names; none if it leaves one open."""
        names, found = [name for _, name, _ in self.template], []
        for given in [list(x.template_arguments) for x in self.launches] + self._instantiated():
            values = dict(zip(names, given, strict=False))
            values |= {name: default for _, name, default in self.template[len(given) :] if default}
            chosen = [self._number(own) or own for own in (values.get(name, "") for name in choices)]
            if not all(value in choices[name] for name, value in zip(choices, chosen, strict=True)):
                return []
            found.append(tuple(chosen))
        return list(dict.fromkeys(found))

    # ------------------------------------------------------------------------------- arguments

    def add_parameter(self, kind: str, name: str) -> Argument:
        """Add a C parameter of the launch, which the kernel does not get."""
        self.arguments.append(Argument(kind, self.named(name)))
        return self.arguments[-1]

    def named(self, name: str) -> str:
        """The name, changed if it is used already."""
        name = unique(name, self.used_names)
        self.used_names.add(name)
        return name

    def _argument(self, parameter, types) -> Argument:
        text = re.sub(
            r"\b(__restrict__|__restrict|restrict|volatile|typename|struct|enum|__grid_constant__)\b",
            "",
            parameter.type,
        )
        text = re.sub(r"\bstd\s*::\s*(?=(u?int\d+|size|ptrdiff)_t\b)", "", text)
        words, stars = re.findall(r"\w+|::|[<>&]", text), text.count("*") + text.count("[")
        if not parameter.type:
            raise NoLauncher("has a parameter without a name")
        is_const = "const" in text.split("*")[0].split()
        base = " ".join(w for w in words if w != "const")
        shown = tidy_type(parameter.type)
        kernel_base = types.get(base, base)
        bare = base.split(" ")[-1]
        if not stars and "&" not in words and bare in self.file.structs and "<" not in words:
            return self._struct(parameter.name, bare)
        if stars == 1 and bare in self.file.rows and not {"&", "<"} & set(words):
            return self._rows(parameter.name, bare, "const " if is_const else "")
        if stars > 1 or re.search(r"[<>&:]|\d+\s*\]", text):
            raise NoLauncher(f"takes a {shown} {parameter.name}, which C can't give it")
        if not stars and kernel_base in MADE_OF and kernel_base not in self.file.types:
            return self._vector(parameter.name, kernel_base)
        name = self.named(parameter.name)
        const = "const " if is_const else ""
        if kernel_base == "Dtype":
            if stars:
                value = f"static_cast<{const}Dtype*>({name})"
                one_of = ", ".join(dict.fromkeys(DTYPES[kind] for kind in self.dtypes or ("float", "double")))
                return Argument(
                    f"{const}void *", name, value, parameter.name, "Dtype", element=f"one of {one_of}"
                )
            if self._is_called(parameter.name):
                raise NoLauncher(f"takes a function, {parameter.name}")
            whole = set(self.dtypes) - {"float", "double", *HALVES}
            value = f'checked_number<Dtype>({name}, "{name}")' if whole else f"static_cast<Dtype>({name})"
            return Argument("double", name, value, parameter.name, "Dtype")
        if kernel_base == "void" and stars:
            return Argument(f"{const}void *", name, name, parameter.name, "void")
        if stars and STATE.match(kernel_base) and kernel_base not in self.file.types:
            self.notes.append(f"{name}: {STATE_BYTES} bytes for each {kernel_base}.")
            value = f"reinterpret_cast<{const}{kernel_base}*>({name})"
            return Argument(f"{const}uint8_t *", name, value, parameter.name, kernel_base, 16)
        if kernel_base in self.indices:
            if not stars:
                value = f'checked_as<{kernel_base}>({name}, "{name}")'
                return Argument("int64_t", name, value, parameter.name, "int64_t")
            self.indices[kernel_base].append(name)
            return Argument(
                f"{const}void *",
                name,
                f"static_cast<{const}{kernel_base}*>({name})",
                parameter.name,
                kernel_base,
            )
        if kernel_base in HALVES.keys() | COMPLEX.keys() and kernel_base not in self.file.types:
            return self._of_two_parts(parameter.name, name, kernel_base, const if stars else None)
        if not stars and kernel_base in self.file.enums:
            kind = self.scope + kernel_base
            return Argument("int", name, f"static_cast<{kind}>({name})", parameter.name, kind)
        element = VECTORS.get(kernel_base) if stars else None
        element = element or tidy_words(kernel_base)
        if element not in C_TYPES:
            raise NoLauncher(f"takes a {shown} {parameter.name}, which C can't give it")
        number, pointed = C_TYPES[element]
        if not stars:
            return Argument(number, name, name, parameter.name, kernel_base)
        value = name if kernel_base in SAME else f"reinterpret_cast<{const}{kernel_base}*>({name})"
        return Argument(
            f"{const}{pointed} *", name, value, parameter.name, kernel_base, alignment_of(kernel_base)
        )

    def _of_two_parts(self, kernel_name: str, name: str, kind: str, const: str | None) -> Argument:
        """A pointer to halves or to complex numbers, or one half (`const` is None)."""
        element, count, pointed = (HALVES | COMPLEX)[kind]
        if const is not None:
            value = f"reinterpret_cast<{const}{kind}*>({name})"
            alignment = 1 if kind in COMPLEX else 2 * count
            return Argument(f"{const}{pointed} *", name, value, kernel_name, kind, alignment, element)
        return Argument("float", name, f"{kind}({name})", kernel_name, kind)

    def _rows(self, kernel_name: str, kind: str, const: str) -> Argument:
        """A pointer to structs: a tensor has their bytes."""
        qualified = self.file.rows[kind]
        name, (size, alignment) = self.named(kernel_name), self._layout(kind) or (0, 16)
        self.notes.append(f"{name}: sizeof({kind}){f' = {size}' * bool(size)} bytes for each {kind}.")
        value = f"reinterpret_cast<{const}{qualified}*>({name})"
        return Argument(f"{const}uint8_t *", name, value, kernel_name, kind, alignment)

    def _layout(self, kind: str) -> tuple[int, int] | None:
        """(bytes, alignment) of a struct; None if they are unknown."""
        if re.search(r"__align__|alignas|#\s*pragma\s+pack|__attribute__", self.file.text):
            return None
        alias, structs = self.file.aliases, {name: fields for name, (_, fields) in self.file.structs.items()}
        plain = {
            name: fields and [field._replace(type=alias.get(field.type, field.type)) for field in fields]
            for name, fields in structs.items()
        }
        return layout_of(plain.get(kind), plain)

    def _struct(self, name: str, kind: str) -> Argument:
        """An argument for each field of a struct, `p_n` for `p.n`. The last one has the struct as its value."""
        qualified, _ = self.file.structs[kind]
        variable, first = self.named(name), len(self.arguments)
        at = len(self._filled)
        self._filled.append(f"  {qualified} {variable}{{}};")
        self._fill(variable, name, kind, (kind,))
        if self._is_constructed(
            kind
        ):  # its fields are what the caller gives, whatever a constructor would make
            self._filled[at] = (
                f"  cuffi::Filled<{qualified}> {variable}_made;\n  {qualified}& {variable} = {variable}_made.value;"
            )
        if len(self.arguments) == first:
            raise NoLauncher(f"takes a {kind} {name}, which is empty")
        for argument in self.arguments[first:]:
            argument.value = argument.kernel_name = ""
        last = self.arguments.pop()
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
                self._filled.append(f"  {at} = {argument.value};")
                self.arguments.append(argument)

    def _is_called(self, name: str) -> bool:
        low, high = self.kernel.body
        return re.search(rf"\b{name}\s*\(", self.file.source.text[low:high]) is not None

    def _vector(self, name: str, kind: str) -> Argument:
        """A number for each component of a vector or of a complex number. The last one has it as its value."""
        number, count, maker = MADE_OF[kind]
        parts = [Argument(number, self.named(f"{name}_{axis}")) for axis in "xyzw"[:count]]
        self.arguments += parts[:-1]
        value = f"{maker}({', '.join(part.name for part in parts)})"
        return Argument(number, parts[-1].name, value, name, kind)


def instantiated(text: str, kernel: str) -> list[list[str]]:
    """The arguments of each `template __global__ void kernel<4>(...);` in a file."""
    found = re.findall(rf"\btemplate\s+__global__[^;{{}}()]*?\b{kernel}\s*<([^<>;(){{}}]*)>\s*\(", text)
    return [[argument.strip() for argument in arguments.split(",")] for arguments in found]


def alignment_of(kind: str) -> int:
    """The bytes to which CUDA aligns a vector of two or four; 1 for other types, whose tensors are aligned anyway."""
    if kind not in VECTORS or kind[-1] not in "24":
        return 1
    word = C_TYPES[VECTORS[kind]][1]
    bits = re.search(r"\d+", word) or {"float": [32]}.get(word, [64])
    return min(16, int(bits[0]) // 8 * int(kind[-1]))


def _upload(name: str, symbol: Symbol, count: int) -> str:
    """Statements that fill a variable on the current stream. `count`: of its elements; 0 for a pointer."""
    there = f"{symbol.scope or '::'}{symbol.name}"
    if not count:  # a pointer, whose value is the tensor's address
        return (
            f"  CUDA_CHECK(cudaMemcpyToSymbolAsync({there}, &{name}, sizeof({there}), 0, cudaMemcpyHostToDevice,\n"
            "                                     CAFFE_STREAM(stream)));"
        )
    return (
        f'  static_assert(sizeof({there}) == {count} * sizeof(*{name}), "{symbol.name} has another size");\n'
        f"  CUDA_CHECK(cudaMemcpyToSymbolAsync({there}, {name}, sizeof({there}), 0, cudaMemcpyDeviceToDevice,\n"
        "                                     CAFFE_STREAM(stream)));"
    )


def _template_parameter(tokens) -> tuple[str, str, str]:
    """(kind, name, default) of `typename T`, `bool flag = true`, `int N`."""
    texts = [t.text for t in tokens]
    stop = texts.index("=") if "=" in texts else len(texts)
    kind = " ".join(t for t in texts[: stop - 1] if t != "const")
    return kind, texts[stop - 1], "".join(texts[stop + 1 :])


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def tidy_words(text: str) -> str:
    return " ".join(word for word in text.split() if word not in ("const", "typename"))
