"""The record of one call, which a Caffe layer object is handed: the structs of include/caffe/layer_record.h."""

from torch import Tensor

Shape = tuple[int, ...]
MOST_AXES = 32  # CAFFE_MOST_AXES; checked when a library is loaded


class Record:
    """A caffe_call_record, with the blob records of its bottoms, tops and parameters.

    Args:
        library: whose cffi knows the structs.
        bottoms, tops, parameters: how many there are of each.
    """

    def __init__(self, library, bottoms: int, tops: int, parameters: int = 0):
        ffi, count = library.ffi, bottoms + tops + parameters
        self.head = head = ffi.new("caffe_call_record *", {"blobs": count})
        self.address = int(ffi.cast("uintptr_t", head))
        self.bytes = ffi.buffer(head, ffi.offsetof("caffe_call_record", "blobs", count))
        head.bottoms, head.tops, head.parameters = bottoms, tops, parameters
        blobs = [head.blobs[i] for i in range(count)]
        self.bottoms, self.tops, self.parameters = (
            blobs[:bottoms],
            blobs[bottoms : bottoms + tops],
            blobs[bottoms + tops :],
        )
        for blob in blobs:
            put(blob, ())


def put(blob, shape: Shape, data: int = 0, diff: int = 0, flags: int = 0, in_place_of: int = -1) -> None:
    """Fill in a caffe_blob_record."""
    blob.data, blob.data_token, blob.diff, blob.diff_token = data, -1, diff, -1
    blob.flags, blob.in_place_of, blob.axes = flags, in_place_of, len(shape)
    blob.shape[0 : len(shape)] = shape


def shape_of(blob) -> Shape:
    """The shape in a caffe_blob_record."""
    return tuple(blob.shape[0 : blob.axes])


def shapes_of(tensors: list[Tensor]) -> tuple[Shape, ...]:
    return tuple(tuple(t.shape) for t in tensors)
