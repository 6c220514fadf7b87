"""What make prints last: each built layer run once on a real input, what failed to build, what to type next."""

import argparse
import importlib
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="*")
    parser.add_argument("--layers-dir", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument(
        "--backends", required=True, help="what the toolchain can build: 'host' or 'host cuda'"
    )
    parser.add_argument("--status", type=int, default=0, help="make's exit status")
    arguments = parser.parse_args()
    backends = arguments.backends.split()
    libraries = {
        (n, b): arguments.layers_dir / n / f"_{b}.abi3.so" for n in arguments.layers for b in backends
    }
    failed = [
        key for key, library in libraries.items() if is_stale(library, arguments.build / key[0] / key[1])
    ]
    built = [name for name in arguments.layers if any(libraries[name, b].exists() for b in backends)]
    stamp = arguments.build / "report"
    ok = True
    reported = stamp.stat().st_mtime if stamp.exists() else 0
    if not failed and not arguments.status and all(reported >= x.stat().st_mtime for x in libraries.values()):
        print(
            f"Nothing to do: {len(built)} layers are built for {' and '.join(backends)}. Next: python test.py"
        )
        return 0
    if built:
        ok = show(arguments.layers_dir, built)
    count = len(arguments.layers) - len({name for name, _ in failed})
    print(f"{count} of {len(arguments.layers)} layers built for {' and '.join(backends)}.")
    if "cuda" not in backends:
        print(
            "Left out: the CUDA backend, because no nvcc was found (README.md says where it is looked for)."
        )
    for name, backend in failed:
        print(f"FAILED: {name} for {backend}: see the logs in {arguments.build / name / backend}")
    for name in dict.fromkeys(name for name, _ in failed):
        for message, field in missing_fields(arguments.build / name):
            print(
                f"{name}: {message} has no {field}: put the fork's caffe.proto into {arguments.layers_dir / name}, "
                "or a .proto with that message alone (docs/port-a-caffe-layer.md, section 1)."
            )
    if failed or arguments.status or not ok:
        return 1
    stamp.touch()
    print("Next: python test.py")
    return 0


def missing_fields(objects: Path) -> list[tuple[str, str]]:
    """Of a Caffe layer that did not compile: messages, and what its files call of them that they lack."""
    lacking = re.compile(r"class \W?caffe::(\w+Parameter)\W+has no member\W+(?:named\W+)?(\w+)")
    texts = (log.read_text(errors="replace") for log in sorted(objects.rglob("*.log")))
    return list(dict.fromkeys(found for text in texts for found in lacking.findall(text)))


def is_stale(library: Path, objects: Path) -> bool:
    """Whether a library is missing or older than what it is made of: then its build has failed."""
    if not library.exists():
        return True
    header = library.parent / f"{library.parent.name}.h"  # a Caffe layer has none
    prepared = [objects.parent / stamp for stamp in ("forward.stamp", "proto.stamp")]
    if not header.exists() and not all(stamp.exists() for stamp in prepared):
        return True
    # A failed step leaves its log, whatever else it leaves. The last step's is written beside the library.
    made = [header, *(f for f in objects.rglob("*") if f.name != "ffi.log")]
    return any(f.stat().st_mtime > library.stat().st_mtime for f in made if f.is_file())


def show(layers_dir: Path, names: list[str]) -> bool:
    import torch
    from rich.console import Console
    from rich.table import Table

    sys.path.insert(0, str(ROOT))
    from layers._cases import layer_of, load_package

    package = load_package(layers_dir)
    table = Table("layer", "backends", "ran on", "largest error", "time", title=None)
    good = True
    for name in names:
        try:
            module = importlib.import_module(f"{package}.{name}")
            if (
                not (layers_dir / name / "cases.py").exists()
                and not (layers_dir / name / f"{name}.h").exists()
            ):
                backends = [b for b in ("host", "cuda") if (layers_dir / name / f"_{b}.abi3.so").exists()]
                table.add_row(name, " ".join(backends), "", f"make verify LAYER={name}", "")
                continue
            cases = importlib.import_module(f"{package}.{name}.cases").CASES
            layer = layer_of(module)
            device = "cuda" if torch.cuda.is_available() and "cuda" in layer.backends() else "cpu"
            error, limit, seconds = run_once(cases[0], device)
            where = torch.cuda.get_device_name() if device == "cuda" else "cpu"
            row = [name, " ".join(layer.backends()), where, f"{error:.1e}", f"{seconds * 1e6:.0f} us"]
            if not error <= limit:
                good, row[3] = False, f"[red]{error:.1e} > {limit:.1e}"
        except Exception as error:
            if "not filled in" in str(
                error
            ):  # what `make new FROM=` leaves to do; it builds, and that is all it can
                table.add_row(name, "", "[yellow]not filled in", str(error), "")
                continue
            good, row = False, [name, "", "[red]failed", f"{type(error).__name__}: {error}", ""]
        table.add_row(*row)
    Console().print(table)
    if not torch.cuda.is_available():
        print("No GPU here: what was built for CUDA was not run.")
    return good


def run_once(case, device: str) -> tuple[float, float, float]:
    """(largest error, what is allowed, seconds of the second call), in float32 on the case's first input."""
    import torch

    from layers._cases import Draw, cast, largest_error

    arguments = cast(next(iter(case.inputs.values()))(Draw()), torch.float32, device)
    result = case.function(*arguments)
    reference = case.reference(*cast(arguments, torch.float64, "cpu"))
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    case.function(*arguments)
    wait()
    seconds = time.perf_counter() - start
    relative, absolute = case.tolerance_for(torch.float32)
    first = reference if isinstance(reference, torch.Tensor) else reference[0]
    scale = first.abs().max().item() if first.numel() else 0.0
    return largest_error(result, reference), absolute + relative * scale, seconds


if __name__ == "__main__":
    sys.exit(main())
