"""For which types and values a kernel's template is compiled: its instances.

template = Template(file, kernel, scope, launches, parameters)
template.types                          {"T": "Dtype", "I": "Index"}: in the launcher's names
template.instances({"flag": "flag"})    [("flag", "Dtype, true"), ("!flag", "Dtype, false")]
"""

from __future__ import annotations

import itertools
import re

from ..cuda.analysis import Kernel
from ..cuda.launches import Launch
from .c_types import C_TYPES, DTYPES, HALVES, OF_TORCH, VECTORS, tidy_words
from .host_code import HostCode, HostOnly, Translation
from .index_types import WHOLE, given_types, index_types
from .kernel_file import KernelFile
from .kernel_launcher import NoLauncher
from .pointed import pointed_types

# The most instances of a kernel that has template parameters besides its dtype.
MOST_INSTANCES = 12


class Template:
    """A kernel's template. Of a kernel that is none, all is empty."""

    def __init__(self, file: KernelFile, kernel: Kernel, scope: str, launches: list[Launch], parameters):
        self.file, self.kernel, self.scope, self.launches = file, kernel, scope, launches
        self.parameters = [
            ("typename" if self._is_concept(kind) else kind.removeprefix("std :: "), name, default)
            for kind, name, default in map(_template_parameter, parameters)
        ]
        self.mentions = self._mentions()
        self.dtypes: list[str] = []  # the types that it dispatches over, if they are not float and double
        self.serves_more = False  # is one of float and double a type that the file does not launch?
        self.indices: list[str] = []  # its types of indices
        self.types: dict[str, str] = {}  # of its type parameters
        self.choices: dict[str, list[str]] = {}  # the values of its other parameters
        self.chosen: dict[str, str] = {}  # and which of them a call means, in C: instances() sets it
        self._decide()

    def _given(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """For each template parameter the arguments of the launches, and what their tensors' declarations show."""
        names = [name for _, name, _ in self.parameters]
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
        return _instantiated(self.file.source.text, self.kernel.name) + self.file.instances.get(
            self.kernel.name, []
        )

    def _mentions(self) -> list[Launch]:
        """`auto k = kernel<float, N>;`, for cudaLaunchKernel and the like: a launch of which only that is known."""
        source, found = self.file.source, []
        for at in re.finditer(rf"\b{self.kernel.name}\s*<([^<>;(){{}}]*)>\s*[;,)]", source.text):
            around = source.function_around(at.start()) if self.parameters else None
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

    def _decide(self) -> None:
        """The type of each type parameter, and the values of each other template parameter to compile for."""
        given, deduced = self._given()
        names = [name for kind, name, _ in self.parameters if kind in ("typename", "class")]
        whole = index_types(self.file.source, self.kernel, names, given)
        for kind, name, default in self.parameters:
            values = given[name]
            if kind in ("typename", "class"):
                values += [v for v in deduced[name] if v not in values] if name not in whole else []
                if own := [
                    v for v in values if re.split(r"\W", v, maxsplit=1)[0] in self.file.types - HALVES.keys()
                ]:
                    self.types[name] = own[0] if "<" not in own[0] else ""
                    if len(values) > 1 or not self.types[name]:
                        raise NoLauncher(f"has a template parameter {name} that stands for a class")
                    self.types[name] = self.scope + self.types[name]
                elif any(v in VECTORS.keys() | HALVES.keys() - DTYPES.keys() for v in values):
                    self.types[name] = self._following(name)
                else:
                    self.types[name] = self._type(name, values, name in whole)
            elif kind == "bool":
                self.choices[name] = ["true", "false"]
            else:
                values = values or ([default] if default else [])
                known = [*dict.fromkeys(filter(None, map(self._number, values)))]
                if kind in self.file.enums:
                    self.choices[name] = self.file.enums[kind]
                    continue
                if not known or kind not in C_TYPES:
                    raise NoLauncher(
                        f"has a template parameter {kind} {name} whose values are unknown; give them: "
                        f'load_inline(..., instances={{"{self.kernel.name}": ["{self._example()}"]}})'
                    )
                self.choices[name] = known

    def _number(self, text: str) -> str:
        """A template argument of numbers and the file's constants, `2 * kTile`, with their qualified names; or ""."""
        constants = self.file.constants
        if text in constants or re.fullmatch(r"-?\d+[uUlL]*", text):
            return constants.get(text, text)
        words = re.findall(r"\b[A-Za-z_]\w*", text)
        if not re.fullmatch(r"[\w\s+*/%()-]+", text) or not constants.keys() >= set(words):
            return ""
        return "(" + re.sub(r"\b[A-Za-z_]\w*", lambda word: constants[word[0]], text) + ")"

    def _following(self, name: str) -> str:
        """The type of a parameter that is a vector for each dtype: `__half2` in `<__half, __half2>`."""
        names = [name for _, name, _ in self.parameters]
        lead = next((own for own, kind in self.types.items() if kind == "Dtype"), "")
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

    @property
    def dispatch(self) -> bool:
        """Does a call choose an instance by its tensors' dtype?"""
        return "Dtype" in self.types.values()

    def _example(self) -> str:
        """Arguments for the whole template, for a message."""
        kinds = {"typename": "float", "class": "float", "bool": "true"}
        return ", ".join(kinds.get(kind, "16") for kind, *_ in self.parameters)

    def _index(self, name: str) -> str:
        """The C++ name of the type of a template's indices. Without a tensor of them, it is int64_t."""
        if not any("*" in p.type or "[" in p.type for p in self.kernel.parameters if name in _words(p.type)):
            return "int64_t"
        alias = f"Index{len(self.indices) + 1 if self.indices else ''}"
        self.indices.append(alias)
        return alias

    def free(self) -> dict[str, str]:
        """The C type of each parameter that a call chooses, by name."""
        return {
            name: "bool" if values == ["true", "false"] else "int"
            for name, values in self.choices.items()
            if len(values) > 1
        }

    def instances(self, exported: dict[str, str]) -> list[tuple[str, str]]:
        """(condition in C, template arguments) of each instance.

        Args:
            exported: the C parameters of those that are free.
        """
        combinations = list(itertools.product(*self.choices.values()))
        if len(combinations) > MOST_INSTANCES:
            combinations = self._launched() or combinations
        if len(combinations) > MOST_INSTANCES:
            raise NoLauncher(f"has {len(combinations)} instances, too many to compile all of them")
        kinds = {name: kind for kind, name, _ in self.parameters}
        whole = {n: "static_cast<int>({})" if kinds[n] in self.file.enums else "{}" for n in exported}
        self.chosen = {name: exported.get(name) or values[0] for name, values in self.choices.items()}
        instances = []
        for values in combinations:
            chosen = dict(zip(self.choices, values, strict=True))
            arguments = ", ".join(self.types.get(name) or chosen[name] for _, name, _ in self.parameters)
            tests = [
                exported[n] if chosen[n] == "true" else f"!{exported[n]}" if chosen[n] == "false"
                else f"{exported[n]} == {whole[n].format(chosen[n])}"
                for n in exported
            ]  # fmt: skip
            instances.append((" && ".join(tests), arguments))
        return instances

    def _launched(self) -> list[tuple[str, ...]]:
        """The combinations of the choices that the file itself names; none if it leaves one open."""
        names, found = [name for _, name, _ in self.parameters], []
        for given in [list(x.template_arguments) for x in self.launches] + self._instantiated():
            values = dict(zip(names, given, strict=False))
            values |= {name: default for _, name, default in self.parameters[len(given) :] if default}
            chosen = [self._number(own) or own for own in (values.get(name, "") for name in self.choices)]
            if not all(value in self.choices[name] for name, value in zip(self.choices, chosen, strict=True)):
                return []
            found.append(tuple(chosen))
        return list(dict.fromkeys(found))


def _instantiated(text: str, kernel: str) -> list[list[str]]:
    """The arguments of each `template __global__ void kernel<4>(...);` in a file."""
    found = re.findall(rf"\btemplate\s+__global__[^;{{}}()]*?\b{kernel}\s*<([^<>;(){{}}]*)>\s*\(", text)
    return [[argument.strip() for argument in arguments.split(",")] for arguments in found]


def _template_parameter(tokens) -> tuple[str, str, str]:
    """(kind, name, default) of `typename T`, `bool flag = true`, `int N`."""
    texts = [t.text for t in tokens]
    stop = texts.index("=") if "=" in texts else len(texts)
    kind = " ".join(t for t in texts[: stop - 1] if t != "const")
    return kind, texts[stop - 1], "".join(texts[stop + 1 :])


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)
