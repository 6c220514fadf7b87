"""caffe_pb2: the messages of old files and of solvers, in binary and text format."""

import pytest
from google.protobuf import text_format

from cuffi.caffe_files.upgrade import v2_type
from cuffi.nets.pycaffe.proto import caffe_pb2
from cuffi.nets.stock import stock_types


def test_enums_and_their_values_have_protoc_s_names():
    assert (caffe_pb2.TRAIN, caffe_pb2.TEST) == (0, 1)
    assert caffe_pb2.Phase.Name(1) == "TEST"
    assert caffe_pb2.PoolingParameter.AVE == caffe_pb2.PoolingParameter.PoolMethod.Value("AVE") == 1
    assert caffe_pb2.V1LayerParameter.LayerType.Name(39) == "DECONVOLUTION"
    assert caffe_pb2.LayerParameter.DESCRIPTOR.fields_by_name["clip_param"].number == 148


def test_a_solver_file_is_read_with_caffe_s_defaults():
    solver = caffe_pb2.SolverParameter()
    text_format.Merge('net: "a" base_lr: 0.5 stepvalue: 3 stepvalue: 4 test_iter: 9 solver_mode: CPU', solver)
    assert (list(solver.stepvalue), list(solver.test_iter), solver.solver_mode) == ([3, 4], [9], 0)
    defaults = ("SGD", "L2", 1, -1, -1, True)
    names = (
        "type",
        "regularization_type",
        "iter_size",
        "clip_gradients",
        "random_seed",
        "snapshot_after_train",
    )
    assert tuple(getattr(solver, name) for name in names) == defaults
    assert not solver.HasField("momentum")


@pytest.mark.parametrize(
    ("message", "field", "value", "wire"),
    [
        # Tags and values by protobuf's encoding: number << 3 | wire type.
        ("SolverParameter", "iter_size", 4, b"\xa0\x02\x04"),
        ("SolverParameter", "type", "Adam", b"\xc2\x02\x04Adam"),
        ("SolverState", "current_step", 7, b"\x20\x07"),
        ("V1LayerParameter", "type", 18, b"\x28\x12"),
        ("V0LayerParameter", "kernelsize", 3, b"\x40\x03"),
    ],
)
def test_binary_files_are_read_by_caffe_s_numbers(message, field, value, wire):
    read = getattr(caffe_pb2, message).FromString(wire)
    assert getattr(read, field) == value
    assert read.SerializeToString() == wire


def test_each_type_of_the_older_format_has_a_name_of_today():
    data = {"Data", "DummyData", "HDF5Data", "HDF5Output", "ImageData", "MemoryData", "WindowData", "None"}
    named = {v2_type(word) for word, _ in caffe_pb2.V1LayerParameter.LayerType.items()}
    assert named - data <= set(stock_types())
