"""Train by public solver files, each for three iterations on made-up data, and say how each run ended.

    python -m lab.solvers.tried /checkouts/* --each 3 --out folder

Of each checkout at most `--each` solver files with different nets are drawn at random with a fixed seed. Edited are
only paths, batch sizes, the mode and the numbers of iterations. The data is made before a run, by one rule for all: a
database, list of images or HDF5 file of the kind that the layer declares, with the shape for which `lab.nets.tried`
finds that the net can be built, random values, and labels within the net's classes. Nothing is changed after a run.
Small nets come first. A file of the folder has each run's end.
"""

import argparse
import hashlib
import json
import math
import random
import re
import runpy
import sys
from pathlib import Path

import h5py
import lmdb
import numpy as np
import plyvel
import torch
from PIL import Image

from cuffi.caffe_files.prototxt import Field, parse, quoted, render, unquoted
from cuffi.caffe_files.upgrade import v2_type
from cuffi.commands.net.compare import _labels
from cuffi.nets.net.fillers import _KINDS
from cuffi.nets.net.messages import STOCK
from lab.nets.tried import built
from lab.trials import cost, ended, named

ITEMS = 8
PARAMS = {"Data": "data_param", "ImageData": "image_data_param", "HDF5Data": "hdf5_data_param"}
NETS = ("net", "train_net", "test_net")
EDITED = {"max_iter": "3", "display": "1", "test_iter": "1", "test_interval": "2", "solver_mode": "CPU"}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--each", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=120, help="seconds of processor time for a run")
    asked = parser.parse_args()
    asked.out.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    chosen = drawn(asked.checkouts, asked.each)
    results = []
    for checkout, solver in chosen:
        folder = asked.out / named(checkout.name, str(solver.relative_to(checkout)))
        path = folder.with_suffix(".json")
        if not path.exists():
            path.write_text(json.dumps(tried(checkout, solver, folder, asked.limit), indent=1))
        name = {"repository": checkout.name.replace("+", "/"), "path": str(solver.relative_to(checkout))}
        results.append(name | json.loads(path.read_text()))
        print(*name.values(), results[-1]["end"], results[-1]["said"][-300:].replace("\n", " / "), flush=True)
    (asked.out / "all.json").write_text(json.dumps(results, indent=1))
    ends = [found["end"] for found in results]
    counts = {end: ends.count(end) for end in sorted(set(ends))}
    print(counts)
    return 0


def drawn(checkouts, each: int):
    """(checkout, solver file) of the runs."""
    seen, chosen = set(), []
    for checkout in sorted(checkouts):
        own = []
        for path in sorted(p for p in checkout.rglob("*") if p.is_file() and p.stat().st_size < 1 << 16):
            text = path.read_bytes().decode(errors="replace") if "solver" in path.name.lower() else ""
            if not re.search(r"^\s*base_lr\s*:", text, re.M) or path.suffix in (
                ".py",
                ".md",
                ".sh",
                ".ipynb",
            ):
                continue
            key = hashlib.sha256(re.sub(r"#[^\n]*|\s+", "", text + nets_of(checkout, path)).encode()).digest()
            if key not in seen:
                seen.add(key)
                own.append((checkout, path))
        chosen += random.Random(checkout.name).sample(own, min(each, len(own)))
    return sorted(chosen, key=lambda one: cost(nets_of(*one)))


_NET = r"""(?m)^\s*(?:net|train_net|test_net)\s*:\s*["']([^"']+)["']"""


def nets_of(checkout: Path, solver: Path) -> str:
    """The text of a solver's nets."""
    names = re.findall(_NET, solver.read_bytes().decode(errors="replace"))
    files = [net_of(checkout, solver, name) for name in names]
    return "".join(
        Path(f).read_bytes().decode(errors="replace") if f else n for f, n in zip(files, names, strict=True)
    )


def net_of(checkout: Path, solver: Path, name: str) -> str:
    """The file of the checkout that a solver's path means: the one with the longest common end; '' if none."""
    wanted = Path(name.replace("\\", "/")).parts
    found = [p for p in checkout.rglob(wanted[-1]) if p.is_file()]
    if not found:
        return ""

    def likeness(path: Path):
        pairs = zip(reversed(path.parts), reversed(wanted), strict=False)
        same = next((i for i, (a, b) in enumerate(pairs) if a != b), len(wanted))
        return same, path.parent == solver.parent, -len(path.parts)

    return str(max(found, key=likeness))


