"""Read a launcher's PTX as steps that C runs (src/edge/launch_steps.h).

NVRTC compiles a launcher for the GPU, as a kernel that computes a caffe_launch (include/caffe_launch.h). No GPU runs
it. Its PTX has few kinds of instructions: moves, arithmetic, comparisons, jumps, stores. What is unknown here is
refused by name.
"""

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType

HEAD = re.compile(r"^(?:\.visible |\.weak )?\.entry (\S+)\(", re.M)
PARAMETER = re.compile(r"\.param\s+(?:\.align \d+ )?\.(\w+)\s+(\S+?)_param_(\d+)\b")
DEPOT = re.compile(r"\.local\s+\.align\s+\d+\s+\.b8\s+(\S+)\[(\d+)\];")
TEXT = re.compile(
    r"^\.(?:global|const)\s+\.align \d+ \.b8 (\$str\S*?|__unnamed\S*?)\[\d+\] = \{([\d, ]*)\};", re.M
)
STATEMENT = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.]*)(?:\s+(.*))?\Z", re.S)
REAL = re.compile(r"0([fFdD])([0-9a-fA-F]{8}|[0-9a-fA-F]{16})\Z")
# Where the launch is (include/caffe_launch.h), and up to where a step puts something there directly.
LAUNCH_AT, MOST_PUT = 0x10000, 4096
# The first variable's address among the steps. Each has one address, 2^32 apart.
SYMBOLS_AT = 1 << 40
# Words of an instruction that do not change what it does here.
PLAIN = {"uni", "global", "local", "const", "volatile", "weak", "sync", "aligned"}
SIZED = {
    "b8": "u8", "b16": "u16", "b32": "u32", "s32": "u32", "f32": "u32", "b64": "u64", "s64": "u64", "f64": "u64",
}  # fmt: skip
BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
ROUNDED = {"add", "sub", "mul", "div", "fma", "sqrt"}


class NoSteps(Exception):
    """An instruction that no step is for. The text names it."""


@dataclass
class Program:
    """A launcher's steps, and what they begin with. C's function `program` takes them."""

    steps: list[list[int]] = field(default_factory=list)  # operation, to, a, b, c
    registers: list[int] = field(default_factory=lambda: [0])
    parameters: list[tuple[int, bool]] = field(default_factory=list)  # (register, is it a float?)
    data: bytes = b""
    local_bytes: int = 0
    symbols: list[str] = field(default_factory=list)  # the variables that it names

    def packed(self) -> dict:
        """For JSON."""
        steps = struct.pack(f"<{5 * len(self.steps)}H", *(n for step in self.steps for n in step))
        registers = struct.pack(f"<{len(self.registers)}Q", *self.registers)
        return {
            "steps": steps.hex(), "registers": registers.hex(), "parameters": self.parameters, "data": self.data.hex(),
            "local_bytes": self.local_bytes, "symbols": self.symbols,
        }  # fmt: skip


def entries(text: str) -> dict[str, tuple[str, str]]:
    """(the parameters, the body) of each kernel of a PTX file."""
    found = {}
    for head in HEAD.finditer(text):
        close = text.index(")", head.end())
        opening = text.index("{", close)
        end = re.compile(r"^\}", re.M).search(text, opening)
        assert end is not None  # each body has an end
        found[head[1]] = text[head.end() : close], text[opening + 1 : end.start()]
    return found


def program_of(text: str, name: str, edge: ModuleType) -> Program:
    """The steps of one kernel of a PTX file.

    Args:
        edge: the extension that runs them.

    Raises:
        NoSteps: it has an instruction that no step is for.
    """
    parameters, body = entries(text)[name]
    return StepsReader(text, parameters, body, edge).program


