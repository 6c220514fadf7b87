"""The sources of data layers: databases of Datum, lists of images, HDF5 files. `source[i]` is a list of arrays."""

from __future__ import annotations

import abc
import bisect
import functools
import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from .._net.messages import STOCK
from .._runtime import CaffeRuntimeError, CaffeValueError
from .._shown import command


def package(name: str, what: str, pip: str = ""):
    """Import a package. CaffeRuntimeError with the command that installs it, if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        install = command("pip", "install", pip or name)
        raise CaffeRuntimeError(f"{what} needs the package {name}: {install}") from None


def decoded(data: bytes, color: bool | None, where: str) -> np.ndarray:
    """An image file's content as uint8 [channels, height, width], blue first, as OpenCV reads it for Caffe.

    Args:
        color: True: three channels; False: one; None: as in the file.
    """
    cv2 = package("cv2", f"{where}: an image", "opencv-python-headless")
    flag = cv2.IMREAD_UNCHANGED if color is None else cv2.IMREAD_COLOR if color else cv2.IMREAD_GRAYSCALE
    image = cv2.imdecode(np.frombuffer(data, np.uint8), flag) if data else None
    if image is None:
        raise CaffeValueError(f"{where}: not an image that OpenCV reads")
    return planes(image)


def planes(image: np.ndarray) -> np.ndarray:
    """[height, width] or [height, width, channels] as [channels, height, width]."""
    return image[None] if image.ndim == 2 else image.transpose(2, 0, 1)


_LMDB_HEAD = 2 * 4096  # its first two pages contain its length


class Datums(abc.ABC):
    """A database of Datum: the image and the label of each, in the order of the keys."""

    def __init__(self, path: str, color: bool | None, where: str):
        self.path, self.color, self.where = os.path.realpath(path), color, f"{where}: {path}"
        if not os.path.exists(path):
            raise CaffeValueError(f"{self.where}: there is no such database")
        if self.first() is None:
            raise CaffeValueError(f"{self.where}: the database is empty")

    @abc.abstractmethod
    def first(self) -> bytes | None:
        """The first key; None if there is none."""

    @abc.abstractmethod
    def _keys(self) -> list[bytes]:
        """All keys, in their order."""

    @abc.abstractmethod
    def _value(self, key: bytes) -> bytes | None:
        """The Datum of a key, serialized."""

    @functools.cached_property
    def keys(self) -> list[bytes]:
        return self._keys()

    def item(self) -> list[np.ndarray]:
        """The first item, without reading all keys."""
        return self._item(self.first() or b"")

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, i: int) -> list[np.ndarray]:
        return self._item(self.keys[i])

    def _item(self, key: bytes) -> list[np.ndarray]:
        from google.protobuf.message import DecodeError

        value, where = self._value(key), f"{self.where}: key {key.decode(errors='replace')!r}"
        datum = STOCK.message("Datum")
        try:
            if value is None:
                raise DecodeError
            datum.ParseFromString(value)
        except DecodeError:
            raise CaffeValueError(f"{where}: not a Datum") from None
        return [self._image(datum, where), np.array(datum.label, np.float32)]

    def _image(self, datum, where: str) -> np.ndarray:
        if datum.encoded:
            return decoded(datum.data, self.color, where)
        shape = (datum.channels, datum.height, datum.width)
        flat = np.frombuffer(datum.data, np.uint8) if datum.data else np.array(datum.float_data, np.float32)
        if flat.size != np.prod(shape):
            raise CaffeValueError(f"{where}: {flat.size} values for {list(shape)}")
        return flat.reshape(shape)


_LMDBS: dict[str, tuple[int, Any]] = {}  # by path: the process that opened it, and the environment


def _lmdb(path: str):
    """Open an LMDB once per process. A forked process must not use its parent's environment, and closes it.

    The file is mapped, and reading past its end would crash the process. So its length is checked first.
    """
    process, opened = _LMDBS.get(path, (0, None))
    if process == os.getpid():
        return opened
    if opened is not None:
        opened.close()
    lmdb = package("lmdb", "an LMDB")
    file = os.path.join(path, "data.mdb") if os.path.isdir(path) else path
    size = os.path.getsize(file)
    if size < _LMDB_HEAD:
        raise lmdb.CorruptedError(f"{file} is cut off: it has {size} bytes")
    opened = lmdb.open(path, subdir=os.path.isdir(path), readonly=True, lock=False, readahead=False)
    wanted = (opened.info()["last_pgno"] + 1) * opened.stat()["psize"]
    if size < wanted:
        opened.close()
        raise lmdb.CorruptedError(f"{file} is cut off: it has {size} bytes of {wanted}")
    _LMDBS[path] = (os.getpid(), opened)
    return opened


@functools.cache
def _leveldb(path: str):
    """(a LevelDB, the process that opened it). No other process can open it at the same time.

    plyvel would write a log and a lock into a folder that is not a LevelDB.
    """
    if not os.path.exists(os.path.join(path, "CURRENT")):
        raise FileNotFoundError("not a LevelDB: it has no file CURRENT")
    return package("plyvel", "a LevelDB").DB(path, create_if_missing=False), os.getpid()


class LMDB(Datums):
    """An LMDB."""

    def _read(self, read):
        """read(transaction)."""
        lmdb = package("lmdb", f"{self.where}: an LMDB")
        try:
            with _lmdb(self.path).begin() as transaction:
                return read(transaction)
        except lmdb.Error as error:
            raise CaffeValueError(f"{self.where}: {error}") from None

    def first(self) -> bytes | None:
        return self._read(lambda transaction: next(transaction.cursor().iternext(values=False), None))

    def _keys(self) -> list[bytes]:
        return self._read(lambda transaction: list(transaction.cursor().iternext(values=False)))

    def _value(self, key: bytes) -> bytes | None:
        return self._read(lambda transaction: transaction.get(key))


class LevelDB(Datums):
    """A LevelDB. It is read without workers."""

    def _read(self, read):
        """read(database)."""
        plyvel = package("plyvel", f"{self.where}: a LevelDB")
        try:
            opened, process = _leveldb(self.path)
            if process != os.getpid():
                raise CaffeRuntimeError(f"{self.where}: a LevelDB is read by one process: use workers=0")
            return read(opened)
        except (plyvel.Error, OSError) as error:
            raise CaffeValueError(f"{self.where}: {error}") from None

    def first(self) -> bytes | None:
        return self._read(lambda database: next(iter(database.iterator(include_value=False)), None))

    def _keys(self) -> list[bytes]:
        return self._read(lambda database: list(database.iterator(include_value=False)))

    def _value(self, key: bytes) -> bytes | None:
        return self._read(lambda database: database.get(key))


class ImageList:
    """ImageData's list: a path and a label on each line."""

    def item(self) -> list[np.ndarray]:
        return self[0]

    def __init__(self, param, find, where: str):
        self.where, self.root, self.color = where, param.root_folder, param.is_color
        self.size = (param.new_width, param.new_height)
        if (self.size[0] == 0) != (self.size[1] == 0):
            raise CaffeValueError(f"{where}: new_height and new_width: give both or none")
        self.items = []
        source = find(param.source)
        with open(source, encoding="utf-8", errors="surrogateescape") as lines:
            for number, line in enumerate(lines, 1):
                name, _, label = line.strip().rpartition(" ")
                if not line.strip():
                    continue
                if not name or not label.lstrip("-").isdigit():
                    raise CaffeValueError(
                        f"{source}, line {number}: expected a path and a label, got {line[:60]!r}"
                    )
                self.items.append((name, int(label)))
        if not self.items:
            raise CaffeValueError(f"{source}: no images in it")
        self.find = find

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> list[np.ndarray]:
        name, label = self.items[i]
        path = self.find(self.root + name)
        with open(path, "rb") as file:
            image = decoded(file.read(), bool(self.color), f"{self.where}: {path}")
        if self.size[0]:
            cv2 = package("cv2", f"{self.where}: an image", "opencv-python-headless")
            image = planes(cv2.resize(image.transpose(1, 2, 0), self.size))
        return [image, np.array(label, np.float32)]


