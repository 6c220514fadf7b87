"""The record of 64-bit words that a call hands to a Caffe layer. The C side is src/caffe/caffe_layer.h."""

import struct
from array import array

from torch import Tensor

HEAD, BLOB = 16, 48  # words of the head, and of each blob record
MODE, DEVICE, STREAM, PHASE, BOTTOMS, TOPS, BLOBS, SEED, ITERATION = range(9)  # in the head
DATA, DATA_TOKEN, DIFF, DIFF_TOKEN, FLAGS, LOSS_WEIGHT, AXES = range(7)  # in a blob record
SHAPE, MOST_AXES = 8, 32
WANTED, DATA_UNDEFINED, DIFF_UNDEFINED, IN_PLACE = 1, 2, 4, 8  # flags; IN_PLACE: the bottom's number << 8

Shape = tuple[int, ...]


class Record:
    """The head, then a blob record for each bottom, each top, each parameter blob."""

    def __init__(self, bottoms: int, tops: int, blobs: int = 0):
        self.words = array("q", bytes(8 * (HEAD + BLOB * (bottoms + tops + blobs))))
        self.address = self.words.buffer_info()[0]
        self.words[BOTTOMS], self.words[TOPS], self.words[BLOBS] = bottoms, tops, blobs
        self.bottoms = [HEAD + BLOB * i for i in range(bottoms)]
        self.tops = [HEAD + BLOB * (bottoms + i) for i in range(tops)]
        self.blobs = [HEAD + BLOB * (bottoms + tops + i) for i in range(blobs)]

    def put(self, at: int, shape: Shape, data: int = 0, diff: int = 0, flags: int = 0) -> None:
        """Fill in the blob record at this word."""
        blob = (data, -1, diff, -1, flags, 0, len(shape), 0, *shape)
        self.words[at : at + len(blob)] = array("q", blob)

    def shape(self, at: int) -> Shape:
        return tuple(self.words[at + SHAPE : at + SHAPE + self.words[at + AXES]])

    def loss_weight(self, at: int) -> float:
        return struct.unpack("d", struct.pack("q", self.words[at + LOSS_WEIGHT]))[0]


def shapes_of(tensors: list[Tensor]) -> tuple[Shape, ...]:
    return tuple(tuple(t.shape) for t in tensors)
