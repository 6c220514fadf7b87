"""Random nets: caffe_net must agree with a separate evaluation of Caffe's rules, and refuse damaged files with a
message.

    python -m lab.nets.fuzz --minutes 5 --seed 7

A net has layers with rules, states, shared parameters, fillers and a file of weights with some of its layers. Its text
has names with escapes, and any spelling that protobuf's text format allows. `evaluated` uses no code of the toolkit.
"""

from __future__ import annotations

import random
import sys
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from cuffi import CaffeError, CaffeNet, caffe_net
from cuffi.nets.net.messages import STOCK
from cuffi.nets.stock import blobs_of
from lab.fuzz.__main__ import rounds, tell
from lab.fuzz.calls import Finding
from lab.fuzz.options import parser

NAMES = (
    "a", "conv/1", 'quo"te', "卷积", "back\\slash", "it's", "x.y", "é", "#no", "{", "weight"
)  # fmt: skip
BATCH = 2
V1_TYPES = {"InnerProduct": "INNER_PRODUCT", "ReLU": "RELU"}  # others are in capitals
WORDS = (
    "{", "}", ":", '"', "-1", "1e40", "nan", "99999999999999999999", "layer", "#", "\n", "\\x", "\x00", "é", "true"
)  # fmt: skip
# Where numbers of a file's structure go wrong: lengths, field numbers, groups, sizes.
BYTES = (
    b"\x00", b"\xff" * 9 + b"\x01", b"\x80", b"\x0a", b"\x12", b"\x0b", b"\x3a\x7f", b"\xff", b"\x7f" * 4, b"\x08\x80"
)  # fmt: skip


@dataclass
class Blob:
    """A parameter: its shape, its filler's value, and what `param` says: a shared name, lr_mult and decay_mult."""

    shape: tuple[int, ...]
    value: float
    shared: str = ""
    multipliers: tuple = (None, None)


@dataclass
class Layer:
    name: str
    type: str
    bottoms: list[str]
    tops: list[str]
    numbers: dict = field(default_factory=dict)
    rules: tuple[str, list[dict]] = ("include", [])
    blobs: list[Blob] = field(default_factory=list)


@dataclass
class Net:
    """A net, the state of its file, and how it is called."""

    layers: list[Layer]
    state: dict
    stages: list[str]
    level: int | None
    phase: str | None  # the only one that is built
    train: bool
    stored: list[tuple[str, list[np.ndarray]]]  # the layers of the file of weights
    old: bool  # in the format of 2014


# --------------------------------------------------------------------------------------- the generator


def drawn(seed: int, size: int) -> Net:
    """A random net of at most `size` layers that is right."""
    r = random.Random(seed)
    old, names = r.random() < 0.3, r.sample(NAMES, len(NAMES))
    layers, widths = [], {"in": 3}
    shapes: dict[str, tuple] = {}  # of what has a shared name, with its multipliers
    for i in range(r.randint(1, size)):
        layer = layer_of(r, f"{names[i % len(names)]}{i}", widths, shapes, old)
        widths |= zip(layer.tops, top_widths(layer, widths), strict=True)
        layers.append(layer)
        if layer.blobs and r.random() < 0.3:  # one of two, by a rule
            blobs = [blob(r, own.shape, shapes, old) for own in layer.blobs]
            _, several = rules(r)
            other = replace(layer, name=layer.name + "'", rules=("exclude", several), blobs=blobs)
            layer.rules = ("include", several)
            layers.insert(r.randint(len(layers) - 1, len(layers)), other)
    state = {"stage": r.sample("abc", r.randint(0, 2))} | (
        {"level": r.randint(-1, 2)} if r.random() < 0.4 else {}
    )
    stored = [layer for layer in layers if layer.blobs]
    stored = [
        (one.name, [values(r, own) for own in one.blobs])
        for one in r.sample(stored, r.randint(0, len(stored)))
    ]
    phase, level = r.choice([None, None, "TRAIN", "TEST"]), r.choice([None, None, 0, 1])
    train = phase == "TRAIN" if phase else r.random() < 0.5
    return Net(layers, state, r.sample("abc", r.randint(0, 2)), level, phase, train, stored, old)


