"""Files of strangers: damaged, of another kind, endless, or leading elsewhere. Each is read; what is said is printed.

    python tests/support/hostile_files.py folder       a line of JSON for each file: kind, damage, error, text

A file that is read for longer than SECONDS ends the process with the stack of what waits. `limited` limits the memory.
"""

import faulthandler
import gzip
import io
import json
import os
import random
import resource
import socket
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

SECONDS, MEMORY = 20, 2 << 30
NET = """name: "n" input: "data" input_shape { dim: 1 dim: 30 }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "y" inner_product_param { num_output: 20 } }
"""
POINTER = (
    b"version https://git-lfs.github.com/spec/v1\noid sha256:"
    + b"4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)
SOLVER = (
    'net_param { %s } base_lr: 0.1 lr_policy: "fixed" max_iter: 3 snapshot_prefix: "made" solver_mode: CPU'
)


def bomb() -> bytes:
    """An npz whose array is a thousand times as large as the file."""
    text = io.BytesIO()
    with zipfile.ZipFile(text, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.npy", bytes(1 << 26))
    return text.getvalue()


def array() -> bytes:
    text = io.BytesIO()
    np.save(text, np.zeros(7))
    return text.getvalue()


def pixels() -> bytes:
    """A PNG that says that it has 60,000 x 60,000 pixels, and has a thousand bytes of them."""

    def part(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", head)
        + part(b"IDAT", zlib.compress(bytes(1000)))
        + part(b"IEND", b"")
    )


# Files of another kind than the one that is wanted, and lengths that no file has.
FOREIGN = {
    "empty": b"", "pointer": POINTER, "page": b"<!DOCTYPE html><html><body>404</body></html>\n", "npz bomb": bomb(),
    "gzip": gzip.compress(b"x" * 99), "npy": array(), "png": b"\x89PNG\r\n\x1a\n" + bytes(99), "zeros": bytes(5000),
    "pixels": pixels(),
    "long length": b"\xa2\x06" + b"\xff" * 9 + b"\x01", "past the end": b"\xa2\x06\xff\xff\xff\xff\x07ab",
    "long tag": b"\xff" * 5000, "nested": b"\xa3\x06" * 200_000, "braces": b"layer { " * 100_000,
    "one token": b"a" * 3_000_000, "open string": b'name: "' + b"x" * 100_000, "pickle": b"\x80\x04cos\nsystem\n.",
}  # fmt: skip
IRREGULAR = ("pipe", "zero", "random", "socket", "folder", "loop", "nowhere")


def irregular(path: Path, kind: str) -> None:
    """What is no file: it waits, never ends, or is not there."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            here = os.open(".", os.O_RDONLY)
            os.chdir(path.parent)  # a socket's path has at most 107 bytes
            made.bind(path.name)
            os.fchdir(here)
            os.close(here)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(
            {"zero": "/dev/zero", "random": "/dev/urandom", "loop": path.name, "nowhere": "none"}[kind]
        )


def damages(whole: bytes, seed: int) -> Iterator[tuple[str, bytes]]:
    """Truncations and changed bytes. Some of these are still a right file."""
    generator = random.Random(seed)
    for part in range(12):
        yield f"cut {part}", whole[: len(whole) * part // 12]
    for number in range(12):
        changed = bytearray(whole)
        for _ in range(1 << number % 5):
            at = generator.randrange(len(changed) if number % 2 else min(len(changed), 400))
            changed[at] ^= 1 << generator.randrange(8)
        yield f"changed {number}", bytes(changed)


def put(path: Path, content) -> None:
    """A file in the place of what is there."""
    if path.is_symlink() or path.exists():
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    content(path) if callable(content) else path.write_bytes(content)


def contents(whole: bytes, seed: int) -> Iterator[tuple[str, object]]:
    yield from FOREIGN.items()
    for kind in IRREGULAR:
        yield kind, lambda path, kind=kind: irregular(path, kind)
    yield from damages(whole, seed)


class Kinds:
    """Of each kind of file: its name, a right one, and what reads it."""

    def __init__(self, folder: Path):
        self.folder = folder
        os.chdir(folder)

    def all(self) -> Iterator[tuple[Path, Callable]]:
        from cuffi import caffe, caffe_net
        from cuffi.caffe_files.caffemodel import mean_image
        from cuffi.nets.solver.snapshots import read_random
        from cuffi.nets.solver.solver_prototxt import read_settings
        from cuffi.nets.solver.training import Training

        Path("right.prototxt").write_text(NET)
        net = caffe.Net(NET, caffe.TEST)
        net.save("right.caffemodel")
        net.save_hdf5("right.caffemodel.h5")
        self.data()
        Path("right.solver").write_text(SOLVER % NET.replace("\n", " "))
        mean = caffe.proto.caffe_pb2.BlobProto(channels=3, height=4, width=4, num=1, data=[1.0] * 48)
        Path("right.binaryproto").write_bytes(mean.SerializeToString())
        yield Path("right.prototxt"), caffe_net
        yield Path("right.solver"), read_settings
        yield Path("right.caffemodel"), lambda path: caffe_net(NET, path)
        yield Path("right.caffemodel.h5"), lambda path: caffe_net(NET, path)
        yield Path("right.binaryproto"), mean_image
        for name, layer in (("right.mdb", "Data"), ("right.txt", "ImageData"), ("right.list", "HDF5Data"),
                            ("right.h5", "HDF5Data"), ("right.png", "ImageData")):  # fmt: skip
            yield Path(name), lambda path, layer=layer: self.first_batch(path, layer)
        training = Training("right.solver", device="cpu")
        training.snapshot()
        state = next(Path().glob("made_iter_*.solverstate"))
        state.rename("right.solverstate")
        state.with_suffix(".random").rename("right.random")
        yield Path("right.solverstate"), training.resume
        yield Path("right.random"), lambda path: read_random(training, path)

    def data(self) -> None:
        import cv2
        import h5py
        import lmdb

        from cuffi import caffe

        with lmdb.open("db", map_size=1 << 20) as made, made.begin(write=True) as transaction:
            datum = caffe.proto.caffe_pb2.Datum(channels=3, height=4, width=4, data=bytes(48))
            transaction.put(b"0", datum.SerializeToString())
        Path("db", "data.mdb").rename("right.mdb")
        cv2.imwrite("right.png", np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
        with h5py.File("right.h5", "w") as file:
            file["data"], file["label"] = np.zeros((3, 4), np.float32), np.zeros(3, np.float32)
        Path("right.txt").write_text("right.png 0\nright.png 1\n")
        Path("right.list").write_text("right.h5\n")

    def first_batch(self, path: Path, layer: str) -> object:
        from cuffi import caffe_net

        parameter = {"Data": "data_param", "ImageData": "image_data_param", "HDF5Data": "hdf5_data_param"}[
            layer
        ]
        if path.suffix in (".h5", ".png"):  # the list names it
            list_of = Path("list.txt")
            list_of.write_text(f"{path}\n" if layer == "HDF5Data" else f"{path} 0\n")
            path = list_of
        backend = "backend: LMDB" if layer == "Data" else ""
        net = caffe_net(
            f'layer {{ name: "d" type: "{layer}" top: "data" top: "label" '
            f'{parameter} {{ source: "{path}" batch_size: 1 {backend} }} }}', train=True
        )  # fmt: skip
        return next(iter(net.data_loaders(workers=0)["d"]))


def said(read: Callable, path: Path) -> tuple[str, str]:
    """(the error's class, its text) of what reads the file; two empty ones if it is taken."""
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        read(path)
    except Exception as error:
        classes = " ".join(kind.__name__ for kind in type(error).__mro__)
        return classes, str(error)
    finally:
        faulthandler.cancel_dump_traceback_later()
    return "", ""


def limited() -> None:
    """Limit the memory to what is used now, and MEMORY."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))


def main(folder: Path) -> None:
    import torch

    torch.set_num_threads(1)
    for seed, (right, read) in enumerate(Kinds(folder).all()):
        whole, path = right.read_bytes(), Path(f"odd{right.suffixes[0]}{''.join(right.suffixes[1:])}")
        limited()
        for damage, content in contents(whole, seed):
            put(path, content)
            print(json.dumps((right.name, damage, str(path))), end=" ", flush=True)
            print(json.dumps(said(read, path)), flush=True)
        put(path, b"")
        path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
