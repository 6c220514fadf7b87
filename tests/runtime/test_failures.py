"""A failure in C++ becomes a Python exception with the place, and leaves nothing behind."""

import sys
import threading

import pytest
import torch
from support import python_with_torch
from support.processor import division_traps


@pytest.fixture
def failures(kernels):
    return kernels["failures"]


def still_works(failures, device):
    """Neither torch nor the layer is left with an error from an earlier failure."""
    assert (torch.ones(3, device=device) + 1).sum().item() == 6
    top = torch.zeros(2, device=device)
    failures.failures_threads(top, 1, 2)
    assert top.tolist() == [1, 1]
    if device == "cuda":
        torch.cuda.synchronize()


def fails(failures, device, function, *arguments):
    """The text of a call's error."""
    with pytest.raises(RuntimeError) as caught:
        getattr(failures, function)(torch.zeros(2, device=device), *arguments)
    assert type(caught.value).__name__ == "CaffeRuntimeError"
    backend = "cuda" if device == "cuda" else "host"
    assert str(caught.value).startswith(f"failures: {function} on {backend}: ")
    still_works(failures, device)
    return str(caught.value)


@pytest.mark.parametrize("threads, blocks", [(2048, 1), (1025, 4), (0, 1), (1, 0)])
def test_launch_that_is_refused(failures, device, threads, blocks):
    text = fails(failures, device, "failures_threads", threads, blocks)
    # "invalid configuration argument"; drivers of CUDA 13 say "invalid argument".
    assert "failures.cu:19: kernel launch: cudaErrorInvalid" in text and "argument" in text


@pytest.mark.parametrize(
    "what, text",
    [(0, "a runtime_error on purpose"), (1, "bad_alloc"), (2, "not a std::exception"), (3, "xxxxx")],
    ids=["runtime_error", "bad_alloc", "int", "very long"],
)
def test_thrown_exception(failures, device, what, text):
    assert text in fails(failures, device, "failures_throw", what)


def test_cuda_check_says_what_and_where(failures, device):
    text = fails(failures, device, "failures_check")
    assert "failures.cu:31: cudaErrorInvalidValue: cudaErrorInvalidValue: invalid argument" in text


def test_post_kernel_check(failures, device):
    """The check raises an error; it neither only prints nor ends the process."""
    text = fails(failures, device, "failures_post_check")
    assert "failures.cu:37: cudaGetLastError(): cudaErrorInvalid" in text


def test_status_without_a_text(failures, device):
    assert "without a message" in fails(failures, device, "failures_status", 3)


def test_text_does_not_outlive_its_error(failures, device):
    fails(failures, device, "failures_throw", 0)
    assert "on purpose" not in fails(failures, device, "failures_status", 3)


def test_dtype_that_was_not_compiled_in(failures, device):
    bottom = torch.zeros(2, device=device, dtype=torch.float16)
    with pytest.raises(
        RuntimeError, match=r"failures: failures_dispatch .*expected float32 or float64, got float16"
    ):
        failures.failures_dispatch(bottom, torch.zeros_like(bottom))
    still_works(failures, device)


@pytest.mark.parametrize("at", [0, 600, 999_999])
def test_exception_inside_a_kernel(failures, at):
    """On the host, on any of its threads."""
    with pytest.raises(RuntimeError, match=rf"failures_throw_in_kernel on host: element {at}$"):
        failures.failures_throw_in_kernel(torch.zeros(1_000_000), 1_000_000, at)
    still_works(failures, "cpu")


@pytest.mark.parametrize("threads", [2, 33, 64])
@pytest.mark.parametrize(
    "what, said", [(1, r"thread {}"), (3, r"a thread used more than 640 KiB of stack.*")]
)
def test_a_thread_that_fails_between_two_barriers(failures, threads, what, said):
    """The others, which wait for it, are released; each thread has 600 KiB of stack."""
    top = torch.zeros(threads)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=said.format(threads - 1)):
            failures.failures_after_a_barrier(top, threads, what)
        assert not top[:-1].any()
    for fine in (0, 2):
        failures.failures_after_a_barrier(top, threads, fine)
        assert (top == 1).all()
        top.zero_()


DEADLY = {
    "an integer divided by zero": (1, 0, r"kernel deadly_kernel: an integer was divided by zero"),
    # 4 TB behind a tensor is beyond all addresses if malloc took it from its end.
    "far memory": (2, 1, r"kernel deadly_kernel: used memory that is not there, (at address 0x|beyond all)"),
    "no address": (
        2,
        100,
        r"kernel deadly_kernel: used memory that is not there, (at address 0x|beyond all)",
    ),
    "assert in a loop": (3, 3, r"kernel deadly_kernel: .*failures\.cu:111: assertion `n < 3` failed$"),
    "assert in noexcept": (4, 3, r"kernel deadly_block_kernel: .*failures\.cu:95: assertion `n < 3` failed$"),
    "__trap": (6, 0, r"kernel deadly_block_kernel: a kernel called __trap\(\)$"),
    "__brkpt": (15, 0, r"kernel deadly_block_kernel: a kernel called __brkpt\(\)$"),
    "900 KiB of stack": (7, 0, r"kernel deadly_block_kernel: a thread needs more stack than 640 KiB"),
    "exit in a kernel": (9, 5, r"kernel deadly_block_kernel: exit\(5\) was called$"),
    "terminate in a kernel": (10, 5, r"kernel deadly_block_kernel: std::terminate\(\) was called$"),
    "exit": (11, 4, r"on host: exit\(4\) was called$"),
    "abort": (12, 4, r"on host: abort\(\) was called$"),
    "terminate": (13, 4, r"on host: std::terminate\(\) was called$"),
    "assert": (14, 4, r"on host: .*failures\.cu:\d+: assertion `n == 3` failed$"),
}


