"""The Caffe core: checks, memory, blobs, fillers, and the C ABI, on the host.

The programs under tests/fixtures/caffe_core are compiled against the headers as a layer is, and say what happens.
"""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.compiler import CXX
from support.workshop import core_archives, core_includes, made_once

from cuffi.caffe_layers.make.kind import core_folder, units

ROOT = Path(__file__).resolve().parents[3]
INCLUDE = "cuffi/caffe_layers/include/caffe"


def run(*command) -> str:
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def said(shared_folder):
    """The output of each program, {name: text}."""
    folder = made_once(shared_folder / "caffe_core", build_and_run)
    lines = (line for file in sorted(folder.glob("*.said")) for line in file.read_text().splitlines())
    return dict(line.split("\t", 1) for line in lines)


def build_and_run(folder: Path) -> None:
    """The programs, each with what it says beside it."""
    stock, caffe = core_archives()

    def one(program: str) -> None:
        source, binary = Path("tests/fixtures/caffe_core") / f"{program}.cpp", folder / program
        flags = [
            "-std=c++17",
            "-O0",
            "-w",
            "-fno-gnu-unique",
            "-DCAFFE_HOST_BACKEND=1",
            *core_includes(),
            "-Icuffi/caffe_layers/core",
        ]
        # A layer that includes no stock layer is linked without them.
        archives = [stock, caffe] if program in ("memory_test", "net_test") else [caffe]
        run(CXX, *flags, source, *archives, "-pthread", "-ldl", "-o", binary)
        (folder / f"{program}.said").write_text(run(binary))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, ("core_test", "layer_test", "memory_test", "net_test")))


FATAL = "core_test.cpp: "
SHAPES = (
    "Check failed: shapes == 0 || shapes == 1 || shapes == tops Must specify 'shape' once, once per top blob, "
    "or not at all: 3 tops vs. "
)
TWICE = "Check failed: !strict || !found->count(key) the label map has "
CUBLAS_STATUSES = (
    "SUCCESS NOT_INITIALIZED ALLOC_FAILED INVALID_VALUE ARCH_MISMATCH MAPPING_ERROR EXECUTION_FAILED INTERNAL_ERROR "
    "NOT_SUPPORTED LICENSE_ERROR"
)
FREED = (
    "host memory, CUDA's memory, events, SyncedMemory, what lent memory stands for, Blob, message, list, filler, "
    "random numbers, layer of a library, net"
)
NO_VALUES = "(unprintable) vs. (unprintable)"