def values(r, own: Blob) -> np.ndarray:
    return np.float32(r.choices(range(-2, 3), k=int(np.prod(own.shape)))).reshape(own.shape)


def layer_of(r, name: str, widths: dict, shapes: dict, old: bool) -> Layer:
    """A layer that reads existing blobs, perhaps in place."""
    kinds = ["InnerProduct", "InnerProduct", "Power", "ReLU", "Eltwise", "Concat", "Slice", "Scale"]
    kind, bottom = r.choice(kinds[: 7 if old else 8]), r.choice(list(widths))
    layer, width, sizes = Layer(name, kind, [bottom], [f"{name}:top"]), widths[bottom], []
    if kind in ("InnerProduct", "Scale"):
        n = r.randint(1, 3)
        layer.numbers = {"bias_term": r.random() < 0.6} | (
            {"num_output": n} if kind == "InnerProduct" else {}
        )
        sizes = [(n, width), (n,)] if kind == "InnerProduct" else [(width,), (width,)]
        layer.blobs = [blob(r, shape, shapes, old) for shape in sizes[: 1 + layer.numbers["bias_term"]]]
    elif kind == "Power":
        layer.numbers = {"scale": r.choice([1.0, -1.0, 2.0, 0.5]), "shift": float(r.randint(-2, 2))}
    elif kind == "ReLU":
        layer.numbers = {"negative_slope": r.choice([0.0, 0.5])}
    elif kind == "Slice" and width > 1:
        layer.numbers, layer.tops = (
            {"slice_point": r.randint(1, width - 1)},
            [f"{name}:left", f"{name}:right"],
        )
    else:
        layer.type = kind = "Concat" if kind == "Slice" else kind
        others = [other for other, w in widths.items() if w == width or kind == "Concat"]
        layer.bottoms += r.choices(others, k=r.randint(1, 2))
        coefficients = [float(r.choice([-1, 1, 2])) for _ in layer.bottoms]
        layer.numbers = {"coeff": coefficients} if kind == "Eltwise" else {}
    if kind in ("Power", "ReLU") and r.random() < 0.6:
        layer.tops, layer.rules = [bottom], rules(r)  # with or without it, the net is whole
    return layer


def blob(r, shape, shapes: dict, old: bool) -> Blob:
    """A parameter, perhaps shared with another of this shape. All that share it have the same multipliers."""
    made = Blob(shape, float(r.randint(-2, 2)))
    if r.random() < 0.6:
        fitting = [name for name, (known, _) in shapes.items() if known == shape]
        made.shared = r.choice(fitting) if fitting and r.random() < 0.7 else f"{r.choice(NAMES)}{len(shapes)}"
        _, both = shapes.setdefault(made.shared, (shape, (r.randint(0, 2), r.choice([0, 1, 0.5]))))
    else:
        both = (r.randint(0, 2), r.choice([0, 1, 0.5]))
    made.multipliers = tuple(m if old or r.random() < 0.5 else None for m in both)
    return made


def rules(r) -> tuple[str, list[dict]]:
    found = []
    for _ in range(r.randint(1, 2)):
        rule = {"phase": r.choice(["TRAIN", "TEST"])} if r.random() < 0.5 else {}
        rule |= {name: r.sample("abc", 1) for name in ("stage", "not_stage") if r.random() < 0.4}
        found.append(
            rule | {name: r.randint(-1, 2) for name in ("min_level", "max_level") if r.random() < 0.3}
        )
    return r.choice(["include", "exclude"]), found


def top_widths(layer: Layer, widths: dict) -> list[int]:
    width, numbers = widths[layer.bottoms[0]], layer.numbers
    if layer.type == "Slice":
        return [numbers["slice_point"], width - numbers["slice_point"]]
    if layer.type == "Concat":
        return [sum(widths[bottom] for bottom in layer.bottoms)]
    return [numbers.get("num_output", width)]


# ---------------------------------------------------------------------------- Caffe's rules, written plainly


