"""Calls: of the file's own functions, whose text is run, and of CUDA's, of which this knows what they do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import z3

from .groups import NAMESPACES, WORDS, Groups
from .reading import Code
from .thread import BLOCK, Frame, is_followed
from .types import INT, NAMES, UNSIGNED, Integer, NotFollowed, PointerTo, Real, Type
from .values import Group, Number, Opaque, Pointer, Value, Variable, is_plain

if TYPE_CHECKING:
    from .expressions import Expressions

DEEPEST = 8
CASTS = {"static_cast", "reinterpret_cast", "const_cast"}
BARRIERS = {"__syncthreads", "__syncthreads_or", "__syncthreads_and", "__syncthreads_count"}
# Numbers of what they get, and nothing else.
NUMERIC = re.compile(
    r"(f?abs|r?sqrt|r?cbrt|exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|powi|sin|cos|tan|tanh|sinh|cosh|asin|acos|atan|atan2"
    r"|a(sin|cos|tan)h|erf|erfc|erfinv|tgamma|lgamma|floor|ceil|round|rint|nearbyint|trunc|fmod|remainder|fma|fmax|fmin|fdim|copysign|hypot"
    r"|rhypot|sinpi|cospi|ldexp|scalbn|norm3d|max|min|normcdf|saturate)f?"
    r"|__(exp|exp10|log|log2|log10|pow|sin|cos|tan|fdivide|saturate)f|__f(rcp|sqrt|rsqrt|ma|add|sub|mul|div|maf)_r[nzud]|__d(rcp|sqrt|add|mul|div)_r[nzud]"
    r"|__h(add|mul|fma|sub|div|max|min|neg|abs|exp|log|sqrt|add2|mul2|fma2|sub2|max2|min2)(_rn)?|h(exp|log|sqrt|rsqrt|rcp|sin|cos|floor|ceil)"
    r"|make_(float|double|half|bfloat16)\d|make_u?(int|char|short)\d|__(float|half|double|low|high|floats|halves|bfloat16|bfloat162|lows|highs)2(float|half|half2|float2|bfloat16|bfloat162)(_rn|_rz)?"
    r"|__u?(int|longlong|short)2(float|half|double)(_r[nzud])?|__(int|uint)_as_float|(__)?nanf?|float|double|half|__half"
)
INTEGER = re.compile(
    r"__(popc|clz|ffs|brev|popcll|clzll|ffsll)|l?l?(round|rint)f?|__(float|double|half)2(int|uint|ll|ull)_r[nzud]|__float_as_u?int"
    r"|is(nan|inf|finite)|signbit|__is(nan|inf)|__h(eq|ne|lt|le|gt|ge|isnan)"
)
NOTHING = {
    "__syncwarp",
    "__threadfence",
    "__threadfence_block",
    "__threadfence_system",
    "__nanosleep",
    "printf",
    "assert",
}
WARP = re.compile(r"__(shfl(_(up|down|xor))?(_sync)?)")
VOTES = re.compile(r"__((ballot|any|all)(_sync)?|activemask|match_any_sync|reduce_\w+_sync)|clock|clock64")
ATOMIC = re.compile(r"atomic(Add|Sub|Min|Max|And|Or|Xor|Exch|Inc|Dec|CAS)(_block|_system)?")
LOADS = {"__ldg", "__ldcs", "__ldcg", "__ldca", "__ldlu", "__ldcv"}
STORES = {"__stcs", "__stcg", "__stwb", "__stwt"}


class Calls:
    def __init__(self, expressions: Expressions):
        self.its, self.thread = expressions, expressions.thread
        self.groups = Groups(expressions)
        self.run_body: Callable = lambda node: None  # of a function: statements.py
        self.has_shuffles = False
        self.added: list[tuple] = []  # what atomicAdd gave back: number, array, offset, amount

    def value(self, node) -> Value:
        its = self.its
        function = its.field(node, "function")
        arguments = [one for one in its.field(node, "arguments").named_children if one.type != "comment"]
        if function.type == "field_expression":
            group = its.value(its.field(function, "argument"))
            name, _ = self._name(its.field(function, "field"), node)
            if isinstance(group, Group):
                return self.groups.value(group, name, arguments, node)
        name, words = self._name(function, node)
        if name in its.text.functions:
            return self._inlined(its.text.functions[name], words, arguments, node)
        if name in CASTS:
            return its.converted(its.value(arguments[0]), its.type(",".join(words), node), node)
        if (group := self.groups.made(name, words, arguments, node)) is not None:
            return group
        if name in BARRIERS:
            for one in arguments:
                its.value(one)
            self.thread.meet(its.line(node))
            return self.thread.fresh(INT, "votes", BLOCK)
        if ATOMIC.fullmatch(name):
            return self._atomic(name, arguments, node)
        if name in LOADS or name in STORES:
            return self._moved(name, arguments, node)
        return self._of_cuda(name, arguments, node)

    def _name(self, function, node) -> tuple[str, list[str]]:
        """The callee's name, and its template's arguments."""
        its = self.its
        if function.type == "qualified_identifier":
            scope = function.child_by_field_name("scope")
            if scope is not None and its.of(scope) not in ("std", *NAMESPACES):
                raise NotFollowed(f"{its.of(node)[:40]}: this function is not followed", node)
            function = its.field(function, "name")
        if function.type == "template_function":
            given = its.field(function, "arguments").named_children
            return its.of(its.field(function, "name")), [its.of(one) for one in given]
        if function.type not in ("identifier", "field_identifier", "primitive_type", "sized_type_specifier"):
            raise NotFollowed(f"{its.of(node)[:40]}: this function is not followed", node)
        return its.of(function), []

    # ---- CUDA's
    def _of_cuda(self, name: str, arguments: list, node) -> Value:
        its = self.its
        if (type := self._type(name)) is not None and len(arguments) == 1:
            return its.converted(its.value(arguments[0]), type, node)
        values = [its.value(one) for one in arguments]
        if any(isinstance(one, Pointer) for one in values) and name not in ("printf", "assert"):
            raise NotFollowed(f"{its.of(node)[:40]}: what this does with memory is not followed", node)
        if name in ("min", "max", "umin", "umax") and len(values) == 2:
            a, b = values
            if isinstance(a, Number) and isinstance(b, Number):
                return its.math.least(a, b, "max" in name)
        if name == "abs" and len(values) == 1 and isinstance(values[0], Number):
            a = its.math.into(values[0], INT) if values[0].type.bits < 32 else values[0]
            term = its.math.exact(a)
            return Number(z3.If(term >= 0, term, -term), a.type)
        if name in NOTHING:
            return Opaque()
        if WARP.fullmatch(name) or VOTES.fullmatch(name):
            self.has_shuffles = True
            sent = values[1] if "_sync" in name and len(values) > 1 else values[0] if values else Opaque()
            if not WARP.fullmatch(name):
                return self.thread.fresh(UNSIGNED if "ballot" in name or "mask" in name else INT, "vote")
            return self.thread.fresh(sent.type, "sent") if isinstance(sent, Number) else sent
        if INTEGER.fullmatch(name):
            return self.thread.fresh(INT, "counted")
        if NUMERIC.fullmatch(name):
            return Opaque(NAMES["double"] if all(is_plain(one) for one in values) else None)
        raise NotFollowed(f"{name}() is not in this file, and is not followed", node)

    def _type(self, name: str) -> Type | None:
        """Of int(x)."""
        try:
            found = self.its.type(name)
        except NotFollowed:
            return None
        return found if isinstance(found, Integer | Real) else None

    def _pointer(self, node, given) -> Pointer:
        its = self.its
        made = its.value(given)
        if not isinstance(made, Pointer) or made.dims or isinstance(made.type, PointerTo):
            raise NotFollowed(f"{its.of(node)[:40]}: this memory is not followed", node)
        return made

    def _atomic(self, name: str, arguments: list, node) -> Value:
        its = self.its
        to = self._pointer(node, arguments[0])
        values = [is_followed(its.value(one), node) for one in arguments[1:]]
        self.thread.access(to, "a", its.line(node))
        if "_block" in name:
            raise NotFollowed(f"{name} is not followed", node)
        if not isinstance(to.type, Integer):
            return Opaque(to.type)
        made = self.thread.fresh(to.type, "atomic")
        amount = values[0] if name == "atomicAdd" and len(values) == 1 else None
        is_counted = isinstance(amount, Number) and z3.is_int_value(its.math.exact(amount))
        by = its.math.exact(amount).as_long() if is_counted else 0  # type: ignore[arg-type]
        self.added.append((made.term, to.array, z3.simplify(to.offset), by if to.unit == 1 else 0))
        return made

    def _moved(self, name: str, arguments: list, node) -> Value:
        its = self.its
        at = self._pointer(node, arguments[0])
        if name in LOADS and len(arguments) == 1:
            return self.thread.read(at, its.line(node), its.written)
        if name in STORES and len(arguments) == 2:
            its.value(arguments[1])
            self.thread.access(at, "w", its.line(node))
            return Opaque()
        raise NotFollowed(f"{its.of(node)[:40]} is not followed", node)

    # ---- the file's
    def _inlined(self, codes: list[Code], words: list[str], arguments: list, node) -> Value:
        its, thread = self.its, self.thread
        fitting = [one for one in codes if len(one.function.parameters) == len(arguments)]
        if len(fitting) != 1 or fitting[0].function.member or fitting[0].function.is_kernel:
            raise NotFollowed(f"{codes[0].name}() is not followed: which function it is, is not known", node)
        code = fitting[0]
        if len(thread.frames) > DEEPEST:
            raise NotFollowed(f"{code.name}() is called too deep, or calls itself", node)
        code.check()
        types = self._template(code, words, node)
        scope = self._bound(code, types, arguments, node)
        frame = Frame(depth=len(thread.conditions), loops=len(thread.loops))
        outer = its.code, its.names, thread.scopes
        its.code, its.names = code, {**its.text.types, **types}
        thread.scopes = [thread.scopes[0], scope]
        thread.frames.append(frame)
        try:
            self.run_body(code.body.root)
        except NotFollowed as error:
            raise NotFollowed(f"{error.text} (in {code.name}(), called here)", error.node and node) from None
        finally:
            its.code, its.names, thread.scopes = outer
        thread.frames.pop()
        thread.ids |= frame.ids
        thread.has_met &= frame.has_met
        return self._result(code, frame, types, node)

    def _result(self, code: Code, frame: Frame, types: dict, node) -> Value:
        head = code.text.source.text[code.function.head : code.function.at]
        words = re.sub(
            r"template\s*<.*?>\s*(?=\b(static|inline|__|\w))|__launch_bounds__\s*\([^)]*\)|\[\[.*?\]\]",
            " ",
            head,
            flags=re.DOTALL,
        )
        words = re.sub(
            r"\b(extern|friend|__forceinline__|__device__|__host__|inline|static)\b|\"C\"|\"_\"", " ", words
        )
        if "auto" in words.split() or "&" in words:
            raise NotFollowed(f"{code.name}(): what it returns is not followed", node)
        saved, self.its.names = self.its.names, {**self.its.text.types, **types}
        try:
            type = self.its.type(words, node)
        finally:
            self.its.names = saved
        return self.its.converted(frame.value if frame.value is not None else Opaque(), type, node)

    def _template(self, code: Code, words: list[str], node) -> dict[str, Type]:
        """The types of a template's parameters: as given, or else numbers of any type."""
        types: dict[str, Type] = {}
        self._numbers: dict[str, Number] = {}
        for i, one in enumerate(code.template):
            if one.type:
                text = words[i] if i < len(words) else one.default
                if not text:
                    raise NotFollowed(f"{code.name}(): {one.name} is not known", node)
                given = self.its.field(node, "function")
                inside = given.child_by_field_name("arguments") if given.type == "template_function" else None
                if inside is None or i >= len(words):
                    raise NotFollowed(f"{code.name}(): {one.name} is not followed", node)
                child = inside.named_children[i]
                if child.type == "type_descriptor":  # N, which may be a type as well
                    raise NotFollowed(f"{code.name}<{text}>(): {one.name} is not followed", node)
                value = self.its.converted(self.its.value(child), self.its.type(one.type, node), node)
                if not isinstance(value, Number):
                    raise NotFollowed(f"{code.name}(): {one.name} is not followed", node)
                self._numbers[one.name] = value
            else:
                types[one.name] = self.its.type(words[i], node) if i < len(words) else Real(one.name)
        return types

    def _bound(self, code: Code, types: dict[str, Type], arguments: list, node) -> dict[str, Variable]:
        its = self.its
        scope = {name: Variable(one.type, one) for name, one in self._numbers.items()}
        names = {**its.text.types, **types}
        referred = [one for one in code.function.parameters if "&" in one.type]
        if len({"const" in one.type.split() for one in referred}) > 1:
            raise NotFollowed(f"{code.name}(): its references are not followed", node)
        for parameter, argument in zip(code.function.parameters, arguments, strict=True):
            words = parameter.type
            if "[" in words or "(" in words or "..." in words or "&&" in words:
                words = (
                    re.sub(r"\[[^\]]*\]", "*", words) if words.count("[") == 1 and "(" not in words else "?"
                )
            if WORDS.fullmatch(words):
                scope[parameter.name] = Variable(None, self._group(argument))
                continue
            if "&" in words:
                saved, its.names = its.names, {**its.names, **types}
                try:
                    scope[parameter.name] = self._referred(words, argument)
                finally:
                    its.names = saved
                continue
            value = its.value(argument)
            plain = " ".join(word for word in words.split() if word not in ("const", "__restrict__"))
            if plain in types and code.template and types[plain] == Real(plain):  # deduced
                scope[parameter.name] = Variable(None, value)
                continue
            saved, its.names = its.names, names
            try:
                type = self._with_deduced(words, value, types, node)
                scope[parameter.name] = Variable(type, is_followed(its.converted(value, type, node), node))
            finally:
                its.names = saved
        return scope

    def _group(self, argument) -> Group:
        value = self.its.value(argument)
        if not isinstance(value, Group):
            raise NotFollowed(f"{self.its.of(argument)[:40]}: this group is not followed", argument)
        return value

    def _with_deduced(self, words: str, value: Value, types: dict, node) -> Type:
        """Of T*, T is what the argument points to."""
        type = self.its.type(words, node)
        to = type.to if isinstance(type, PointerTo) and isinstance(value, Pointer) else None
        if isinstance(to, Real) and types.get(to.name) == to:
            assert isinstance(value, Pointer)
            return PointerTo(value.type)
        return type

    def _referred(self, words: str, argument) -> Variable:
        """T& is another name of the same."""
        its = self.its
        if "const" in words.split():  # it is read, and nobody changes it meanwhile (_bound)
            value = its.value(argument)
            if isinstance(value, Number):
                type = its.type(words.replace("&", " "), argument)
                value = its.converted(value, type, argument)
                return Variable(type, value)
            return Variable(None, value)
        place = its.place(argument)
        if isinstance(place, Variable):
            return place
        if place.dims or place.is_row:
            raise NotFollowed(f"{its.of(argument)[:40]}: a reference to an array is not followed", argument)
        return Variable(place.type, place, is_memory=True)
