"""Run public scripts from an installed cuffi-nets and from this checkout, and compare all that they do.

    python -m lab.wheel.scripts dist --mirror /mirror                    all of scripts.json
    python -m lab.wheel.scripts dist --mirror /mirror --only detect.py

The user has fetched the repositories: /mirror/OWNER+NAME/repo is a git directory or a checkout. lab/wheel/scripts.json
has the scripts, their arguments, and what is put in place for files that a repository lacks: weights, drawn at random
for a prototxt with a fixed seed, and pictures. Each script runs unedited in two copies of its repository: by the wheel,
in an environment whose PATH has its Python alone, and by the checkout, with what make has built. Equal means: each
result of a net has the same bits, the files that were written have the same bytes, the status is the same, and so is
the output but for numbers.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from .smoke import TRIALS, environment, wheels_in

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 300
_NUMBER = re.compile(r"\d+(\.\d+)?(e-?\d+)?")


@dataclass
class Script:
    """A script, where it is started, and the files that its repository lacks."""

    repository: str
    script: str
    kind: str = "dnn"  # the command: cuffi dnn, cuffi caffe
    new: bool = False  # no page of evidence named it before 2026-11-26
    arguments: list[str] = field(default_factory=list)
    folder: str = ""
    weights: dict[str, str] = field(default_factory=dict)  # a file: the prototxt that it is for
    files: dict[str, str] = field(default_factory=dict)  # a file: OWNER/NAME:path, where a repository has it
    pictures: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)


SCRIPTS = [Script(**entry) for entry in json.loads(Path(__file__).with_suffix(".json").read_text())]


def git_of(mirror: Path, repository: str) -> list[str]:
    """Git on the fetched copy, which lacks its largest files."""
    place = mirror / repository.replace("/", "+") / "repo"
    return ["git", f"--git-dir={place / '.git' if (place / '.git').exists() else place}"]


def shown(mirror: Path, repository: str, path: str) -> bytes | None:
    done = subprocess.run([*git_of(mirror, repository), "show", f"HEAD:{path}"], capture_output=True)
    return None if done.returncode else done.stdout


def laid_out(script: Script, mirror: Path, folder: Path) -> None:
    """The repository, and the files that it lacks."""
    import cv2
    import numpy as np

    listed = [*git_of(mirror, script.repository), "ls-tree", "-r", "-z", "--name-only", "HEAD"]
    for name in filter(
        None, subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\0")
    ):
        if (data := shown(mirror, script.repository, name)) is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
    for name, source in script.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(shown(mirror, *source.split(":", 1)) or b"")
    for name, text in script.texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    draw = np.random.default_rng(5)
    for name in script.pictures:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        rough = draw.integers(0, 255, (24, 32, 3), np.uint8)
        cv2.imwrite(str(folder / name), cv2.resize(rough, (320, 240), interpolation=cv2.INTER_CUBIC))
    for name, prototxt in script.weights.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        drawn(folder / prototxt, folder / name)


def drawn(prototxt: Path, path: Path) -> None:
    """Random weights for a net."""
    import torch

    from cuffi import caffe_net
    from cuffi.commands.net.compare import vary

    torch.manual_seed(7)
    net = caffe_net(prototxt, phase="TEST")
    with torch.no_grad():
        vary(net)
        for name, parameter in net.named_parameters():
            if "mbox_loc" in name:  # boxes near their priors
                parameter.mul_(1e-3)
    net.save_caffemodel(path)


def copied(folder: Path, to: Path) -> Path:
    """A copy; large files are the same file."""

    def copy(source, target):
        return os.link(source, target) if os.path.getsize(source) > 1 << 20 else shutil.copy(source, target)

    shutil.copytree(folder, to, copy_function=copy)
    return to


def state(folder: Path) -> dict[str, str]:
    """Of the folder's files."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def run(python: Path, script: Script, folder: Path, found: list[Path]) -> dict:
    """What a run of the script did."""
    before = state(folder)
    out = folder.parent / f"{folder.name}.json"
    variables = {"PATH": str(python.parent), "HOME": str(folder.parent), "OMP_NUM_THREADS": "1"}
    variables |= {"PYTHONPATH": os.pathsep.join(map(str, found))} if found else {}
    command = [python, TRIALS / "recorded.py", out, script.kind, script.script, *script.arguments]
    try:
        done = subprocess.run(
            command, cwd=folder / script.folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=LIMIT,
        )  # fmt: skip
        status, said = done.returncode, (done.stdout, done.stderr.strip().rpartition("\n")[2])
    except subprocess.TimeoutExpired:
        status, said = f"no end in {LIMIT} s", ("", "")
    after = state(folder)
    return {
        "status": status,
        "said": [_NUMBER.sub("#", text.replace(str(folder.parent), "")) for text in said],
        "last": said[1],
        "results": json.loads(out.read_text()) if out.exists() else None,
        "files": {name: found for name, found in after.items() if before.get(name) != found},
    }


def outcome(wheel: dict, checkout: dict) -> str:
    """Equal, or what differs."""
    differ = [name for name in ("status", "results", "files", "said") if wheel[name] != checkout[name]]
    if differ:
        return f"DIFFERS in {', '.join(differ)}: {wheel['status']} {wheel['last']} / {checkout['last']}"
    many = f"equal, {len(wheel['results'] or ())} results, {len(wheel['files'])} files"
    return many if wheel["status"] == 0 else f"{many}; both end with: {wheel['last']}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="has the wheel cuffi_nets-*.whl")
    parser.add_argument("--mirror", type=Path, required=True)
    parser.add_argument(
        "--packages", type=Path, help="pip install --target: what the scripts import, such as imutils"
    )
    parser.add_argument(
        "--only", nargs="+", default=[""], help="parts of repositories' names and scripts' paths"
    )
    given = parser.parse_args(arguments)
    packages = [given.packages.resolve()] if given.packages else []
    wrong = 0
    with tempfile.TemporaryDirectory() as place:
        python = environment(Path(place, "venv"), wheels_in(given.folder, nets=True), here=True)
        for number, script in enumerate(SCRIPTS):
            name = f"{script.repository} | {script.script}"
            if not any(part in name for part in given.only):
                continue
            folder, own = Path(place, str(number)), script.repository.partition("/")[2]
            try:
                laid_out(script, given.mirror, folder / "given")
                wheel, checkout = (
                    run(python, script, copied(folder / "given", folder / kind / own), found)
                    for kind, found in (("wheel", packages), ("checkout", [ROOT, *packages]))
                )
                words = outcome(wheel, checkout)
            except Exception as error:
                words = f"NOT RUN: {type(error).__name__}: {error}"
            wrong += not words.startswith("equal")
            print(f"| {name} | {'new' if script.new else 'before'} | {words} |", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
