"""The services that the Caffe core calls in Python: memory, random numbers, BLAS, FFT, text format, a log.

The C side is the struct caffe_services in cuffi/caffe_layers/include/caffe/layer_record.h. `Services` fills it in.
"""

import contextlib
import functools
import itertools
import logging
import os
import threading
from pathlib import Path

import torch
from torch import Tensor

from ...backends import CPU, GPU
from ...caffe_files.parameters import message_class
from ...runtime.memory import place, view_memory

logger = logging.getLogger("caffe")

# The tensors whose memory the core uses, by token. Each is kept alive until the core releases it.
memory: dict[int, Tensor] = {}
_tokens = itertools.count(1)

# The exception that a service raised during the running call, by thread.
failures: dict[int, BaseException] = {}


# The states of the generators before the running call drew from them: by thread, then by device. None: there is no
# single state.
drawn: dict[int, dict[int, Tensor | None]] = {}


def failed() -> bool:
    """Did a service raise an exception during this thread's last call?"""
    return bool(failures) and threading.get_ident() in failures


def take_failure() -> BaseException | None:
    """Remove and return the exception that a service raised during this thread's last call."""
    return failures.pop(threading.get_ident(), None)


# -------------------------------------------------------------------------------------- random numbers


def _generator(device: int) -> torch.Generator:
    return torch.default_generator if device < 0 else torch.cuda.default_generators[device]


def _about_to_draw(device: int) -> None:
    states = drawn.get(threading.get_ident())
    if states is not None and device not in states:
        # While a CUDA graph is captured a generator has no single state. None: the call cannot be replayed.
        capturing = device >= 0 and torch.cuda.is_current_stream_capturing()
        states[device] = None if capturing else _generator(device).get_state()


@contextlib.contextmanager
def watched_draws():
    """Record the states of the generators before the core draws from them, by device."""
    me = threading.get_ident()
    outer, drawn[me] = drawn.get(me), {}
    try:
        yield drawn[me]
    finally:
        if outer is None:
            del drawn[me]
        else:
            drawn[me] = outer


@contextlib.contextmanager
def replaying(states: dict[int, Tensor]):
    """Let the core draw from these states. Afterwards torch's generators are as they were before."""
    with watched_draws() as before:
        for device, state in states.items():
            _about_to_draw(device)
            _generator(device).set_state(state)
        try:
            yield
        finally:
            for device, state in before.items():
                if state is not None:
                    _generator(device).set_state(state)


# ------------------------------------------------------------------------------------------- the struct


