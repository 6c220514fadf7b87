"""The sources of data layers: databases of Datum, lists of images, HDF5 files. `source[i]` is a list of arrays."""

from __future__ import annotations

import abc
import array
import bisect
import functools
import importlib
import math
import os
import re
import stat

import numpy as np
from google.protobuf.message import DecodeError

from ...base import CaffeRuntimeError, CaffeValueError
from ...base.files import text_bytes, to_read
from ...base.shown import command
from ...caffe_files import hdf5
from ..net.messages import STOCK
from .lmdb_file import LMDBError, LMDBFile


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
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), flag) if data else None
    except (cv2.error, MemoryError) as error:  # more pixels than it takes: a few bytes can claim them
        said = " ".join(str(error).split()).rpartition("error: ")[2]
        raise CaffeValueError(f"{where}: not an image that OpenCV reads: {said}") from None
    if image is None:
        raise CaffeValueError(f"{where}: not an image that OpenCV reads")
    return planes(image)


def planes(image: np.ndarray) -> np.ndarray:
    """[height, width] or [height, width, channels] as [channels, height, width]."""
    return image[None] if image.ndim == 2 else image.transpose(2, 0, 1)


def _lines(path: str) -> list[str]:
    """The lines of a list of files. A name that is not UTF-8 has surrogates, as Python's own names of files have."""
    return text_bytes(path).decode("utf-8", "surrogateescape").split("\n")


def _listed(find, name: str, source: str, number: int) -> str:
    """The file that a line of a list names."""
    try:
        return find(name, "this line of the list")
    except CaffeValueError as error:
        raise CaffeValueError(f"{source}, line {number}: {error}") from None


@functools.cache
def _datum() -> type:
    return type(STOCK.message("Datum"))


class Datums(abc.ABC):
    """A database of Datum: the image and the label of each, in the order of the keys."""

    def __init__(self, path: str, color: bool | None, where: str):
        self.path, self.color, self.where = os.path.realpath(path), color, f"{where}: {path}"
        if not os.path.exists(path):
            raise CaffeValueError(f"{self.where}: there is no such database")
        if self.first() is None:
            raise CaffeValueError(f"{self.where}: the database is empty")

    def _name(self, key) -> str:
        """The key, for messages."""
        return key.decode(errors="replace")

    @abc.abstractmethod
    def first(self):
        """The first key; None if there is none."""

    @abc.abstractmethod
    def _keys(self):
        """All keys, in their order."""

    @abc.abstractmethod
    def _value(self, key) -> bytes | None:
        """The Datum of a key, serialized."""

    @functools.cached_property
    def keys(self):
        return self._keys()

    def item(self) -> list[np.ndarray]:
        """The first item, without reading all keys."""
        return self._item(self.first())

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, i: int) -> list[np.ndarray]:
        return self._item(self.keys[i])

    def _item(self, key) -> list[np.ndarray]:
        value, datum = self._value(key), _datum()()
        try:
            if value is None:
                raise DecodeError
            datum.ParseFromString(value)
            return [self._image(datum), np.array(datum.label, np.float32)]
        except DecodeError:
            raise CaffeValueError(f"{self.where}: key {self._name(key)!r}: not a Datum") from None
        except CaffeValueError as error:
            raise CaffeValueError(f"{self.where}: key {self._name(key)!r}: {error}") from None

    def _image(self, datum) -> np.ndarray:
        if datum.encoded:
            return decoded(datum.data, self.color, "encoded")
        shape = (datum.channels, datum.height, datum.width)
        data = datum.data
        flat = np.frombuffer(data, np.uint8) if data else np.array(datum.float_data, np.float32)
        if flat.size != math.prod(shape):
            raise CaffeValueError(f"{flat.size} values for {list(shape)}")
        return flat.reshape(shape)


@functools.cache
def _leveldb(path: str):
    """(a LevelDB, the process that opened it). No other process can open it at the same time.

    plyvel would write a log and a lock into a folder that is not a LevelDB.
    """
    if not os.path.exists(os.path.join(path, "CURRENT")):
        raise FileNotFoundError("not a LevelDB: it has no file CURRENT")
    for entry in os.scandir(path):  # LevelDB opens all that have its names, and would wait for a pipe
        if not stat.S_ISREG(entry.stat().st_mode):
            raise FileNotFoundError(f"not a LevelDB: {entry.name} is no regular file")
    return package("plyvel", "a LevelDB").DB(path, create_if_missing=False), os.getpid()