@pytest.mark.parametrize("blocks", [1, 2000])
@pytest.mark.parametrize(
    "what", [pytest.param(w, marks=division_traps if "divided" in w else ()) for w in DEADLY]
)
def test_what_would_end_the_process(failures, what, blocks):
    """On the host it is an error, on any thread; and again, with its signal unblocked."""
    number, n, said = DEADLY[what]
    for _ in range(2):
        with pytest.raises(RuntimeError, match=said):
            failures.failures_deadly(torch.zeros(2, dtype=torch.int32), number, n, blocks)
        still_works(failures, "cpu")


def test_as_much_stack_as_a_gpus_thread_has(failures):
    """512 KiB at most; here 480, beside barriers."""
    top = torch.zeros(2, dtype=torch.int32)
    failures.failures_deadly(top, 5, 7, 1)
    assert top.tolist() == [1, 1]


@pytest.mark.parametrize("blocks", [1, 3000])
def test_an_endless_kernel_ends_at_ctrl_c(kernels_folder, blocks):
    """Threads that wait for another block never end here. Later launches are not interrupted."""
    script = f"""
import sys; sys.path[:0] = {[str(p) for p in sys.path if p]!r}
from cuffi.runtime.cases import load_package
import importlib, os, pathlib, signal, threading, torch
failures = importlib.import_module(load_package(pathlib.Path({str(kernels_folder)!r})) + ".failures").layer
top = torch.zeros(2, dtype=torch.int32)
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, if `nohup python3 test.py &` started the suite
for _ in range(2):
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        failures.failures_deadly(top, 8, 0, {blocks})
    except KeyboardInterrupt:
        print("interrupted")
    failures.failures_deadly(top, 8, 1, {blocks})
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as a notebook does before each cell
    threading.Event().wait(0.2)
"""
    done = python_with_torch.run([sys.executable, "-c", script], timeout=60)
    assert (done.returncode, done.stdout) == (0, "interrupted\n" * 2), done.stderr


def test_each_thread_has_its_own_error(failures):
    texts = {}

    def work(what):
        for _ in range(200):
            try:
                failures.failures_throw(torch.zeros(1), what)
            except RuntimeError as error:
                texts.setdefault(what, set()).add(str(error))

    threads = [threading.Thread(target=work, args=(what,)) for what in (0, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert {what: len(found) for what, found in texts.items()} == {0: 1, 1: 1, 2: 1}
    assert "on purpose" in texts[0].pop() and "bad_alloc" in texts[1].pop()


def test_unknown_function(failures):
    with pytest.raises(
        AttributeError,
        match=r"failures declares no C function 'failures_thread'. There are: failures_after_a_barrier, ",
    ):
        _ = failures.failures_thread


def test_wrong_number_of_arguments(kernels):
    with pytest.raises(TypeError, match=r"loops_fill"):
        kernels["loops"].loops_fill(torch.zeros(3))


def test_no_tensor_at_all(kernels):
    with pytest.raises(TypeError, match=r"loops: loops_null: got no tensor"):
        kernels["loops"].loops_null(None, None, None, None, 3)


def test_typed_pointer_wants_its_dtype(kernels):
    with pytest.raises(
        TypeError, match=r"loops: top: expected float32 .x.to.torch.float32. gives it., got cpu float64"
    ):
        kernels["loops"].loops_fill(torch.zeros(3, dtype=torch.float64), 3, 0)


def test_output_must_be_contiguous(kernels):
    """Otherwise a copy would be written, and thrown away."""
    with pytest.raises(TypeError, match=r"loops: top: expected a contiguous tensor to write to"):
        kernels["loops"].loops_fill(torch.zeros(3, 2)[:, 0], 3, 0)


def test_nothing_is_printed(failures, kernels_folder):
    """A library must neither print nor exit."""
    script = f"""
import sys; sys.path[:0] = {[str(p) for p in sys.path if p]!r}
from cuffi.runtime.cases import load_package
import importlib, pathlib, torch
failures = importlib.import_module(load_package(pathlib.Path({str(kernels_folder)!r})) + ".failures").layer
for call in (lambda t: failures.failures_post_check(t), lambda t: failures.failures_throw(t, 2)):
    try:
        call(torch.zeros(1))
    except RuntimeError:
        pass
"""
    done = python_with_torch.run([sys.executable, "-c", script])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("what", ["older", "missing"])
def test_an_extension_of_other_sources_is_not_used(what):
    """Between git pull and make: the error says what to type. A layer's import goes on."""
    code = f"""
import sys, types
older = types.SimpleNamespace(EDGE="of other sources", configure=lambda values: True)
sys.modules["cuffi.runtime._call"] = older if {what!r} == "older" else None
import torch
from cuffi.sigmoid import layer, sigmoid
x = torch.randn(5)
for call in (lambda: sigmoid(x), lambda: layer.sigmoid_forward(x, x, 5)):
    try:
        call()
    except RuntimeError as error:
        print(error)
"""
    done = python_with_torch.run([sys.executable, "-c", code])
    why = "was built by another version of the toolkit" if what == "older" else "is not built"
    line = f"sigmoid: cuffi/runtime/_call.abi3.so {why}. Type `make` in the toolkit's folder.\n"
    assert done.stdout == 2 * line, done.stdout + done.stderr