class HDF5Files:
    """HDF5Data's list of files. Each has a dataset for each top; the rows of all files follow each other."""

    def item(self) -> list[np.ndarray]:
        return self[0]

    def __init__(self, param, tops: tuple[str, ...], find, where: str):
        h5py = package("h5py", f"{where}: an HDF5 file")
        source = find(param.source)
        self.where, self.tops = where, tops
        self.paths = [find(line.strip()) for line in Path(source).read_text().splitlines() if line.strip()]
        if not self.paths:
            raise CaffeValueError(f"{source}: no files in it")
        self._process, self._opened, self.ends = None, {}, []
        for path in self.paths:
            try:
                with h5py.File(path, "r") as file:
                    if missing := [top for top in tops if top not in file]:
                        raise CaffeValueError(
                            f"{where}: {path}: no dataset {missing[0]!r}. There are: {', '.join(file)}"
                        )
                    counts = {top: file[top].shape[0] for top in tops}
            except OSError as error:
                raise CaffeValueError(f"{where}: {path}: {error}") from None
            if len(set(counts.values())) != 1:
                raise CaffeValueError(f"{where}: {path}: rows differ: {counts}")
            self.ends.append((self.ends[-1] if self.ends else 0) + counts[tops[0]])

    def __len__(self) -> int:
        return self.ends[-1]

    def __getitem__(self, i: int) -> list[np.ndarray]:
        if self._process != os.getpid():
            self._process, self._opened = os.getpid(), {}
        number = bisect.bisect_right(self.ends, i)
        path, row = self.paths[number], i - (self.ends[number - 1] if number else 0)
        if path not in self._opened:
            self._opened[path] = package("h5py", self.where).File(path, "r")
        return [np.asarray(self._opened[path][top][row], np.float32) for top in self.tops]

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_process": None, "_opened": {}}