class LMDB(Datums):
    """An LMDB. Its keys are the places of its entries in the file."""

    @functools.cached_property
    def _file(self) -> LMDBFile:
        return LMDBFile(self.path)

    def _read(self, read):
        """read(file)."""
        try:
            return read(self._file)
        except (LMDBError, OSError) as error:
            raise CaffeValueError(f"{self.where}: {error}") from None

    def first(self):
        return self._read(lambda file: next(file.places(), None))

    def _keys(self):
        return self._read(lambda file: array.array("Q", file.places()))

    def _value(self, key) -> bytes:
        try:
            return self._file.value(key)
        except LMDBError as error:
            raise CaffeValueError(f"{self.where}: {error}") from None

    def _name(self, key) -> str:
        return self._read(lambda file: file.key(key)).decode(errors="replace")

    def __getstate__(self) -> dict:
        return {name: value for name, value in self.__dict__.items() if name != "_file"}


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


# An image's label.
_LABEL = re.compile(r"-?[0-9]+")


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
        source = find(
            param.source,
            "the layer's source, a text file with a line such as 'images/cat.jpg 3' for each image",
        )
        for number, line in enumerate(_lines(source), 1):
            if not line.strip():
                continue
            name, *label = line.strip().rsplit(maxsplit=1)  # by blanks or tabs
            if not label or not _LABEL.fullmatch(label[0]):
                raise CaffeValueError(
                    f"{source}, line {number}: expected a path and a label, got {line[:60]!r}"
                )
            self.items.append((name, int(label[0]), number))
        if not self.items:
            raise CaffeValueError(f"{source}: no images in it")
        self.find, self.source = find, source

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> list[np.ndarray]:
        name, label, number = self.items[i]
        path = _listed(self.find, self.root + name, self.source, number)
        with to_read(path) as file:
            image = decoded(file.read(), bool(self.color), f"{self.where}: {path}")
        if self.size[0]:
            cv2 = package("cv2", f"{self.where}: an image", "opencv-python-headless")
            image = planes(cv2.resize(image.transpose(1, 2, 0), self.size))
        return [image, np.array(label, np.float32)]


class HDF5Files:
    """HDF5Data's list of files. Each has a dataset for each top; the rows of all files follow each other."""

    def __init__(self, param, tops: tuple[str, ...], find, where: str):
        hdf5.package(where)
        source = find(param.source, "the layer's source, a text file that names an .h5 file in each line")
        self.where, self.tops = where, tops
        self.paths = [
            _listed(find, line.strip(), source, number)
            for number, line in enumerate(_lines(source), 1)
            if line.strip()
        ]
        if not self.paths:
            raise CaffeValueError(f"{source}: no files in it")
        self._held, self.ends = {}, []
        for path in self.paths:
            with hdf5.opened(path, where) as file:
                if missing := [top for top in tops if top not in file]:
                    raise CaffeValueError(
                        f"{where}: {path}: no dataset {missing[0]!r}. There are: {', '.join(file)}"
                    )
                counts = {top: file[top].shape[0] for top in tops}
            if len(set(counts.values())) != 1:
                raise CaffeValueError(f"{where}: {path}: rows differ: {counts}")
            self.ends.append((self.ends[-1] if self.ends else 0) + counts[tops[0]])

    def __len__(self) -> int:
        return self.ends[-1]

    def __getitem__(self, i: int) -> list[np.ndarray]:
        number = bisect.bisect_right(self.ends, i)
        row = i - (self.ends[number - 1] if number else 0)
        return [np.asarray(rows[row], np.float32) for rows in self._rows(number)]

    def item(self) -> list[np.ndarray]:
        with self._open(0) as file:
            return [np.asarray(file[top][0], np.float32) for top in self.tops]

    def _open(self, number: int):
        return hdf5.opened(self.paths[number], self.where)

    def _rows(self, number: int) -> list[np.ndarray]:
        """The datasets of a file. As in Caffe, they are read as a whole: a row of a compressed one costs its chunk."""
        if number not in self._held:
            while len(self._held) > 1:  # a batch may lie in two files
                self._held.pop(next(iter(self._held)))
            with self._open(number) as file:
                what = f"{self.where}: {self.paths[number]}"
                self._held[number] = [hdf5.values(file[top], what) for top in self.tops]
        return self._held[number]

    def order(self, random) -> list[int]:
        """A shuffled order: as in Caffe, the files are shuffled, and the rows of each."""
        starts, found = [0, *self.ends], []
        for number in random.sample(range(len(self.ends)), len(self.ends)):
            rows = range(starts[number], starts[number + 1])
            found += random.sample(rows, len(rows))
        return found

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_held": {}}
