"""Build the Caffe nets of many repositories without any fork; print how many are built, and what stops the others.

    python -m lab.nets.tried /mirror/*/repo --each 24 --json nets.json
    python -m lab.nets.tried /mirror/*/repo --run

A repository is a git directory or a checkout. Files with the same text but for comments and spaces count once. Of each
repository at most `--each` nets are tried, drawn at random with a fixed seed. Where a file lacks the shape of an input
or a template's values, several are guessed. Both phases must be built. With `--run` a net that is built also runs
forward, on random inputs, and backward if it has a loss.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import random
import re
import subprocess
from pathlib import Path

import torch

from cuffi import caffe_net
from cuffi.caffe_files.prototxt import parse
from cuffi.caffe_files.upgrade import upgraded
from cuffi.commands.net.compare import random_inputs
from cuffi.nets.net.fillers import _KINDS
from cuffi.nets.net.graph import Spec

IMAGES: tuple[tuple[int, int], ...] = (
    (224, 224), (300, 300), (512, 512), (321, 321), (64, 64), (360, 480), (28, 28), (416, 416)
)  # fmt: skip
LABELS = (
    lambda n, s: (n,),
    lambda n, s: (n, 1, *s),
    lambda n, s: (n, 1, 1, 1),
    lambda n, s: (n, 2),
    lambda n, s: (n, 10),
)
CHANNELS = (3, 1, 10)
_LINE = re.compile(r"  line \d+: '(?P<name>.*?)' \((?P<type>\w*)\): (?P<reason>.*)")
_LACKS = re.compile(r"the shape of input '(.+?)' is not in the file")
_GUESSED = re.compile(r"The shape of input '(.+?)' was guessed")
_FIELD = re.compile(r"(\S+) is a field that stock Caffe does not have")


def files_of(folder: Path) -> dict[str, str]:
    """The texts of the prototxts of a repository, by path."""
    git = folder if (folder / "HEAD").exists() else folder / ".git"
    run = ["git", f"--git-dir={git}"]
    listed = subprocess.run([*run, "ls-tree", "-r", "-z", "HEAD"], capture_output=True, check=True).stdout
    found = {}
    for entry in listed.decode(errors="replace").split("\0"):
        head, _, path = entry.partition("\t")
        if not path.endswith((".prototxt", ".pt", ".prototext")) or head.split()[1] != "blob":
            continue
        read = subprocess.run([*run, "cat-file", "blob", head.split()[2]], capture_output=True, check=False)
        if read.returncode == 0 and b"\0" not in read.stdout[:4096]:
            found[path] = read.stdout.decode(errors="replace")
    return found


def is_net(text: str) -> bool:
    """Not a solver's, which may have a net inside."""
    has_layers = re.search(r"^\s*layers?\s*(\{|:)", text, re.M) is not None
    return has_layers and len(text) > 200 and re.search(r"^\s*base_lr\s*:", text, re.M) is None


def distinct(folders, each: int) -> list[tuple[str, str, str]]:
    """(repository, path, text) of the nets to try."""
    seen, chosen = set(), []
    for folder in folders:
        name = folder.parent.name if folder.name in ("repo", ".git") else folder.name
        name = folder.parents[1].name if name == "repo" else name
        own = []
        for path, text in sorted(files_of(folder).items()):
            key = hashlib.sha256(re.sub(r"#[^\n]*|\s+", "", text).encode()).digest()
            if is_net(text) and key not in seen:
                seen.add(key)
                own.append((name.replace("+", "/"), path, text))
        draw = random.Random(name)
        chosen += draw.sample(own, min(each, len(own)))
    return chosen


def has_python(text: str) -> bool:
    return re.search(r"""type\s*:\s*["']?(Python|PYTHON)\b""", text) is not None


def guesses():
    """Shapes for an input by its name: one function a guess."""
    images = [(CHANNELS[0], size) for size in IMAGES] + [(c, s) for c in CHANNELS[1:] for s in IMAGES[:1]]
    images.append((1, (28, 28)))
    kinds = [(*image, LABELS[0]) for image in images] + [(*images[0], label) for label in LABELS[1:]]
    for channels, size, label in kinds:
        yield lambda blob, c=channels, s=size, label=label: _guess(blob, c, s, label)


def _guess(blob: str, channels: int, size: tuple[int, int], label) -> tuple[int, ...]:
    name = blob.lower()
    if "rois" in name or "boxes" in name or "bbox" in name:
        return (2, 7) if "gt" in name else (2, 5)
    if "im_info" in name or "iminfo" in name:
        return (1, 3)
    if re.search(r"label|gt|clip|cont|target|seg|mask|anno", name):
        return label(1, size)
    return (1, channels, *size)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"-?\d+", text))


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _parts(ends: tuple[int, ...]) -> int:
    """How many channels are cut at these, if the last part is as large as the one before it."""
    return 2 * ends[-1] - (ends[-2] if len(ends) > 1 else 0)


# What an error says of the shape of a bottom: a pattern, and (the bottom, its shape) of a match.
_SAID = (
    (r"300 boxes of 5 values", lambda m: (-1, (1, 1, 300, 5))),
    (r"rows of 7 and 8 are needed: \(\d+, 7, 1, 1\)", lambda m: (1, (2, 8))),
    (r"dim: 0 for an axis that", lambda m: (0, (1, 6, 64, 64))),
    (r"one height and width are needed", lambda m: (3, (1, 2))),
    (
        r"inputs (?:must have the same (?:number of items and the same )?count:|of) \[(.*?)\] and ",
        lambda m: (1, _numbers(m[1])),
    ),
    (r"predictions along axis (\d+) of \[(.*?)\]", lambda m: (1, _without(_numbers(m[2]), int(m[1])))),
    (r"slice points \((.*?)\) of \d+", lambda m: (0, (1, _parts(_numbers(m[1])), 64, 64))),
    (r"cannot become \[-1, (\d+, \d+, \d+)\]", lambda m: (0, (1, *_numbers(m[1])))),
    (
        r"maps .* are needed: \[(\d+), \d+, (\d+), (\d+)\]",
        lambda m: (-1, (int(m[1]), 6, int(m[2]), int(m[3]))),
    ),
    (r" needed.* not \[(\d+), \d+, (\d+), (\d+)\]", lambda m: (-1, (int(m[1]), 6, int(m[2]), int(m[3])))),
)


