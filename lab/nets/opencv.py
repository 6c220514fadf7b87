"""Compare the blobs of nets with those of OpenCV 4, which has a Caffe importer of its own.

    python -m lab.nets.tried /mirror/*/repo --each 2 --json nets.json
    python -m lab.nets.opencv nets.json --mirror /mirror --out folder

Each net of nets.json without Python layers that was built is built again for TEST with random weights, for
one image where its file allows it. OpenCV gets the same layers under other names, so that no layer is in place, without
loss layers, and the weights as a caffemodel. Its fusions and Winograd's convolutions are off.
Small nets come first. A file of the folder has each blob's difference, relative to its largest value, or what OpenCV
said.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path

import cv2
import torch

from cuffi import caffe_net
from cuffi.caffe_files.prototxt import quoted, render
from cuffi.commands.net.compare import random_inputs, relative
from cuffi.nets.net.fillers import _KINDS
from cuffi.nets.stock import blobs_of
from cuffi.nets.stock.normalisation import BatchNorm
from lab.nets import tried
from lab.nets.tried import built, files_of
from lab.trials import cost, ended, named

# Layers that OpenCV does not have because they only judge or end a net.
JUDGES = ("Accuracy", "Silence")
# More would be no rounding: a softmax of large values is up to 1e-4 off in either program.
ROUNDING = 1e-4


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("nets", type=Path)
    parser.add_argument("--mirror", type=Path, help="OWNER+NAME/repo are git directories or checkouts")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--image", type=int, nargs=2, help="height and width to guess first where the file says none"
    )
    parser.add_argument("--limit", type=int, default=120, help="seconds of processor time for a net")
    asked = parser.parse_args()
    asked.out.mkdir(exist_ok=True)
    if asked.image:
        height, width = asked.image
        tried.IMAGES = ((height, width), *tried.IMAGES)
    torch.set_num_threads(1)
    rows = [row for row in json.loads(asked.nets.read_text()) if not row["python"] and not row["error"]]
    texts = {(row["repository"], row["path"]): text_of(asked.mirror, row) for row in rows}
    rows.sort(key=lambda row: (cost(texts[row["repository"], row["path"]]), row["repository"], row["path"]))
    results = []
    for row in rows:
        path = asked.out / f"{named(row['repository'], row['path'])}.json"
        if not path.exists():
            text = texts[row["repository"], row["path"]]
            end = ended(
                lambda text=text, path=path: path.write_text(json.dumps(compared(text))),
                asked.limit,
                path.with_suffix(".log"),
            )
            if end:
                path.write_text(json.dumps({"stopped": end}))
        found = json.loads(path.read_text())
        results.append(row | found)
        print(row["repository"], row["path"], shown(found), flush=True)
    report(results)
    return 0


def text_of(mirror: Path, row) -> str:
    return files_of(mirror / row["repository"].replace("/", "+") / "repo")[row["path"]]


def compared(text: str) -> dict:
    """The differences of a net's blobs, or why there are none."""

    _KINDS.update(dict.fromkeys(_KINDS, lambda blob, filler: None))  # `drawn` fills, once
    net, error = built(text, phase="TEST")
    if net is None:
        return {"stopped": "in phase TEST: " + error[:400]}
    shapes = {name: (1, *net.shapes[name][1:]) for name in net.inputs if name in net.shapes}
    with contextlib.suppress(Exception):  # a file whose shapes say 4 images again
        net = caffe_net(text, phase="TEST", shapes=shapes)
    with torch.no_grad():
        drawn(net)
        inputs = random_inputs(net, torch.float32)
        inputs |= {name: torch.zeros(1) for name in net.inputs if name not in inputs}  # that no layer reads
        ours = net(**inputs, blobs=True)
    steps, left_out = readable(net)
    needs = {value for step in steps for value in step.bottoms} - {v for step in steps for v in step.tops}
    given = {v: inputs[name] for name, v in net.phase.graph.inputs.items() if v in needs}
    try:
        theirs = by_opencv(net, steps, given)
    except Exception as error:
        return {"stopped": f"OpenCV: {error!s:.400}", "left_out": left_out}
    made = {v for step in steps for v in step.tops}
    latest = {name: v for name, v in net.phase.graph.latest.items() if v in made}
    differences = {
        name: relative(torch.from_numpy(theirs[v]), ours[name]) for name, v in latest.items() if v in theirs
    }
    return {"blobs": differences, "left_out": left_out, "not_given": sorted(set(latest) - set(differences))}