EXPECTED = {
    # glog's words, and an exception
    "check_eq": FATAL + "Check failed: once() == 2 (1 vs. 2) so 7",
    "operands_evaluated": "1",
    "check": FATAL + "Check failed: 1 > 2 really",
    "check_passes": "nothing",
    "check_enum": FATAL + "Check failed: Color::kRed != Color::kRed (3 vs. 3) ",
    "check_opaque": FATAL + f"Check failed: Opaque() == Opaque() ({NO_VALUES}) ",
    "check_string": FATAL + 'Check failed: string("a") == "b" (a vs. b) ',
    "check_near": FATAL + "Check failed: |1.0 - 2.0| <= 0.5 (1 vs. 0.5) ",
    "check_notnull": FATAL + "Check failed: 'static_cast<int*>(nullptr)' Must be non NULL ",
    "check_streq": FATAL + 'Check failed: "a" == "b" (a vs. b) ',
    "fatal": FATAL + "no 1",
    "fatal_without_a_text": FATAL + "LOG(FATAL), without a text",
    "not_implemented": "NotImplemented",
    "not_implemented_by_hand": "NotImplemented",
    "check_false": "NotImplemented",
    "check_false_with_a_text": FATAL + "Check failed: false no such mode",
    "operand_throws": "other: inner",
    "nested": FATAL + "Check failed: 1 == 2 (1 vs. 2) ",
    "dangling_else": "else",
    "info_evaluated": "0",
    # SyncedMemory
    "states": "UNINITIALIZED HEAD_AT_GPU SYNCED HEAD_AT_CPU SYNCED HEAD_AT_GPU",
    "zero_filled": "yes",
    "read_only": "tensor copy 1 2 3 4 | 9 2 3 4",
    "undefined_is_zeroed": "0 0",
    "overwritten": "7 8 | 0 0",
    "too_small_is_dropped": "yes",
    "own_after_drop": "0 0 0 0",
    # Blob
    "shape": "2 3 4 5 (120) 119 12 5",
    "reshape": "kept zeroed",
    "legacy": "2 3 4 6",
    "legacy_five": "blob.hpp: Check failed: num_axes() <= most_legacy_axes() (5 vs. 4) "
    "Cannot use legacy accessors on Blobs with > 4 axes.",
    "legacy_of_a_fork": "2 5 6",
    "legacy_padded": "5 2 1 1",
    "too_large": "blob.cpp: Check failed: shape[i] <= INT_MAX / count (70000 vs. 30678) "
    "blob size exceeds INT_MAX",
    "negative": "blob.cpp: Check failed: shape[i] >= 0 (-1 vs. 0) ",
    "wide": "blob.cpp: Check failed: shape[i] <= INT_MAX (4294967299 vs. 2147483647) axis 0: Caffe counts in int",
    "wide_negative": "blob.cpp: Check failed: shape[i] >= 0 (-4294967291 vs. 0) ",
    "wide_product": "blob.cpp: Check failed: shape[i] <= INT_MAX / count (65536 vs. 32767) "
    "blob size exceeds INT_MAX",
    "many_axes": "blob.cpp: Check failed: axes <= kMaxBlobAxes (33 vs. 32) ",
    "count_of_nothing": "0 0 0 blob.hpp: Check failed: product <= INT_MAX (4294967296 vs. 2147483647) "
    "elements of axes 1 to 3, of a blob with shape 0 65536 65536 (0)",
    "lying": "blob.cpp: Check failed: count == values.size() (2147483647 vs. 0) ",
    "gpu_shape": "2 3 | 3 2 | 4 5 6 | 4 5 6 | 7",
    "axis": "blob.hpp: Check failed: axis_index < num_axes() (2 vs. 2) "
    "axis 2 out of range for 2-D Blob with shape 5 2 (10)",
    "no_data": "blob.hpp: Check failed: data_ a bottom or top that the layer was not given, "
    "or a blob that was never shaped",
    "share": "one owner",
    "empty": "0 address",
    "int_blob": "0 0 0 NotImplemented",
    "char_blob": "xxx",
    "proto": "3 (3) -1 0 1 2 2 2",
    "legacy_proto": "1 1 1 2 (2) 4 5",
    "shape_equals": "yes",
    "at": "first first 119 119 119 119",
    "copy_from": "blob.cpp: Check failed: reshape Trying to copy blobs of different sizes.",
    "arithmetic": "0 0 0 0, 0 0 0 0, blob.cpp: Check failed: data()->head() != SyncedMemory::UNINITIALIZED (0 vs. 0) "
    "Syncedmem not initialized. UNINITIALIZED 0 0 0 0 0 0 | "
    "3 9 5 35, 6 27 20 315, nothing HEAD_AT_CPU -1 7 15 -3 -9 -15 | "
    "3 9 5 35, 6 27 20 315, nothing HEAD_AT_GPU -1 7 15 -3 -9 -15 | ",
    "copies": "HEAD_AT_CPU 2 (2) 0 4 0 0 0 4 HEAD_AT_CPU 0 5 | HEAD_AT_GPU 2 (2) 0 4 0 0 0 4 HEAD_AT_GPU 0 5 | ",
    "lent": "kept 16 16 there 24 | kept 16 16 there 24 | blob.cpp: Check failed: data  | blob.cpp: Check failed: data ",
    "share_diff": "one two blob.cpp: Check failed: count_ == other.count() (6 vs. 5)  | "
    "blob.cpp: Check failed: count_ == other.count() (6 vs. 5) ",
    "float_proto": "2 0 0 0 2 1 (2) 0 3 0 0 | 2 2 0 0 2 1 (2) 0 3 4 0 | ",
    "shapes_of_protos": "blob.cpp: Check failed: ShapeEquals(proto) shape mismatch (reshape not set) nothing "
    "--= -=- =-- --- --- --- --- --- ",
    # Filler
    "constant": "3.000000",
    "uniform": "within",
    "xavier": "within",
    "xavier_out": "within",
    "unitball": "one",
    "gaussian": "two",
    "sparse": "a tenth",
    "xavier_draws": "-1.0 0.0 0.6 1.0, -1.0 0.0 0.6 1.0, -1.0 0.0 0.6 1.0, ",
    "msra_draws": " 0.0 1.0  0.0 1.0  0.0 1.0 ",
    "uniform_draws": "-2.0 1.0 1.7 4.0, ",
    "sparse_draws": "0.0 0.0 0.0 0.0, 3.0 3.0 0.0 3.0, 0.0 1.0 2.0 5.0, ",
    # sparse of -2, -1, 0; nothing, three axes, no square
    "what_fillers_take": "-+--++ -+--++ -+--++ -+--++ -+---- -+-+++ -++-++ ",
    "odd_bilinear": "0.25 0.5 0.25 0.5 1 0.5 0.25 0.5 0.25 0.25 0.5 0.25 0.5 1 0.5 0.25 0.5 0.25",
    "two_unitballs": "one",
    "bilinear": "0.0625 0.1875 0.1875 0.0625",
    "unknown_filler": "filler.hpp: Unknown filler name: nonesuch",
    "seed": "same",
    "shuffle": "a permutation",
    # BLAS and devices: dot | x and y after axpy, axpby, axpby by 0, copy, asum and squares, scal
    "strides": "60 12 16 36 40 50 60, 38 44 114 40 50 60, 2 -4 6 40 50 60, 1 -2 3 40 50 60, 6 14 7 -14 21 -4 5 -6 | "
    "220 12 26 40 40 50 60, 38 84 130 40 50 60, 2 6 10 40 50 60, 1 3 5 40 50 60, 9 35 7 -2 21 -4 35 -6 | "
    "100 12 20 26 40 56 60, 38 20 74 40 174 60, 2 20 -4 40 6 60, 1 20 -2 40 3 60, 6 14 7 -14 21 -4 5 -6 | "
    "20 16 20 26 40 52 60, 54 20 74 40 158 60, 6 20 -4 40 2 60, 3 20 -2 40 1 60, 7 -14 21 -4 5 -6 | ",
    "long_sums": "15427.000000 9003.000000 7714.000000 30.000000",
    "device": "memory 10 0 -1",
    # names of boost
    "split": "a|b||c",
    "lexical_cast": "0.100000001 12",
    "bad_cast": "bad lexical cast",
    # EQ, NE, and both in any case: "a" and null with "a", "A", "b", null
    "check_strings": "+-+- -++- -+-+ -+-+ -+-+ -+-+ -+-+ +-+- ",
    "check_numbers": "+++ +++ -++ -++ --+ --+ --+ --- --- ",
    "check_order": "-+--++ +--+-+ -+++-- ",
    "says_not_implemented": "+-++--+",
    "severities": "0 1 2 3 0 1 2 3",
    "blas_words": "101 102 111 112 113",
    "cublas_words": "0 1 2",
    "no_fft": "cufft.cpp: Check failed: caffe::host_services.fft cuFFT's transforms are torch.fft's, "
    "and this program has no torch",
    "transforms": "41 1: 3 8 1 8 1 8, 41 1: 1 24 6 1 24 6 1 4 6, 41 1: 1 30 15 5 1 30 15 5 1 2 3 5, "
    "42 -1: 1 24 6 1 16 4 1 4 6, 42 -1: 1 32 8 1 16 4 1 4 6, 41 1: 5 100 18 2 200 27 3 2 3, 41 1: 5 6 3 1 6 3 1 2 3, ",
    "no_transforms": "4 4 4 4 0 8 8 0 0 | 3 4 4 4 0 0 | 6 0 1",
    "no_blas": "find_symbol.hpp: BLAS function sgemm_ was not found in /nowhere/libblas.so: ",
    "cublas_statuses": "".join(f"CUBLAS_STATUS_{name} " for name in CUBLAS_STATUSES.split())
    + "unknown cuBLAS status 00 default",
    "integers": "NotImplemented " * 7 + "7 0 0 0 0 9, 0 0 0 0 9 1 1 1 1 9, 1 1 1 1 9",
    "boost_strings": " | a |a||b| a||c  | a |a|b| a|c ()()()( )(a b)(  a b )(xaxbx)(axb) AZ1az1 11100111000010",
    "counting": "10 11 12 12 11 10 14 11 13 14 10 7 -7 0 010101 100011 011010 ",
    "label_map": "1 1 1 a1b21a2b1A2B, 1 1 1 a1b21a2b1A2B, 1 1 1 a11a1B, "
    f"{TWICE}a twice {TWICE}1 twice {TWICE}1 twice a11a1A, ",
    "cuda_errors": "cudaSuccess: no error, cudaErrorInvalidValue: invalid argument, cudaErrorMemoryAllocation: "
    "out of memory, cudaErrorInvalidConfiguration: invalid configuration argument, "
    "unrecognized error code: unrecognized error code, ",
    # device, count, threads of a block; version; threads of a block and of a warp; processors beside cores
    "cuda_device": "0 host backend 0 1 1024 9 0 1024 32 0 0 cudaSuccess cudaErrorInvalidDevice",
    "cuda_memory": "1 16843009 0 4 default",
    "cuda_rows": "1 2 0 3 4 5 0 5 default cudaErrorInvalidValue 1 2 0 3 4 5 0 5 12000 12000",
    "cuda_no_memory": "cudaErrorMemoryAllocation null cudaSuccess there",
    "cuda_events": "20 ms",
    "sides_and_phases": "0 1 0 1",
    "accessors": "".join(f"{f'{at} {at} {1000 + at} {1000 + at} ' * 2}| " for at in (0, 60, 100, 115, 119)),
    "elements": "119 1119 119 1119 60 100 80",
    # numbers, a vector, below: on the last element, one behind it, two behind it; too low, too many
    "offsets": "+++ +++ +++ +++ +-- +-- +-- +-- --- --- --- --- --",
    "written_before_read": "3 4",
    "random_without_python": "+++++ +++++ ++++++ +++++ +++++ ++++++ ",
    "legacy_axes": "-++++- 1 1 6 7 6 7 1 1-+",
    "of_themselves": "one |own +-+ own shared -1-1-1-1-1-1 ++-- test train 0.000000 given",
    # of a float and a double
    "stream": "the call's",
    "microsofts": "12 there",
    "timer": "0 rests runs 20 ms same",
    # messages in files
    "temporary": "a folder /000000000 /000000001 free",
    "binary_file": "read 500",
    "broken_file": "refused",
    "no_file": "io.cpp: Check failed: file File not found: /nowhere/file",
    "no_text": "io.cpp: Check failed: file File not found: /nowhere/file",
    "no_text_here": f"io.cpp: Check failed: file File not found: nowhere/file in {ROOT}",
    "no_place": "io.cpp: Check failed: proto.SerializeToOstream(&file) Failed to write /nowhere/file",
    "no_place_for_text": "nothing",  # as Caffe's, which writes it for people
    "what_is_said_of_text": "there: nothing, dims, /nowhere/file: Failed to write /nowhere/file",
    "mixed_max": "2.000000 3.000000 1.000000",
    "max_as_told": "2.000000 2.000000 2",
    # the C ABI: a layer of one bottom and one top
    "facts": "1 1 -1",
    "allow_force_backward": "1111111111111111 1011111111111111 ",
    "setup": "2 0",
    "forward": "0 2 4 6 8 there",
    "backward": "2 4 6 8 0 allocations",
    "failure": "Check failed: bottom[0]->cpu_data()[i] != 13 (13 vs. 13) in ''",
    "after_failure": "0 2 4 6 8 token",
    "no_gpu_code": "2",
    "other_shape": "2 4 6 elsewhere",
    "larger_than_given": "2 4 6 8 10 12 | 9 9 9 9 9 9",
    "too_many": "Check failed: shape[i] <= INT_MAX (4294967296 vs. 2147483647) axis 0: Caffe counts in int",
    "bottoms": "Check failed: record.bottoms == bottom().size() (2 vs. 1) bottoms, as many as at set up",
    "wrong_bottoms": "Check failed: ExactNumBottomBlobs() == bottom.size() (1 vs. 2) "
    "Double Layer takes 1 bottom blob(s) as input.",
    "not_set_up": "Check failed: ready_ set the layer up first",
    "unknown_type": "Unknown layer type: Treble (this library has: Double MeanLoss Rude Share)",
    "types": "Double MeanLoss Rude Share ",
    "in_place_elsewhere": "1 2 | 2 4",
    "in_place": "2 4",
    "in_place_backward": "6 8 | 3 4",
    # layers that share memory, or write where they should not
    "shared": "bottom 3 4 bottom 3 4 ",
    "two_tops": "bottom there 2 4 " * 3,
    "parameter": "1 5 token",
    "grown_top": "3 3 3 token",
    "given_is_not_written": "2",
    "parameter_is_written": "21",
    "gradient_from_forward": "30 | 1 1 1 | 5",
    "gradient_into_new_memory": "30",
    "kept_by_the_layer": "8 1 | 8 3",
    "parameter_shape": "Check failed: has_shape_of(blob, given) parameter blob 0 has the shape 1 (1)",
    "loss": "1.000000 7 7 7",
    "loss_shapes": "Check failed: bottom[0]->shape(0) == bottom[1]->shape(0) (2 vs. 3) "
    "The data and label should have the same first dimension.",
    "nothing_is_kept": "0",
    # Net, for layers that own one
    "losses": "34.5 34.5 5",
    "losses_backward": "12 15",
    "outputs": "5 | 5 | 3 6 | 300 600 | ",
    "splits": "in: -> x; p: x -> y; y_p_0_split: y -> y_p_0_split_0 y_p_0_split_1 *3 *0; r: y_p_0_split_1 -> y; "
    "y_r_0_split: y -> y_r_0_split_0 y_r_0_split_1; q: y_r_0_split_0 -> z; s: y_r_0_split_1 -> loss *0",
    "no_splits": "in: -> x; p: x -> y *3",
    "split_layer": "b_l_1_split 3 0",
    "shared_weights": "128 | 1 of 2 | 32 96",
    "cleared": "0 0",
    "shared_shapes": "Check failed: permissive ? blob->count() == owned.count() : blob->shape() == owned.shape() "
    "Cannot share param 'w' with layer 'two': shape mismatch: owner's is 2 (2); this layer expects shape 1 (1)",
    "pruned": "in- before- y_before_0_split- learns+ loss+ aside- ",
    "nothing_below": "0 0",
    "propagate_down": "16 16",
    "frozen": "rests",
    "in_place_net": "13 | -4 0 -6",
    "reshaped": "2 4 (8)",
    "inputs": f"(0) (0) (0) nothing | 2 (2) 2 (2) 2 (2) nothing | {SHAPES}2 shapes. | "
    f"2 (2) 3 (3) 4 (4) nothing | {SHAPES}4 shapes. | ",
    "no_gradient_is_wanted": "Bias++ Concat++ Convolution++ Eltwise++ InnerProduct++ Pooling++ Power++ ReLU++ "
    "Reduction++ Scale++ Sigmoid++ Slice++ Softmax++ Split++ TanH++ ",
    "counts": "-+- -++ ++- -+- -++ ++- -+- | Counted Layer produces 2 top blob(s) as output."
    "| Counted Layer produces at least 2 top blob(s) as output."
    "| Counted Layer produces at most 2 top blob(s) as output."
    "| Counted Layer produces one top blob as output for each bottom blob input."
    "| Counted Layer takes 2 bottom blob(s) as input.| Counted Layer takes at least 2 bottom blob(s) as input."
    "| Counted Layer takes at most 2 bottom blob(s) as input.",
    "loss_weights": "+-+110-",
    "from_to": "0 2 0 0 0 2 18 0 324 2 18 324 324",
    "backward_from_to": "0 0, 108 108, 0 0, 216 216",
    "parts": "whole test 1 3 9 x y y_p_0_split_0 y_p_0_split_1 y_p_0_split_2 z v u l 010 111 131 111 111 111 111 "
    "-1 0 -1 w w 0",
    "weights_given": "10 20",
    "layer_to_proto": "1 10 20 0 one | 1 10 20 2 one | ",
    "cleared_on_the_gpu": "0 0",
    "types_of_a_net": "Input Power Product ReLU Split Squares +++++++++++++++++++ "
    "Check failed: stock Unknown layer type: Nobody (known types: Input, Power, Product, ReLU, Split, Squares)",
    "unknown_bottom": "Unknown bottom blob 'nowhere' (layer 'p', bottom index 0)",
    "two_sources": "Top blob 'y' produced by multiple sources.",
    "rules": "Check failed: layer_param->include_size() == 0 && layer_param->exclude_size() == 0 "
    "layer 'p': include and exclude rules are not known to a layer's own Net",
    "propagate_down_twice": "Check failed: layer_param.propagate_down_size() == 0 || "
    "layer_param.propagate_down_size() == layer_param.bottom_size() "
    "propagate_down param must be specified either 0 or bottom_size times",
    "too_many_params": "Check failed: layer_param.param_size() <= param_count (1 vs. 0) "
    "Too many params specified for layer p",
    "names": "in x first",
    # of what is let go, nothing is left
    **dict.fromkeys((f"freed: {what}" for what in FREED.split(", ")), "all"),
}


def test_each_file_of_the_core_is_known_to_make():
    """The compiler lists the files that it read. A change of any of them rebuilds what was made from it."""
    place, core = core_archives()[0].parent, core_folder(str(ROOT))
    read = {unit: (place / f"{unit}.o.d").read_text().split() for unit in units(core)}
    unknown = [
        part
        for unit, parts in units(core).items()
        for part in parts
        if part.endswith(".cpp") and f"cuffi/caffe_layers/core/{part}" not in read[unit]
    ]
    # The rewriter names the headers of kernels.
    rewritten = [made.read_text().split() for made in place.rglob("*.cu.cpp.d")]
    everything = set().union(*read.values(), *rewritten)
    # std.hpp is compiled before all.
    unknown += [
        h for h in core.headers if f"cuffi/caffe_layers/core/{h}" not in everything and h != "std.hpp"
    ]
    assert not unknown
    assert all(
        {f"{INCLUDE}/blob.hpp", f"{INCLUDE}/common.hpp"} <= {*read[u]} for u in ("base.cpp", "stock.cpp")
    )


@pytest.mark.parametrize("name", EXPECTED)
def test_engine(said, name):
    assert said[name] == EXPECTED[name]