def evaluated(net: Net, x: np.ndarray):
    """(blobs by name, outputs, each layer's parameters by layer, the multipliers of each) of the phase that runs."""
    built = [net.phase] if net.phase else ["TRAIN", "TEST"]
    of_phase = {phase: [layer for layer in net.layers if is_in(layer, net, phase)] for phase in built}
    values, multipliers = {}, {}
    for phase in (
        built
    ):  # the first layer that has a parameter owns and fills it; multipliers are said by any of a phase
        said = {}
        for layer in of_phase[phase]:
            for i, own in enumerate(layer.blobs):
                key = own.shared or (layer.name, i)
                values.setdefault(key, np.full(own.shape, own.value))
                before = said.get(key, (None, None))
                said[key] = tuple(b if a is None else a for a, b in zip(before, own.multipliers, strict=True))
        multipliers = {
            k: tuple(1 if m is None else m for m in both) for k, both in said.items()
        } | multipliers
    there = {layer.name: layer for phase in built for layer in of_phase[phase]}
    for name, arrays in net.stored:  # the last one that the file has counts
        for i, array in enumerate(arrays if name in there else ()):
            values[there[name].blobs[i].shared or (name, i)] = array
    keys = {
        layer.name: [b.shared or (layer.name, i) for i, b in enumerate(layer.blobs)] for layer in net.layers
    }
    blobs, unread = {"in": x}, set()
    running = of_phase["TRAIN" if net.train else "TEST"]
    for layer in running:
        unread -= set(layer.bottoms)
        tops = computed(layer, [blobs[b] for b in layer.bottoms], [values[key] for key in keys[layer.name]])
        blobs |= zip(layer.tops, tops, strict=True)
        unread |= set(layer.tops)
    parameters = {layer.name: [values[key] for key in keys[layer.name]] for layer in running}
    return (
        blobs,
        unread,
        parameters,
        {layer.name: [multipliers[key] for key in keys[layer.name]] for layer in running},
    )


def is_in(layer: Layer, net: Net, phase: str) -> bool:
    level = net.state.get("level", 0) if net.level is None else net.level
    stages = {*net.state["stage"], *net.stages}
    how, several = layer.rules
    if not several:
        return True
    met = any(
        rule.get("phase", phase) == phase and rule.get("min_level", level) <= level <= rule.get("max_level", level)
        and stages >= {*rule.get("stage", ())} and not stages & {*rule.get("not_stage", ())}
        for rule in several
    )  # fmt: skip
    return met == (how == "include")


def computed(layer: Layer, bottoms: list, values: list) -> list:
    x, n = bottoms[0], layer.numbers
    if layer.type in ("InnerProduct", "Scale"):
        y = x @ values[0].T if layer.type == "InnerProduct" else x * values[0]
        return [y + values[1] if n["bias_term"] else y]
    if layer.type == "Power":
        return [n["shift"] + n["scale"] * x]
    if layer.type == "ReLU":
        return [np.where(x > 0, x, n["negative_slope"] * x)]
    if layer.type == "Eltwise":
        return [sum(c * b for c, b in zip(n["coeff"], bottoms, strict=True))]
    if layer.type == "Slice":
        return [x[:, : n["slice_point"]], x[:, n["slice_point"] :]]
    return [np.concatenate(bottoms, 1)]


# ------------------------------------------------------------------------------------------ how it is written


class Words(str):
    """A string, which has quotes in the text."""


def text_of(net: Net, r: random.Random) -> str:
    fields = [("input", Words("in")), ("input_shape", [("dim", BATCH), ("dim", 3)])]
    if len(net.state) > 1 or net.state["stage"] or r.random() < 0.5:
        fields.insert(r.randint(0, 2), ("state", listed(net.state)))
    fields += [("layers" if net.old else "layer", fields_of(layer, net.old)) for layer in net.layers]
    return written(fields, r, shuffled=False)


def listed(values: dict) -> list:
    several = [(n, v if isinstance(v, list) else [v]) for n, v in values.items()]
    return [(n, Words(v) if n.endswith("stage") else v) for n, vs in several for v in vs]


