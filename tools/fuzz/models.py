"""Prototxts and .caffemodel files with a few bytes changed: read, or refused with words, never a crash."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import math
import tempfile
from pathlib import Path

from hypothesis import strategies as st

from layers._net.messages import STOCK

from .calls import Finding

PROTOTXT = """name: "net"
layer {{ name: "data" type: "Input" top: "x" input_param {{ shape {{ dim: 2 dim: 3 }} }} }}
layer {{
  name: "it" type: "{type}" bottom: "x" top: "y"
  param {{ lr_mult: 1.5 decay_mult: 0 }} loss_weight: 0.5 propagate_down: true phase: TRAIN
  include {{ phase: TRAIN stage: "a" }}
}}
"""
WORDS = (
    "{", "}", ":", '"', "-1", "1e40", "nan", "99999999999999999999", "layer", "#", "\n", "\\x", "\x00", "é", "true",
)  # fmt: skip
# Where numbers of a file's structure go wrong: lengths, field numbers, groups, sizes.
BYTES = (
    b"\x00", b"\xff" * 9 + b"\x01", b"\x80", b"\x0a", b"\x12", b"\x0b", b"\x3a\x7f", b"\xff", b"\x7f" * 4, b"\x08\x80",
)  # fmt: skip


def caffemodel(type_name: str, shapes: list[tuple[int, ...]]) -> bytes:
    """A NetParameter with one layer `it`, whose blobs hold ones."""
    net = STOCK.message("NetParameter")
    layer = net.layer.add(name="it", type=type_name)
    for shape in shapes:
        layer.blobs.add(data=[1] * math.prod(shape), shape={"dim": shape})
    return net.SerializeToString()


class Models:
    """The Caffe modules of a layer, made from mutated text and filled from mutated files."""

    def __init__(self, package: str, name: str):
        self.name = name
        self.error = importlib.import_module(f"{package}._runtime").CaffeError
        values = vars(importlib.import_module(f"{package}.{name}")).values()
        self.types = [v for v in values if inspect.isclass(v) and getattr(v, "type_name", None)]
        self.filled = []
        has_cases = importlib.util.find_spec(f"{package}.{name}.cases")  # a ported layer need not have any
        for case in importlib.import_module(f"{package}.{name}.cases").CASES if has_cases else ():
            if case.module and case.is_caffe:
                module = case.module()
                shapes = [tuple(p.shape) for _, p in sorted(module.named_parameters())]
                self.filled.append((module, caffemodel(module.type_name, shapes)))
        self.file = Path(tempfile.mkdtemp()) / "mutated.caffemodel"

    @st.composite
    def calls(draw, self):
        """('prototxt', module class, text) or ('caffemodel', module, bytes)."""
        if draw(st.booleans()) or not self.filled:
            kind = draw(st.sampled_from(self.types))
            text = PROTOTXT.format(type=kind.type_name)
            for _ in range(draw(st.integers(1, 4))):
                text = draw(mutated(text, WORDS))
            return "prototxt", kind, text
        module, data = draw(st.sampled_from(self.filled))
        for _ in range(draw(st.integers(1, 4))):
            data = draw(mutated(data, BYTES))
        return "caffemodel", module, data

    def attempt(self, call) -> str:
        """'right' (read) or 'refused'."""
        kind, module, content = call
        try:
            if kind == "prototxt":
                module(content)
            else:
                self.file.write_bytes(content)
                module.load_caffemodel(self.file, "it")
        except self.error as error:
            text = str(error)
            named = str(self.file.name) in text if kind == "caffemodel" else text.startswith(self.name)
            if not named or len(text) < len(self.name) + 10:
                raise Finding(
                    f"{kind}: an error that names neither file nor layer: {text[:200]}: {content!r}"
                ) from error
            return "refused"
        except Exception as error:
            raise Finding(f"{kind}: {type(error).__name__}: {str(error)[:200]}: {content!r}") from error
        return "right"


@st.composite
def mutated(draw, content, pieces):
    """With something put in, cut out, doubled, moved or replaced."""
    one, other = sorted((draw(st.integers(0, len(content))), draw(st.integers(0, len(content)))))
    near = min(one + draw(st.integers(1, 6)), len(content))
    way = draw(st.integers(0, 5))
    if way == 0:
        return content[:one]
    if way == 1:
        return content[:one] + content[near:]
    if way == 2:
        return content[:near] + content[one:]
    if way == 3:
        return content[:one] + content[other:] + content[one:other]
    piece = draw(st.sampled_from(pieces))
    return content[:one] + piece + content[near if way == 4 else one :]