class Services:
    """A caffe_services struct. Its functions are the methods of this object with the fields' names.

    This object holds what the struct points to, so it must live as long as the library. If a method raises, the core
    returns, and then take_failure gives the exception.

    Args:
        ffi, lib: cffi's, of a library that declares the struct.
        cuda: is it a library for GPUs?
    """

    def __init__(self, ffi, lib, cuda: bool):
        self.ffi, self.c, self.struct = ffi, lib, ffi.new("caffe_services *")
        self.dtypes = {
            lib.CAFFE_DRAWN_FLOAT: torch.float32,
            lib.CAFFE_DRAWN_DOUBLE: torch.float64,
            lib.CAFFE_DRAWN_INT32: torch.int32,
        }
        # Dtypes of input and output, torch's function, and the `norm` with which it does not normalize.
        self.transforms = {
            lib.CAFFE_FFT_R2C: (torch.float32, torch.complex64, torch.fft.rfftn, "backward"),
            lib.CAFFE_FFT_C2R: (torch.complex64, torch.float32, torch.fft.irfftn, "forward"),
            lib.CAFFE_FFT_D2Z: (torch.float64, torch.complex128, torch.fft.rfftn, "backward"),
            lib.CAFFE_FFT_Z2D: (torch.complex128, torch.float64, torch.fft.irfftn, "forward"),
        }
        self.complex = {lib.CAFFE_FFT_C2C: torch.complex64, lib.CAFFE_FFT_Z2Z: torch.complex128}
        self.severities = {lib.CAFFE_LOG_INFO: logging.INFO, lib.CAFFE_LOG_WARNING: logging.WARNING}
        self.address = int(ffi.cast("uintptr_t", self.struct))
        self._alive = []
        for name, field in ffi.typeof("caffe_services").fields:
            if field.type.kind == "function":
                if name != "blas_handle" or cuda:
                    self._keep(name, ffi.callback(field.type, self._guarded(getattr(self, name), field.type)))
            else:
                self._keep(name, ffi.new("char[]", os.fsencode(getattr(self, name)(cuda))))

    def _keep(self, name: str, value) -> None:
        self._alive.append(value)
        setattr(self.struct, name, value)

    def _guarded(self, function, kind):
        result, null = kind.result.kind, self.ffi.NULL
        failed = {"void": None, "pointer": null}.get(result, 0)

        def guarded(*arguments):
            try:
                answer = function(*arguments)
                return self.ffi.cast("void *", answer) if result == "pointer" else answer
            except BaseException as error:  # nothing may unwind into C++
                failures[threading.get_ident()] = error
                return failed

        return guarded

    # ----------------------------------------------------------------------------------------- memory

    def allocate(self, size, device, token):
        # At least a byte, so that it has an address. Not an inference tensor, whatever the mode of this one call:
        # the core keeps it.
        with torch.inference_mode(False):
            place = CPU if device < 0 else torch.device(GPU, device)
            pin = device == self.c.CAFFE_ON_PAGE_LOCKED_HOST
            tensor = torch.empty(max(size, 1), dtype=torch.uint8, device=place, pin_memory=pin)
        token[0] = number = next(_tokens)
        memory[number] = tensor
        return tensor.data_ptr()

    def release(self, token):
        memory.pop(token, None)

    # --------------------------------------------------------------------------------- random numbers

    def random(self, kind, address, count, dtype, device, a, b):
        if count == 0:
            return 1
        _about_to_draw(device)
        at = int(self.ffi.cast("uintptr_t", address))
        self.draw(kind, view_memory(at, count, self.dtypes[dtype], place(device)), a, b)
        return 1

    def draw(self, kind: int, values: Tensor, a: float, b: float) -> None:
        """Fill the tensor by torch's generator; kind is CAFFE_DRAW_*."""
        if kind == self.c.CAFFE_DRAW_UNIFORM:
            values.uniform_(a, b)
        elif kind == self.c.CAFFE_DRAW_NORMAL:
            values.normal_(a, b)
        elif kind == self.c.CAFFE_DRAW_BERNOULLI:
            values.bernoulli_(a)
        else:
            values.random_(-(1 << 31), 1 << 31)

    def seed(self):
        _about_to_draw(self.c.CAFFE_ON_HOST)
        return int(torch.randint(1 << 62, (), dtype=torch.int64, device=CPU))

    def set_seed(self, seed):
        # Not torch.manual_seed, which checks for every accelerator: Caffe's tests seed before every forward.
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(seed)

    # ----------------------------------------------------------------------------- Fourier transforms

    def fft(self, words, axes):
        kind, direction, device, source, target, batch = words[0:6]
        strides, sizes = words[6 : 8 + 2 * axes], words[8 + 2 * axes : 8 + 3 * axes]
        strides, sizes = list(strides), list(sizes)
        if kind in self.complex:
            input_dtype = output_dtype = self.complex[kind]
            forward = direction == self.c.CAFFE_FFT_FORWARD
            transform, norm = (torch.fft.fftn, "backward") if forward else (torch.fft.ifftn, "forward")
        else:
            input_dtype, output_dtype, transform, norm = self.transforms[kind]
        whole, half = [batch, *sizes], [batch, *sizes[:-1], sizes[-1] // 2 + 1]
        real = input_dtype.is_complex != output_dtype.is_complex
        input_sizes, output_sizes = (
            half if real and one.is_complex else whole for one in (input_dtype, output_dtype)
        )
        x = self._strided(source, input_sizes, strides[: 1 + axes], input_dtype, device)
        y = self._strided(target, output_sizes, strides[1 + axes :], output_dtype, device)
        y.copy_(transform(x, s=sizes, dim=list(range(1, 1 + axes)), norm=norm))
        return 1

    def _strided(self, address: int, sizes: list[int], strides: list[int], dtype: torch.dtype, device: int):
        count = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        return view_memory(address, count, dtype, place(device)).as_strided(sizes, strides)

    # ------------------------------------------------------------------------------------- text, a log

    def log(self, severity, text):
        line = self.ffi.string(text).decode(errors="replace")
        logger.log(self.severities.get(severity, logging.ERROR), line)

    def text(self, kind, file, file_size, name, source, size, take, to):
        # Only here: native layers run without protobuf.
        from google.protobuf import text_format
        from google.protobuf.message import EncodeError

        made = message_class(bytes(self.ffi.buffer(file, file_size)), self.ffi.string(name).decode())
        data, done = bytes(self.ffi.buffer(source, size)), self.c.CAFFE_TEXT_DONE
        try:
            if kind in (self.c.CAFFE_TO_TEXT, self.c.CAFFE_TO_ONE_LINE):
                # Like C++'s DebugString, which is ASCII and complete.
                result = text_format.MessageToString(
                    made.FromString(data),
                    as_utf8=False,
                    print_unknown_fields=True,
                    as_one_line=kind == self.c.CAFFE_TO_ONE_LINE,
                ).encode()
            else:
                text = data.decode(errors="surrogateescape")  # a comment may be in any encoding
                if kind == self.c.CAFFE_FROM_TEXT:
                    result = text_format.Parse(text, made()).SerializeToString()
                else:
                    result = text_format.Merge(text, made()).SerializePartialToString()
        except (text_format.ParseError, EncodeError) as error:
            result, done = str(error).encode(errors="surrogateescape"), self.c.CAFFE_TEXT_WRONG
        take(to, self.ffi.from_buffer(result), len(result))
        return done

    # ------------------------------------------------------------------------------------------- BLAS

    def blas_handle(self):
        return torch.cuda.current_blas_handle()

    def blas_library(self, cuda: bool) -> str:
        return _loaded("libtorch_cpu.so") or str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so")

    def cublas_library(self, cuda: bool) -> str:
        if not cuda:
            return ""
        torch.cuda.current_blas_handle()  # makes torch load it
        return _loaded("libcublas.so")


@functools.cache
def _loaded(name: str) -> str:
    """The path of the shared object, among those this process has loaded, whose name starts so; or ''."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if name in line}
    return next((path for path in sorted(paths) if os.path.basename(path).startswith(name)), "")