def said_of(text: str, error: str, asked) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs that the error tells. `asked`: the inputs whose shapes are guesses."""
    lines = [line for line in map(_LINE.match, error.splitlines()) if line]
    if not lines:  # the file may be none
        return {}
    specs = [Spec.of(node) for node in upgraded(parse(text), "prototxt")]
    by_name = {spec.name: spec for spec in specs}
    before = {spec.tops[0]: spec.bottoms[0] for spec in specs if spec.type == "Reshape" and spec.tops}
    found = {}
    for line in lines:
        for pattern, told in _SAID:
            match = re.search(pattern, line["reason"])
            bottoms = by_name[line["name"]].bottoms if match and line["name"] in by_name else ()
            place, shape = told(match) if bottoms else (0, ())
            if bottoms and place < len(bottoms):
                blob = before.get(bottoms[place], bottoms[place])
                if blob in asked and blob not in found:
                    found[blob] = shape
    return found


def ran(net) -> str:
    """'' if the net runs in each phase that it was built for, else the error."""
    try:
        for training in [name == "TRAIN" for name in net.phases]:
            net.train(training)
            loss = net.loss(net(**random_inputs(net, torch.float32)))
            if loss.requires_grad:
                loss.backward()
    except Exception as error:
        return f"while it ran: {type(error).__name__}: {error}"
    return ""


def build(text: str, run: bool = False) -> str:
    """'' if the net is built, else the last error."""
    net, error = built(text)
    return ran(net) if net is not None and run else error


def built(text: str, **options):
    """(the net, '') with guessed shapes, or (None, the last error). `options`: of caffe_net."""
    last, asked, replace, tried = "", {}, {}, []
    for guess in guesses():
        shapes, told = {blob: guess(blob) for blob in asked}, {}
        if shapes in tried:
            continue
        tried.append(shapes)
        for _ in range(8):
            try:
                return caffe_net(text, shapes=shapes | told, replace=replace, **options), ""
            except Exception as error:
                last = f"{type(error).__name__}: {error}"
            asked |= dict.fromkeys(_LACKS.findall(last) + _GUESSED.findall(last))
            new = {blob: guess(blob) for blob in asked if blob not in shapes}
            said = {b: shape for b, shape in said_of(text, last, asked).items() if told.get(b) != shape}
            if "template" in last and not replace:
                names = re.findall(r"(\w+) \(line", last)
                replace = {name: "1" if "SCALE" in name else "64" for name in names}
            elif new or said:
                shapes, told = shapes | new, told | said
            else:
                break
        if stops(last) & {"type", "field", "variant", "other"} or not shapes:
            break  # another shape does not help
    return None, last


def stops(error: str) -> set[str]:
    return {kind for kind, _ in reasons(error)}


def reasons(error: str):
    """What stops a net: (kind, what)."""
    found = {}
    for line in error.splitlines():
        match = _LINE.match(line)
        if not match:
            continue
        reason = match["reason"]
        if "no such layer here" in reason:
            one = ("type", match["type"])
        elif field := _FIELD.search(reason):
            one = ("field", f"{match['type']}: {field[1]}")
        elif "is not known here" in reason:
            one = ("variant", f"{match['type']}: {reason[:160]}")
        elif "runs Python code" in reason:
            one = ("python", "Python")
        elif "several forks have" in reason:
            one = ("choose", match["type"])
        elif "is not in the file" in reason:
            one = ("shape", reason[:60])
        else:
            one = ("said", f"{match['type']}: {reason[:160]}")
        found[one] = None
    return list(found) or [("other", error[:200])] if error else []


def trial(item, run: bool = False):
    torch.set_num_threads(1)
    if not run:
        _KINDS.update(dict.fromkeys(_KINDS, lambda blob, filler: None))  # to fill takes longer than to build
    name, path, text = item
    return {"repository": name, "path": path, "python": has_python(text), "error": build(text, run)}


def report(rows) -> None:
    for title, some in (("all", rows), ("without Python layers", [r for r in rows if not r["python"]])):
        built = sum(not r["error"] for r in some)
        count = len({r["repository"] for r in some})
        print(f"{title}: {built} of {len(some)} nets of {count} repositories ({built / len(some):.1%})")
    nets, alone = collections.Counter(), collections.Counter()
    for row in rows:
        if row["python"] or not row["error"]:
            continue
        found = reasons(row["error"])
        nets.update(found)
        if len(found) == 1:
            alone.update(found)
    for one, count in nets.most_common(150):
        print(f"{count:4d} {alone[one]:4d}  {one[0]:8s} {one[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--each", type=int, default=24)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    items = distinct(arguments.folders, arguments.each)
    random.Random(0).shuffle(items)  # so that the first ones are a fair sample
    rows = []
    with concurrent.futures.ProcessPoolExecutor(arguments.workers) as pool:
        runs = [pool.submit(trial, item, arguments.run) for item in items]
        for run in concurrent.futures.as_completed(runs):
            rows.append(run.result())
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1))
    report(rows)


if __name__ == "__main__":
    main()
