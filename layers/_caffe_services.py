"""What a Caffe layer's engine asks of Python: memory, random numbers, BLAS, Fourier transforms, text format, a log.

The C side is include/caffe/host_services.hpp: a list of addresses, made by `HostServices` below.
"""

import contextlib
import ctypes
import functools
import logging
import os
import threading
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_double, c_int64, c_void_p
from pathlib import Path

import torch
from torch import Tensor

from ._caffe_param import message_class

logger = logging.getLogger("caffe")

HOST, PAGE_LOCKED = -1, -2
DTYPES = {0: torch.float32, 1: torch.float64, 2: torch.int32}

# Memory that engines hold, by token. A tensor stays alive here until its engine releases it.
memory: dict[int, Tensor] = {}
_tokens = iter(range(1, 1 << 62))


class _Thread(threading.local):
    failure: BaseException | None = None  # of a service, in the call that is running
    drawn: dict[int, Tensor | None] | None = None  # generators' states before the running call drew from them


thread = _Thread()


def take_failure() -> BaseException | None:
    """The exception that a service met during the call that this thread made last."""
    failure, thread.failure = thread.failure, None
    return failure


def service(result, *arguments):
    """A C function from a Python one. Its exceptions wait in this thread until the engine has returned."""

    def wrap(function):
        @functools.wraps(function)
        def guarded(*given):
            try:
                return function(*given)
            except BaseException as error:  # nothing may unwind into C++
                thread.failure = error
                return None if result is None else 0

        return CFUNCTYPE(result, *arguments)(guarded)

    return wrap


# ---------------------------------------------------------------------------------------------- memory


@service(c_void_p, c_int64, c_int64, POINTER(c_int64))
def _allocate(size, device, token):
    # At least a byte, so that it has an address. Not an inference tensor, whatever the mode of this one call:
    # the engine keeps it.
    with torch.inference_mode(False):
        place = "cpu" if device < 0 else f"cuda:{device}"
        pin = device == PAGE_LOCKED
        tensor = torch.empty(max(size, 1), dtype=torch.uint8, device=place, pin_memory=pin)
    token[0] = number = next(_tokens)
    memory[number] = tensor
    return tensor.data_ptr()


@service(None, c_int64)
def _release(token):
    memory.pop(token, None)


# -------------------------------------------------------------------------------------- random numbers


def _generator(device: int) -> torch.Generator:
    return torch.default_generator if device < 0 else torch.cuda.default_generators[device]


def _about_to_draw(device: int) -> None:
    drawn = thread.drawn
    if drawn is not None and device not in drawn:
        # A generator has no single state while a CUDA graph is captured: None says that it cannot be replayed.
        capturing = device >= 0 and torch.cuda.is_current_stream_capturing()
        drawn[device] = None if capturing else _generator(device).get_state()


@contextlib.contextmanager
def recording():
    """Within it, the states of the generators that engines draw from, by device, as they were before."""
    outer, thread.drawn = thread.drawn, {}
    try:
        yield thread.drawn
    finally:
        thread.drawn = outer


@contextlib.contextmanager
def replaying(states: dict[int, Tensor]):
    """Within it engines draw what they drew from these states; afterwards torch's generators are as they were."""
    with recording() as drawn:
        for device, state in states.items():
            _about_to_draw(device)
            _generator(device).set_state(state)
        try:
            yield
        finally:
            for device, state in drawn.items():
                if state is not None:
                    _generator(device).set_state(state)


class _CudaArray:
    """Memory on a GPU, as torch.as_tensor takes it."""

    def __init__(self, address: int, count: int, dtype: torch.dtype):
        letter = "c" if dtype.is_complex else "f" if dtype.is_floating_point else "i"
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": (count,),
            "typestr": f"<{letter}{dtype.itemsize}",
            "version": 2,
        }


def view_memory(address: int, count: int, dtype: torch.dtype, device: int) -> Tensor:
    """A tensor over memory that somebody else owns."""
    if device >= 0:
        return torch.as_tensor(_CudaArray(address, count, dtype), device=f"cuda:{device}")
    buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return torch.frombuffer(buffer, dtype=dtype)


@service(c_int64, c_int64, c_void_p, c_int64, c_int64, c_int64, c_double, c_double)
def _random(kind, address, count, dtype, device, a, b):
    if count == 0:
        return 1
    _about_to_draw(device)
    values = view_memory(address, count, DTYPES[dtype], device)
    if kind == 0:
        values.uniform_(a, b)
    elif kind == 1:
        values.normal_(a, b)
    elif kind == 2:
        values.bernoulli_(a)
    else:
        values.random_(-(1 << 31), 1 << 31)
    return 1


@service(c_int64)
def _seed():
    _about_to_draw(HOST)
    return int(torch.randint(1 << 62, (), dtype=torch.int64, device="cpu"))


@service(None, c_int64)
def _set_seed(seed):
    # Not torch.manual_seed, which asks each accelerator there may be: Caffe's tests seed before every forward.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