class StepsReader:
    """Makes the Program of one kernel."""

    def __init__(self, text: str, parameters: str, body: str, edge: ModuleType):
        self.edge, self.program = edge, Program()
        self.operations = {name: number for number, name in enumerate(edge.OPERATIONS)}
        self.names: dict[str, int] = {}
        self.constants: dict[int, int] = {0: 0}
        self.values: dict[int, int] = {0: 0}  # of the registers that hold constants
        self.texts = {name: bytes(map(int, numbers.split(","))) for name, numbers in TEXT.findall(text)}
        self.places: dict[str, int] = {}  # addresses of texts and of local variables
        self.labels: dict[str, int] = {}
        self.jumps: list[tuple[int, str]] = []
        for kind, _, _ in PARAMETER.findall(parameters):
            self.program.parameters.append((self._new(), kind == "f32"))
        for name, size in DEPOT.findall(body):
            self.places[name] = edge.LOCAL_AT + self.program.local_bytes
            self.program.local_bytes += (int(size) + 15) // 16 * 16
        statements = list(_statements(body))
        self.set_by: dict[str, list[str]] = {}  # the instructions that set each register
        self.aliases = self._fixed(statements)
        self.once = {name for name, several in self.set_by.items() if len(several) == 1}
        for statement in statements:
            self._statement(statement)
        self._step("ret")
        for at, label in self.jumps:
            self.program.steps[at][3] = self.labels[label]
        most = max(len(self.program.registers), len(self.program.steps))
        if most > edge.MOST_REGISTERS or self.program.local_bytes > edge.MOST_LOCAL:
            raise NoSteps("too many variables")

    def _fixed(self, statements: Sequence[str]) -> dict[str, int]:
        """The registers that one instruction alone sets, to a number."""
        set_by = self.set_by
        for statement in statements:
            if found := STATEMENT.match(statement):
                for name in re.findall(r"%\w+", (_operands(found[4] or "") or [""])[0]):
                    set_by.setdefault(name, []).append(statement)
        found = {}
        for name, several in set_by.items():
            move = re.fullmatch(r"mov\.\w+\s+(%\w+),\s*([^%{\s]+)", several[0])
            if move and len(several) == 1 and move[1] == name:
                found[name] = self._operand(move[2])
        return found

    # ------------------------------------------------------------------------------------- operands

    def _new(self, value: int = 0) -> int:
        self.program.registers.append(value)
        return len(self.program.registers) - 1

    def _constant(self, value: int) -> int:
        value %= 1 << 64
        if value not in self.constants:
            self.constants[value] = self._new(value)
            self.values[self.constants[value]] = value
        return self.constants[value]

    def _register(self, name: str) -> int:
        if name == "_":
            name = "%unused"
        if name not in self.names:
            self.names[name] = self._new()
        return self.names[name]

    def _operand(self, text: str) -> int:
        """The register that has an operand's value."""
        if text.startswith("%"):
            if text in getattr(self, "aliases", ()):
                return self.aliases[text]
            if not re.fullmatch(r"%(p|r|rd|rs|f|fd|h|b|rc|SP|SPL)\d*", text):
                raise NoSteps(text)  # %tid.x
            return self._register(text)
        if real := REAL.match(text):
            return self._constant(int(real[2], 16))
        if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)U?", text):
            return self._constant(int(text.rstrip("U"), 0))
        return self._constant(self._address(text))

    def _address(self, name: str) -> int:
        """The address of a text, of a local variable, or of one of the kernels' variables."""
        if name in self.places:
            return self.places[name]
        if name in self.texts:
            self.places[name] = self.edge.DATA_AT + len(self.program.data)
            self.program.data += self.texts[name] + b"\0"
            return self.places[name]
        if not re.fullmatch(r"[\w$]+", name):
            raise NoSteps(name)
        if name not in self.program.symbols:
            self.program.symbols.append(name)
        return SYMBOLS_AT + (self.program.symbols.index(name) << 32)

    # ---------------------------------------------------------------------------------------- steps

    def _step(self, operation: str, to: int = 0, a: int = 0, b: int = 0, c: int = 0) -> None:
        if operation not in self.operations:
            raise NoSteps(operation)
        self.program.steps.append([self.operations[operation], to, a, b, c])

    def _statement(self, text: str) -> None:
        if text.endswith(":"):
            self.labels[text[:-1]] = len(self.program.steps)
            return
        found = STATEMENT.match(text)
        if not found:
            raise NoSteps(text)
        negated, condition, mnemonic, rest = found.groups()
        words = [word for word in mnemonic.split(".") if word not in PLAIN]
        operands = _operands(rest or "")
        if words[0] == "bra":
            how = "bra" if not condition else "bra.unless" if negated else "bra.if"
            self.jumps.append((len(self.program.steps), operands[0]))
            self._step(how, 0, self._operand(condition) if condition else 0)
            return
        if condition:  # the other way round it is jumped over
            label = f"behind {len(self.program.steps)}"
            self.jumps.append((len(self.program.steps), label))
            self._step("bra.if" if negated else "bra.unless", 0, self._operand(condition))
            self._plain(words, operands)
            self.labels[label] = len(self.program.steps)
            return
        self._plain(words, operands)

    def _plain(self, words: list[str], operands: list[str]) -> None:
        kind = words[0]
        if kind in ("ret", "exit"):
            self._step("ret")
        elif kind in ("ld", "st"):
            self._memory(words, operands)
        elif kind in ("mov", "cvta"):
            self._move(operands)
        elif kind == "setp" and len(operands) == 3 and len(words) == 3:
            words[1] = UNSIGNED.get(words[1], words[1])
            words[2] = words[2].replace("b", "u")
            self._computed(words, operands)
        elif kind == "selp":
            self._computed(["selp"], operands)
        elif kind in ("and", "or", "xor") and words[1] == "pred":
            self._computed([kind, "b64"], operands)
        else:
            if kind in ROUNDED and "rn" in words[1:]:
                words.remove("rn")
            if kind == "shr":
                words[1] = words[1].replace("b", "u")
            self._computed(words, operands)

    def _computed(self, words: list[str], operands: list[str]) -> None:
        values = [self._operand(one) for one in operands[1:]]
        if len(values) > 3 or not operands:
            raise NoSteps(".".join(words))
        to = operands[0] if operands[0] != "_" else "%unused"
        self._step(".".join(words), self._register(to), *values)

    def _move(self, operands: list[str]) -> None:
        to, value = operands
        if to in self.aliases:
            return
        if to.startswith("{"):
            parts, source = _operands(to[1:-1]), self._operand(value)
            if len(parts) != 2:
                raise NoSteps("mov of a vector")
            for part, half in zip(parts, ("low", "high"), strict=True):
                self._step(half, self._register(part), source)
        elif value.startswith("{"):
            parts = _operands(value[1:-1])
            if len(parts) != 2:
                raise NoSteps("mov of a vector")
            self._step("low.high", self._register(to), *map(self._operand, parts))
        else:
            self._step("mov", self._register(to), self._operand(value))

    def _memory(self, words: list[str], operands: list[str]) -> None:
        kind, element = words[0], SIZED.get(words[-1], words[-1])
        place, other = (operands[1], operands[0]) if kind == "ld" else (operands[0], operands[1])
        values = _operands(other[1:-1]) if other.startswith("{") else [other]
        found = re.fullmatch(r"\[([^+\]]+)(?:\+(-?\d+))?\]", place)
        if not found:
            raise NoSteps(f"{kind} {place}")
        base, offset = found[1], int(found[2] or 0)
        if "param" in words:
            number = re.search(r"_param_(\d+)\Z", base)
            if kind == "st" or not number or offset or len(values) > 1:
                raise NoSteps(f"{kind} {place}")
            source = self.program.parameters[int(number[1])][0]
            if element in ("u32", "u64") and values[0] in self.once:  # then the word itself is the value
                self.names[values[0]] = source
                return
            how = f"cvt.{element}.u64" if element[1:] in ("8", "16") else "mov"
            self._step(how, self._register(values[0]), source)
            return
        size = BYTES[element[1:]]
        if kind == "st":
            element = element.replace("s", "u") if element != "s8" else "u8"
        address = self._operand(base)
        begin = self.values.get(address)
        for value in values:
            where = address, self._constant(offset)
            word = -1 if begin is None else begin + offset - LAUNCH_AT
            if kind == "st" and size > 2 and 0 <= word < MOST_PUT and word % 4 == 0:
                self._step(f"put.{element}", 0, self._operand(value))
                self.program.steps[-1][3] = word // 4
            elif kind == "ld":
                self._step(f"ld.{element}", self._register(value), *where)
            else:
                self._step(f"st.{element}", 0, *where, self._operand(value))
            offset += size


def _statements(body: str):
    """The labels and instructions of a body."""
    for line in re.sub(r"//[^\n]*", "", body).split("\n"):
        for text in line.split(";"):
            text = text.strip()
            while text.startswith("{") and not text.endswith("}"):  # around PTX of `asm`
                text = text[1:].strip()
            text = text[1:].strip() if text == "{" else text
            if text == "}":
                continue
            if label := re.match(r"(\$\w+):\s*", text):
                yield f"{label[1]}:"
                text = text[label.end() :]
            if text and not text.startswith("."):
                yield text


def _operands(text: str) -> list[str]:
    """Operands, which commas separate. Those of a vector stand in braces."""
    return [one.strip() for one in re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{\[])+", text) if one.strip()]