def drawn(net) -> None:
    """Random weights that keep the blobs' sizes."""

    numbers = torch.Generator().manual_seed(7)
    for module in net.children():
        for name, blob in blobs_of(module):
            if isinstance(module, BatchNorm) and name != "mean":
                blob.copy_(torch.rand(blob.shape, generator=numbers) + 0.5)
            elif blob.numel():
                blob.normal_(
                    0, (2 / max(1, blob[0].numel())) ** 0.5 if blob.dim() > 1 else 0.5, generator=numbers
                )


def readable(net):
    """The steps that OpenCV is given, and the types of the others."""
    steps, missing, left_out = [], set(), set()
    for step in net.phase.graph.steps:
        judge = step.spec.type in JUDGES or "Loss" in step.spec.type
        if judge or missing.intersection(step.bottoms) or not step.tops:
            missing.update(step.tops)
            left_out.add(step.spec.type)
        else:
            steps.append(step)
    return steps, sorted(left_out)


def by_opencv(net, steps, given) -> dict:
    """What OpenCV computes: an array of each value."""

    lines = []
    for value, tensor in given.items():
        dims = " ".join(f"dim: {n}" for n in tensor.shape)
        lines.append(f"input: {quoted(f'v{value}')} input_shape {{ {dims} }}")
    for i, step in enumerate(steps):
        node = step.spec.node.without("name", "bottom", "top", "include", "exclude", "param", "phase")
        head = [f"name: {quoted(f's{i}')}"]
        head += [f"bottom: {quoted(f'v{v}')}" for v in step.bottoms]
        head += [f"top: {quoted(f'v{v}')}" for v in step.tops]
        lines.append(f"layer {{ {' '.join(head)} {render(node)} }}")
    with tempfile.TemporaryDirectory() as folder:
        prototxt, weights = Path(folder) / "net.prototxt", Path(folder) / "net.caffemodel"
        prototxt.write_text("\n".join(lines) + "\n")
        renamed = caffe_net(prototxt, phase="TEST")
        with torch.no_grad():
            for own, other in zip(renamed.phase.graph.steps, steps, strict=True):
                if not other.key:
                    continue
                mine = blobs_of(renamed.get_layer(own.key))
                for (_, a), (_, b) in zip(mine, blobs_of(net.get_layer(other.key)), strict=True):
                    a.copy_(b.reshape(a.shape))
        renamed.save_caffemodel(weights)
        read = cv2.dnn.readNetFromCaffe(str(prototxt), str(weights))
    read.enableFusion(False)
    read.enableWinograd(False)
    for value, tensor in given.items():
        read.setInput(tensor.numpy(), f"v{value}")
    # OpenCV leaves out a Split, and a layer that does nothing in TEST.
    kept = {f"s{i}": step for i, step in enumerate(steps) if read.getLayerId(f"s{i}") >= 0}
    found = {}
    for step, arrays in zip(kept.values(), read.forwardAndRetrieve(list(kept)), strict=True):
        for value, array in zip(step.tops, arrays, strict=False):
            found[value] = array
    return found


def shown(found: dict) -> str:
    if "stopped" in found:
        return "- " + " ".join(found["stopped"].split())[:300]
    worst = max(found["blobs"].values(), default=0.0)
    over = [f"{name} {error:.1e}" for name, error in found["blobs"].items() if error > ROUNDING]
    return f"{len(found['blobs'])} blobs, {worst:.1e}" + (": over: " + ", ".join(over[:6]) if over else "")


def report(results) -> None:
    read = [found for found in results if "blobs" in found]
    blobs = [error for found in read for error in found["blobs"].values()]
    over = sum(error > ROUNDING for error in blobs)
    print(
        f"{len(read)} of {len(results)} nets compared; {len(blobs)} blobs, {over} of them over {ROUNDING:.0e}"
    )


if __name__ == "__main__":
    sys.exit(main())
