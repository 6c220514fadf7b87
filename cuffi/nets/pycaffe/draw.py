"""caffe.draw: a net as a graph of its layers and blobs, in Graphviz's language. Pictures need its program `dot`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ...base import CaffeRuntimeError

_COLORS = {
    "Convolution": "#ff5050",
    "Deconvolution": "#ff5050",
    "InnerProduct": "#cc33ff",
    "Pooling": "#ff9900",
}
_TEXTS = ("raw", "dot", "gv")  # the language itself


def _is_in(layer, phase) -> bool:
    included = [rule.phase for rule in layer.include if rule.HasField("phase")]
    excluded = [rule.phase for rule in layer.exclude if rule.HasField("phase")]
    return phase is None or ((not included or phase in included) and phase not in excluded)


def get_layer_label(layer, rankdir: str, display_lrm: bool = False) -> str:
    """The name, the type and the sizes of a LayerParameter."""
    lines = [layer.name, f"({layer.type})"]
    field = {
        "Convolution": "convolution_param",
        "Deconvolution": "convolution_param",
        "Pooling": "pooling_param",
    }
    if layer.type in field:
        param = getattr(layer, field[layer.type])
        for name in ("kernel_size", "stride", "pad"):
            value = getattr(param, name)
            value = value if isinstance(value, int) else list(value)
            lines += [f"{name.partition('_')[0]}: {value}"] if value else []
    if display_lrm and layer.type in _COLORS and layer.type != "Pooling":
        lines += [f"lr_mult: {', '.join(str(param.lr_mult) for param in layer.param)}"]
    return ("\\n" if rankdir in ("TB", "BT") else " ").join(lines)


def _graph(caffe_net, rankdir: str, phase, display_lrm: bool) -> str:
    """The graph of a NetParameter."""
    lines = [f"digraph {_quoted(caffe_net.name or 'Net')} {{", f"rankdir={_quoted(rankdir)};"]
    for number, layer in enumerate(caffe_net.layer):
        if not _is_in(layer, phase):
            continue
        label, color = get_layer_label(layer, rankdir, display_lrm), _COLORS.get(layer.type, "#6495ed")
        lines.append(
            f'"layer {number}" [label={_quoted(label)}, shape=box, style=filled, fillcolor="{color}"];'
        )
        for blob in (*layer.bottom, *layer.top):
            lines.append(f"{_quoted(blob)} [shape=octagon, style=filled];")
        lines += [f'{_quoted(blob)} -> "layer {number}";' for blob in layer.bottom]
        lines += [f'"layer {number}" -> {_quoted(blob)};' for blob in layer.top]
    return "\n".join([*dict.fromkeys(lines), "}", ""])


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def draw_net(caffe_net, rankdir: str, ext: str = "png", phase=None, display_lrm: bool = False) -> bytes:
    """The picture of a NetParameter in the format `ext`. phase: TRAIN, TEST or None for both.

    Raises:
        CaffeRuntimeError: Graphviz is not installed, or does not know the format. "dot", "gv" and "raw" need no
            Graphviz.
    """
    text = _graph(caffe_net, rankdir, phase, display_lrm).encode()
    if ext in _TEXTS:
        return text
    try:
        return subprocess.run(["dot", f"-T{ext}"], input=text, capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise CaffeRuntimeError(f"draw_net: .{ext} needs Graphviz's program dot; .dot does not") from None
    except subprocess.CalledProcessError as error:
        raise CaffeRuntimeError(f"draw_net: dot: {error.stderr.decode(errors='replace').strip()}") from None


def draw_net_to_file(
    caffe_net, filename: str, rankdir: str = "LR", phase=None, display_lrm: bool = False
) -> None:
    """Draw a NetParameter to a file. The suffix is the format."""
    ext = Path(filename).suffix[1:] or "png"
    Path(filename).write_bytes(draw_net(caffe_net, rankdir, ext, phase, display_lrm))