def fields_of(layer: Layer, old: bool) -> list:
    kind = V1_TYPES.get(layer.type, layer.type.upper()) if old else Words(layer.type)
    fields: list[tuple[str, object]] = [("name", Words(layer.name)), ("type", kind)]
    fields += [("bottom", Words(b)) for b in layer.bottoms] + [("top", Words(t)) for t in layer.tops]
    fields += [(layer.rules[0], listed(rule)) for rule in layer.rules[1]]
    numbers = listed(layer.numbers)
    if layer.blobs:
        names = ("filler" if layer.type == "Scale" else "weight_filler", "bias_filler")
        numbers += [(name, [("value", b.value)]) for name, b in zip(names, layer.blobs, strict=False)]
    message = {"InnerProduct": "inner_product", "ReLU": "relu"}.get(layer.type, layer.type.lower())
    fields.append((f"{message}_param", numbers))
    for own in layer.blobs:
        said = [
            (n, m) for n, m in zip(("lr_mult", "decay_mult"), own.multipliers, strict=True) if m is not None
        ]
        if old:
            fields += [("param", Words(own.shared)), ("blobs_lr", said[0][1]), ("weight_decay", said[1][1])]
        else:
            fields.append(("param", said + [("name", Words(own.shared))] * bool(own.shared)))
    return fields


def written(fields: list, r: random.Random, shuffled: bool = True) -> str:
    """Fields as text. Those of one name keep their order."""
    names = list(dict.fromkeys(name for name, _ in fields))
    if shuffled:
        r.shuffle(names)
        fields = [entry for name in names for entry in fields if entry[0] == name]
    pieces = []
    for name, value in fields:
        opening, closing = r.choice(["{}", "<>"])
        if isinstance(value, list):
            said = f"{name}{r.choice(['', ':', ' : '])} {opening} {written(value, r)} {closing}"
        elif isinstance(value, Words):
            said = f"{name}: {string(value, r)}"
        else:
            said = f"{name}:{r.choice(['', ' '])}{scalar(value, r)}"
        pieces += [said, r.choice([" ", "\n", " , ", "; ", " # } comment\n"])]
    return "".join(pieces)


def string(value: str, r: random.Random) -> str:
    """In one or several pieces, each byte as it is or as an escape. A piece may end within a character."""
    quote = r.choice("\"'")
    short = {"\n": r"\n", "\t": r"\t", "\\": r"\\", '"': r"\"", "'": r"\'"}
    said, style = [], r.choice(["plain", "octal", "hex", "unicode", "mixed"])
    for character in value:
        way = r.choice(["plain", "octal", "hex", "unicode"]) if style == "mixed" else style
        data = character.encode()
        if way == "plain" or (way == "unicode" and len(data) == 1):
            said.append(short.get(character, character))
        elif way == "unicode":
            said.append(f"\\u{ord(character):04x}")
        else:
            said += [f"\\{byte:03o}" if way == "octal" else f"\\x{byte:02X}" for byte in data]
        if r.random() < 0.1:
            said.append(f"{quote} {quote}")
    return quote + "".join(said) + quote


def scalar(value, r: random.Random) -> str:
    if isinstance(value, bool):
        return r.choice(["true", "1", "True"] if value else ["false", "0", "False"])
    if isinstance(value, int):
        return r.choice([str(value), f"{'-' * (value < 0)}0{abs(value):o}"]) if value else "0"
    if isinstance(value, float):
        return r.choice([repr(value), f"{value}f", f"{value:e}", f"{value:g}"])
    return value


def caffemodel(net: Net, r: random.Random) -> bytes:
    """The file of weights, as protobuf writes it."""
    message = STOCK.message("NetParameter")
    for name, arrays in net.stored:
        layer = message.layer.add(name=name)
        for array in arrays:
            stored = layer.blobs.add()
            if r.random() < 0.5:
                stored.num, stored.channels, stored.height, stored.width = (1,) * (
                    4 - array.ndim
                ) + array.shape
            else:
                stored.shape.dim.extend(array.shape)
            r.choice([stored.data, stored.double_data]).extend(array.ravel().tolist())
    return message.SerializeToString()