# ----------------------------------------------------------------------------------- Fourier transforms

# By cufftType: dtypes of input and output, torch's function, and its norm, which is to be none.
FORWARD = -1
TRANSFORMS = {
    0x2A: (torch.float32, torch.complex64, torch.fft.rfftn, "backward"),
    0x2C: (torch.complex64, torch.float32, torch.fft.irfftn, "forward"),
    0x6A: (torch.float64, torch.complex128, torch.fft.rfftn, "backward"),
    0x6C: (torch.complex128, torch.float64, torch.fft.irfftn, "forward"),
}
COMPLEX = {0x29: torch.complex64, 0x69: torch.complex128}


def _strided(address: int, sizes: list[int], strides: list[int], dtype: torch.dtype, device: int) -> Tensor:
    count = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    return view_memory(address, count, dtype, device).as_strided(sizes, strides)


@service(c_int64, POINTER(c_int64), c_int64)
def _fft(words, axes):
    kind, direction, device, source, target, batch = words[:6]
    strides, sizes = words[6 : 8 + 2 * axes], words[8 + 2 * axes : 8 + 3 * axes]
    if kind in COMPLEX:
        taken = made = COMPLEX[kind]
        forward = direction == FORWARD
        transform, norm = (torch.fft.fftn, "backward") if forward else (torch.fft.ifftn, "forward")
    else:
        taken, made, transform, norm = TRANSFORMS[kind]
    whole, half = [batch, *sizes], [batch, *sizes[:-1], sizes[-1] // 2 + 1]
    real = taken.is_complex != made.is_complex
    given, wanted = (half if real and one.is_complex else whole for one in (taken, made))
    x = _strided(source, given, strides[: 1 + axes], taken, device)
    y = _strided(target, wanted, strides[1 + axes :], made, device)
    y.copy_(transform(x, s=sizes, dim=list(range(1, 1 + axes)), norm=norm))
    return 1


# ------------------------------------------------------------------------------------------ BLAS, text


@service(c_void_p)
def _blas_handle():
    return torch.cuda.current_blas_handle()


_SEVERITIES = {0: logging.INFO, 1: logging.WARNING}


@service(None, c_int64, c_char_p)
def _log(severity, text):
    logger.log(_SEVERITIES.get(severity, logging.ERROR), text.decode(errors="replace"))


@service(
    c_int64, c_int64, c_void_p, c_int64, c_char_p, c_void_p, c_int64,
    CFUNCTYPE(None, c_void_p, c_char_p, c_int64), c_void_p,
)  # fmt: skip
def _text(kind, file, file_size, name, given, size, take, to):
    # Only here: native layers run without protobuf.
    from google.protobuf import text_format
    from google.protobuf.message import EncodeError

    made = message_class(ctypes.string_at(file, file_size), name.decode())
    data, done = ctypes.string_at(given, size), 1
    try:
        if kind < 2:
            # As C++'s DebugString, which is ASCII and leaves nothing out.
            shown = {"as_utf8": False, "print_unknown_fields": True, "as_one_line": kind == 1}
            result = text_format.MessageToString(made.FromString(data), **shown).encode()
        else:
            text = data.decode(errors="surrogateescape")  # a comment may be in any encoding
            if kind == 2:
                result = text_format.Parse(text, made()).SerializeToString()
            else:
                result = text_format.Merge(text, made()).SerializePartialToString()
    except (text_format.ParseError, EncodeError) as error:
        result, done = str(error).encode(errors="surrogateescape"), 2
    take(to, result, len(result))
    return done


def _loaded(name: str) -> str:
    """The path of the shared object, among those this process has loaded, whose name starts so; or ''."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if name in line}
    return next((path for path in sorted(paths) if os.path.basename(path).startswith(name)), "")


@functools.cache
def _blas_library() -> str:
    return _loaded("libtorch_cpu.so") or str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")


@functools.cache
def _cublas_library() -> str:
    torch.cuda.current_blas_handle()  # has torch load it
    return _loaded("libcublas.so")


# ------------------------------------------------------------------------------------------- the list


class HostServices:
    """The list for one library. It holds what the list points to, so it must live as long as the library: forever."""

    def __init__(self, cuda: bool, random=_random, seed=_seed, set_seed=_set_seed):
        paths = [_blas_library(), _cublas_library() if cuda else ""]
        self.texts = [ctypes.create_string_buffer(os.fsencode(path)) for path in paths]
        blas_handle = _blas_handle if cuda else None
        self.functions = (_allocate, _release, blas_handle, random, seed, _log, set_seed, _text, _fft)
        addresses = [0 if f is None else ctypes.cast(f, c_void_p).value for f in self.functions]
        words = [*addresses[:6], *map(ctypes.addressof, self.texts), *addresses[6:]]
        self.words = (c_int64 * len(words))(*words)
        self.address = ctypes.addressof(self.words)
