"""Write public nets as ONNX, compare every blob, and let OpenCV's own dnn read the files.

    python -m lab.nets.onnx nets.txt --mirror /mirror --out folder
    python -m lab.nets.onnx nets.txt --out folder --opencv /venv-with-opencv-5/bin/python

A line of nets.txt: a repository (owner/name), the prototxt's path in it, and shapes of inputs, if the file lacks
them or they are large: `data=1,3,64,64`. The weights are drawn at random with a fixed seed. Each net is a process of
its own. folder/NUMBER.json has what was found; folder/NUMBER.onnx and .npz are what OpenCV is given.
"""

import argparse
import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path

OPENCV = """
import sys, json, numpy as np, cv2
path, engine = sys.argv[1], getattr(cv2.dnn, sys.argv[2])
stored = dict(np.load(path + ".npz"))
net = cv2.dnn.readNetFromONNX(path + ".onnx", engine)
for key in [k for k in stored if k.startswith("in:")]:
    net.setInput(stored[key], key[3:])
names = [k[4:] for k in stored if k.startswith("out:")]
worst = 0.0
for name, found in zip(names, net.forward(names)):
    wanted = stored["out:" + name]
    if found.size != wanted.size:
        sys.exit(f"{name}: {found.shape} instead of {wanted.shape}")
    found = found.reshape(wanted.shape)
    worst = max(worst, float(np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max())))
print("RESULT", worst)
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("nets", type=Path)
    parser.add_argument("--mirror", type=Path, help="OWNER+NAME/repo are git directories")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--opencv", help="a Python that has OpenCV 5")
    parser.add_argument("--one", type=int, help="try this line, here")
    parser.add_argument("--limit", type=int, default=280, help="seconds for a net")
    asked = parser.parse_args()
    asked.out.mkdir(exist_ok=True)
    lines = [line.split() for line in asked.nets.read_text().splitlines() if line.strip() and line[0] != "#"]
    if asked.one is not None:
        written(lines[asked.one], asked.out / str(asked.one), asked.mirror)
        return 0
    for i, line in enumerate(lines):
        path = asked.out / str(i)
        if asked.opencv:
            read(path, asked.opencv, asked.limit)
        elif not path.with_suffix(".json").exists():
            again = [sys.executable, "-m", "lab.nets.onnx", *sys.argv[1:], "--one", str(i)]
            found = ended(again, asked.limit)
            if not path.with_suffix(".json").exists():
                keep(path, {"net": line, "error": found})
        print(i, *line[:2], shown(json.loads(path.with_suffix(".json").read_text())), flush=True)
    return 0


def written(line: list[str], path: Path, mirror: Path) -> None:
    """Write one net; keep its certificate, inputs and outputs."""
    import numpy as np
    import torch

    from cuffi import caffe_net
    from cuffi.commands.net.compare import vary
    from cuffi.nets.net.onnx import _inputs

    repository, file, *shapes = line
    git = mirror / repository.replace("/", "+") / "repo"
    show = ["git", f"--git-dir={git}", "show", f"HEAD:{file}"]
    text = subprocess.run(show, capture_output=True, check=True).stdout.decode(errors="replace")
    given = {name: tuple(map(int, sizes.split(","))) for name, sizes in (s.split("=") for s in shapes)}
    torch.manual_seed(7)
    found: dict[str, object] = {"net": line}
    begun = time.time()
    try:
        net = caffe_net(text, phase="TEST", shapes=given)
        with torch.no_grad():
            vary(net)
        types = [step.spec.type for step in net.phase.graph.steps]
        found |= {"layers": len(types), "types": sorted(set(types)), "notes": list(net.notes)}
        certificate = net.to_onnx(f"{path}.onnx")
        blobs = certificate.blobs
        found |= {
            "blobs": len(blobs),
            "worst": max(b["difference"] for b in blobs),
            "agrees": certificate.agrees,
        }
        found |= {"dynamic": certificate.dynamic_batch, "domains": certificate.domains}
        found["differ"] = [b for b in blobs if b["difference"] > 1e-5]
        inputs = _inputs(net)
        with torch.no_grad():
            outputs = net(blobs=net.outputs, **inputs)
        stored = {f"in:{k}": v.numpy() for k, v in inputs.items()}
        np.savez(f"{path}.npz", **stored, **{f"out:{k}": v.numpy() for k, v in outputs.items()})
    except Exception as error:
        found["error"] = f"{type(error).__name__}: {error}"
    keep(path, found | {"seconds": round(time.time() - begun)})


def read(path: Path, python: str, limit: int) -> None:
    """What OpenCV computes from the written file, by the engine it takes itself and by the classic one."""
    found = json.loads(path.with_suffix(".json").read_text())
    if not path.with_suffix(".onnx").exists():
        return
    for engine in ("ENGINE_AUTO", "ENGINE_CLASSIC"):
        if engine not in found:
            said = ended([python, "-c", OPENCV, str(path), engine], limit)
            number = said.rpartition("RESULT ")[2]
            found[engine] = float(number) if "RESULT" in said else textwrap.shorten(said, 400)
    keep(path, found)


def ended(command: list[str], limit: int) -> str:
    """What a process said last."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return f"longer than {limit} s"
    return (done.stdout + done.stderr)[-1500:] + f" (status {done.returncode})" * bool(done.returncode)


def keep(path: Path, found: dict) -> None:
    path.with_suffix(".json").write_text(json.dumps(found, indent=1))


def shown(found: dict) -> str:
    keys = (
        "layers",
        "blobs",
        "worst",
        "dynamic",
        "domains",
        "seconds",
        "ENGINE_AUTO",
        "ENGINE_CLASSIC",
        "error",
    )
    return " ".join(f"{key}={str(found[key])[:200]}" for key in keys if key in found)


if __name__ == "__main__":
    sys.exit(main())