def tried(checkout: Path, solver: Path, folder: Path, limit: int) -> dict:
    """How a run of a solver file ends."""
    folder.mkdir(exist_ok=True)
    log = folder / "log"
    end = ended(lambda: prepared(checkout, solver, folder), limit, log)
    if end or not (folder / "solver.prototxt").exists():
        said = log.read_text(errors="replace").strip()
        return {
            "end": "no net" if "not in the repository" in said else "not prepared",
            "said": end + said[-600:],
        }
    arguments = ["train", "solver.prototxt", "--device", "cpu", "--python-layers"]
    arguments += ["--python-path", ":".join(folders(checkout)) or "."]

    def run():
        sys.argv = arguments
        runpy.run_module("cuffi.train", run_name="__main__")

    end = ended(run, limit, log, folder)
    said = log.read_text(errors="replace").strip()
    losses = re.findall(r"Iteration \d+.*? loss = (\S+)", said)
    if end or not losses:
        return {"end": "stopped", "said": f"{said[-1500:]} {end}", "losses": losses}
    finite = all(math.isfinite(float(loss)) for loss in losses)
    return {
        "end": "trained" if finite else "trained, loss not finite",
        "said": " ".join(losses),
        "losses": losses,
    }


def folders(checkout: Path) -> list[str]:
    """Those from which the checkout's modules can be imported, also as members of a package."""
    found = {folder for path in checkout.rglob("*.py") for folder in (path.parent, path.parent.parent)}
    return sorted(str(folder) for folder in found if folder.is_relative_to(checkout))


def prepared(checkout: Path, solver: Path, folder: Path) -> None:
    """Write the solver file and its nets with paths and data that are there."""
    node = parse(solver.read_bytes().decode(errors="replace"), solver.name)
    for i, field in enumerate(node.fields):
        if field.name in NETS and isinstance(field.value, str):
            found = net_of(checkout, solver, unquoted(field.value))
            if not found:
                print(f"{field.value} is not in the repository")
                return
            made = folder / f"{i}_{Path(found).name}"
            text = Path(found).read_bytes().decode(errors="replace")
            made.write_text(with_data(text, folder, i, folders(checkout)))
            node.fields[i] = Field(field.name, quoted(str(made)), field.line)
        elif field.name in EDITED:
            node.fields[i] = Field(field.name, EDITED[field.name], field.line)
        elif field.name == "snapshot_prefix":
            node.fields[i] = Field("snapshot_prefix", quoted(str(folder / "snap")), field.line)
    if not node.has("max_iter"):  # a script trains it by steps
        node.add("max_iter", EDITED["max_iter"])
    (folder / "solver.prototxt").write_text(render(node))


# ------------------------------------------------------------------------------------------------ data


def with_data(text: str, folder: Path, number: int, python_path=()) -> str:
    """A net's text with sources that are there, and batches that a processor computes in seconds."""

    root = parse(text)
    layers = [layer for name in ("layer", "layers") for layer in root.nodes(name)]
    layers = [inner for layer in layers for inner in (layer.nodes("layer") or [layer])]
    layers = [layer for layer in layers if v2_type(layer.value("type")) in PARAMS]
    before = render(root)
    for layer in layers:
        smaller(layer.node(PARAMS[v2_type(layer.value("type"))]) or layer)
    options = {"python_layers": True, "python_path": list(python_path)}
    net = net_for(render(root), options) or net_for(before, options)
    if net is None:
        return render(root)  # cuffi.train says why
    for i, layer in enumerate(layers):
        phase = next((name for name in ("TRAIN", "TEST") if phased(layer, name)), "")
        phase = phase if phase in net.phases else next(iter(net.phases))
        net.train(phase == "TRAIN")
        shapes, labels = net.phases[phase].shapes, _labels(net)
        source(layer, v2_type(layer.value("type")), shapes, labels, folder / f"{number}_{i}")
    return render(root)


def phased(layer, phase: str) -> bool:
    return any(rule.value("phase") == phase for rule in layer.nodes("include"))


def smaller(param) -> None:

    for i, field in enumerate(param.fields):
        if field.name in ("batch_size", "batchsize"):
            param.fields[i] = Field(field.name, str(min(2, int(field.value))), field.line)