# --------------------------------------------------------------------------------------------- the comparison


class Nets:
    """Random nets, and files of them with a few bytes changed."""

    def __init__(self):
        self.file = Path(tempfile.gettempdir()) / "weights.caffemodel"

    def calls(self):
        """(most layers, seed, changes): with changes, the text or the weights are damaged."""
        return st.tuples(st.integers(1, 8), st.integers(0, 2**48), st.sampled_from([0, 0, 0, 1, 3]))

    def attempt(self, call) -> str:
        """'right', or of damaged files 'read' or 'refused'."""
        size, seed, changes = call
        net, r = drawn(seed, size), random.Random(seed + 1)
        text, data = text_of(net, r), caffemodel(net, r)
        damaged = r.choice(["text", "weights"]) if changes else ""
        for _ in range(changes):
            text = mutated(text, WORDS, r) if damaged == "text" else text
            data = mutated(data, BYTES, r) if damaged == "weights" else data
        self.file.write_bytes(data)
        weights = self.file if net.stored or damaged == "weights" else None
        options: dict[str, Any] = dict(stages=net.stages, level=net.level, phase=net.phase, train=net.train)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = caffe_net(text + "\n", weights, **options)
            said = "" if damaged else compared(made, net)
        except CaffeError as error:
            if damaged and (str(error).startswith("prototxt") or self.file.name in str(error)):
                return "refused"
            said = f"{type(error).__name__}: {error}"
        except Exception as error:
            if damaged and "allocate" in str(error):
                return "refused"
            said = f"{type(error).__name__}: {error}"
        if said:
            raise Finding(f"{call}: {said[:400]}\n{text}\n{options}\n{net.stored}")
        return "read" if damaged else "right"


def compared(made: CaffeNet, net: Net) -> str:
    """The differences from the separate evaluation, or ""."""
    x = np.arange(BATCH * 3, dtype=np.float64).reshape(BATCH, 3) - 2
    blobs, outputs, parameters, multipliers = evaluated(net, x)
    made = made.double()
    got = made(torch.from_numpy(x), blobs=True)
    if sorted(outputs) != made.outputs or set(got) != set(blobs):
        return f"outputs {made.outputs}, wanted {sorted(outputs)}; blobs {list(got)}, wanted {list(blobs)}"
    for name, wanted in blobs.items():
        if not np.allclose(got[name].detach().numpy(), wanted, rtol=1e-12, atol=1e-12):
            return f"blob {name!r}: {got[name].tolist()}, wanted {wanted.tolist()}"
    grouped = {
        id(p): (group["lr"], group["weight_decay"])
        for group in made.parameter_groups(1.0, 1.0)
        for p in group["params"]
    }
    for name, values in parameters.items():
        own = [blob for _, blob in blobs_of(made.layers[name])]
        if not all(np.array_equal(a.detach().numpy(), b) for a, b in zip(own, values, strict=True)):
            return f"parameters of {name!r}: {own}, wanted {values}"
        wanted = [None if both[0] == 0 else both for both in multipliers[name]]
        if [grouped.get(id(p)) for p in own] != wanted:
            return f"multipliers of {name!r}: {[grouped.get(id(p)) for p in own]}, wanted {wanted}"
    return ""


def mutated(content, pieces, r: random.Random):
    """The text with a part inserted, cut out, doubled, moved or replaced."""
    one, other = sorted(r.randint(0, len(content)) for _ in range(2))
    near, way, piece = min(one + r.randint(1, 6), len(content)), r.randint(0, 5), r.choice(pieces)
    ways = (
        content[:one],
        content[:one] + content[near:],
        content[:near] + content[one:],
        content[:one] + content[other:] + content[one:other],
        content[:one] + piece + content[near:],
        content[:one] + piece + content[one:],
    )
    return ways[way]


def main() -> int:
    options = parser(__doc__, of_layers=False).parse_args()
    return tell(*rounds({"nets": Nets}, options), options)


if __name__ == "__main__":
    sys.exit(main())