def net_for(text: str, options):
    """The net with shapes that fit; Python layers are built where their modules can be had."""

    _KINDS.update(dict.fromkeys(_KINDS, lambda blob, filler: None))
    return built(text, **options)[0]


def source(layer, kind: str, shapes, labels, path: Path) -> None:
    """Make what a data layer reads, and name it in the layer."""

    rng = random.Random(str(path.name))
    tops = layer.values("top")
    param = layer.node(PARAMS[kind]) or layer
    transform = layer.node("transform_param") or param
    crop = int(
        transform.value("crop_size", "0") or param.value("crop_size", "0") or param.value("cropsize", "0")
    )
    image = tuple(shapes.get(tops[0], (1, 3, 224, 224))[1:])
    if crop and len(image) == 3:
        image = (image[0], crop + 8, crop + 8)
    classes = labels.get(tops[1], 2) if len(tops) > 1 else 2
    if kind == "HDF5Data":
        made = hdf5(path, {top: shapes.get(top, (1, 1))[1:] for top in tops}, labels, rng)
    elif kind == "ImageData":
        made = images(path, image, classes, rng)
        put(param, "root_folder", quoted(""))
    else:
        lmdb = param.value("backend") in ("LMDB", "1")
        made = datums(path, image, classes, rng, lmdb)
    put(param, "source", quoted(str(made)))
    for holder in (transform, param):
        if any(field.name in ("mean_file", "meanfile") for field in holder.fields):
            name = next(field.name for field in holder.fields if field.name in ("mean_file", "meanfile"))
            put(holder, name, quoted(str(mean(path, image))))


def put(param, name: str, value: str) -> None:

    for i, field in enumerate(param.fields):
        if field.name == name:
            param.fields[i] = Field(name, value, field.line)
            return
    if name == "source":
        param.add(name, value)


def values(shape, rng, most: int = 256) -> bytes:
    count = math.prod(shape)
    return bytes(rng.randrange(most) for _ in range(count)) if most < 256 else rng.randbytes(count)


def datums(path: Path, shape, classes: int, rng, as_lmdb: bool) -> Path:

    entries = []
    shape = (*shape, 1, 1, 1)[:3]
    for i in range(ITEMS):
        datum = type(STOCK.message("Datum"))()
        datum.channels, datum.height, datum.width = shape
        datum.data, datum.label = values(shape, rng), rng.randrange(max(1, classes))
        entries.append((b"%08d" % i, datum.SerializeToString()))
    if as_lmdb:
        with lmdb.open(str(path), map_size=1 << 28) as base, base.begin(write=True) as writer:
            for key, value in entries:
                writer.put(key, value)
    else:
        with plyvel.DB(str(path), create_if_missing=True) as base:
            for key, value in entries:
                base.put(key, value)
    return path


def images(path: Path, shape, classes: int, rng) -> Path:

    path.mkdir(exist_ok=True)
    lines = []
    for i in range(ITEMS):
        height, width = shape[-2:]
        Image.frombytes("RGB", (width, height), values((3, height, width), rng)).save(path / f"{i}.png")
        lines.append(f"{path / f'{i}.png'} {rng.randrange(max(1, classes))}")
    made = path.with_suffix(".txt")
    made.write_text("\n".join(lines) + "\n")
    return made


def hdf5(path: Path, shapes, labels, rng) -> Path:

    numbers = np.random.default_rng(rng.randrange(1 << 30))
    with h5py.File(path.with_suffix(".h5"), "w") as file:
        for top, shape in shapes.items():
            size = (ITEMS, *shape)
            drawn = numbers.integers(0, labels[top], size) if top in labels else numbers.random(size)
            file[top] = drawn.astype("f4")
    made = path.with_suffix(".txt")
    made.write_text(f"{path.with_suffix('.h5')}\n")
    return made


def mean(path: Path, shape) -> Path:

    blob = type(STOCK.message("BlobProto"))()
    blob.num, (blob.channels, blob.height, blob.width) = 1, (*shape, 1, 1, 1)[:3]
    blob.data.extend([100.0] * math.prod((*shape, 1, 1, 1)[:3]))
    made = path.with_suffix(".mean")
    made.write_bytes(blob.SerializeToString())
    return made


if __name__ == "__main__":
    sys.exit(main())
