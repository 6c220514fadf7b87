"""What a plan must not change: modes, streams and settings around a repeated call."""

import ast
import gc
import sys
import threading
import weakref
from pathlib import Path

import numpy
import pytest
import torch
from cuffi.depthwise_conv import depthwise_conv, depthwise_conv2d, depthwise_conv_backward
from cuffi.elementwise_mult import elementwise_mult
from cuffi.round import round_ste
from cuffi.sigmoid import layer as sigmoid_layer
from cuffi.sigmoid import sigmoid
from support import python_with_torch
from support.points import LAYERS
from support.typed import not_none
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from cuffi.runtime import CaffeRuntimeError, CaffeTypeError, extension, operator
from cuffi.runtime.planning import Watcher, is_constant, run_and_plan


@pytest.fixture(autouse=True)
def warm():
    """Calls of [4, 5] have a plan, with and without a gradient."""
    for call in (sigmoid, round_ste):
        call.operator.short.clear()
        for _ in range(3):
            call(torch.rand(4, 5))
            call(torch.rand(4, 5, requires_grad=True)).sum().backward()
        assert call.operator.short.plans() == 1


def calls(function, monkeypatch) -> list:
    """Grows with each careful call of the operator's function."""
    went, known = [], function.operator
    assert all(callable(getattr(known, way)) for way in ("plain", "planning", "careful"))
    real = known.refuse
    monkeypatch.setattr(known, "refuse", lambda *a, **k: went.append(a) or real(*a, **k))
    return went


def test_a_plan_runs_no_python(monkeypatch):
    went = calls(sigmoid, monkeypatch)
    x = torch.randn(4, 5)
    assert torch.allclose(sigmoid(x), torch.sigmoid(x)) and not went
    x.requires_grad_()
    sigmoid(x).sum().backward()
    assert torch.allclose(not_none(x.grad), torch.sigmoid(x) * (1 - torch.sigmoid(x))) and not went
    sigmoid(torch.rand(4, 6))
    assert len(went) == 1


def test_torchs_own_operator_takes_lists():
    """Compiled code calls torch.ops, with lists for tuples."""
    called = torch.ops.cuffi_depthwise_conv.depthwise_conv.default
    x, weight = torch.randn(2, 3, 7, 5), torch.randn(3, 1, 3, 3, requires_grad=True)
    arguments = (x, weight, None, [2, 1], [1, 1], [1, 1])
    wanted = torch.nn.functional.conv2d(x.double(), weight.double(), None, (2, 1), 1, groups=3)
    with torch.no_grad():
        torch.testing.assert_close(called(*arguments), wanted.float())
    top = called(*arguments)
    top.sum().backward()
    found, weight.grad = weight.grad, None
    wanted.sum().backward()
    torch.testing.assert_close(found, weight.grad)
    # inductor may choose the layout
    assert torch.Tag.flexible_layout in called.tags


def test_keywords_and_defaults(monkeypatch):
    x = torch.rand(4, 5)
    assert torch.equal(sigmoid(bottom=x), sigmoid(x))
    for call in (
        lambda: sigmoid(),
        lambda: sigmoid(x, x),
        lambda: sigmoid(x, bottom=x),
        lambda: sigmoid(top=x),
    ):
        with pytest.raises(CaffeTypeError, match=r"^sigmoid: sigmoid"):
            call()


DIFFERENT = {
    "shape": lambda x: torch.rand(5, 4),
    "strides": lambda x: torch.rand(5, 4).t(),
    "dtype": lambda x: x.double(),
    "half": lambda x: x.half(),
    "empty": lambda x: x[:0],
    "negated": lambda x: torch._neg_view(x),
    "part": lambda x: torch.rand(4, 10)[:, ::2],
    "scalar": lambda x: x.sum(),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_what_differs_is_noticed(kind):
    for _ in range(4):
        x = DIFFERENT[kind](torch.rand(4, 5))
        top = sigmoid(x)
        assert top.dtype == x.dtype and top.shape == x.shape
        torch.testing.assert_close(top, torch.sigmoid(x.clone()))


def test_freed_memory():
    x = torch.rand(4, 5)
    x.untyped_storage().resize_(0)
    with pytest.raises(CaffeTypeError, match="memory"):
        sigmoid(x)


def test_a_gradient_is_asked_for_call_by_call():
    x = torch.rand(4, 5)
    assert not sigmoid(x).requires_grad
    assert sigmoid(x.requires_grad_()).requires_grad
    with torch.no_grad():
        assert not sigmoid(x).requires_grad
    with torch.inference_mode():
        assert sigmoid(x).is_inference() and not sigmoid(x).requires_grad
    assert not sigmoid(x).is_inference()
    assert sigmoid(x).grad_fn is not None and sigmoid(x) is not sigmoid(x)


def functions_run(x: Tensor) -> int:
    """How many functions of Python run in a call."""
    seen = []
    sys.setprofile(lambda frame, event, _: seen.append(frame) if event == "call" else None)
    sigmoid(x)
    sys.setprofile(None)
    return len(seen)


def test_nothing_is_saved_for_a_gradient_that_nobody_wants():
    """No memory is kept, and no autograd node is made, which would take as long as the call."""

    def is_kept(wants_gradient: bool) -> bool:
        memory = weakref.ref(values := numpy.ones((4, 5), numpy.float32))
        top = elementwise_mult(torch.rand(4, 5).requires_grad_(wants_gradient), torch.from_numpy(values))
        del values
        return top.requires_grad == wants_gradient and memory() is not None

    assert is_kept(True) and not is_kept(False)
    assert functions_run(torch.rand(4, 5)) < functions_run(torch.rand(4, 5).requires_grad_())


def test_a_result_is_nobody_elses():
    tops = [sigmoid(torch.full((4, 5), float(i))) for i in range(50)]
    assert len({top.data_ptr() for top in tops}) == 50
    assert all(torch.allclose(top, torch.sigmoid(torch.tensor(float(i)))) for i, top in enumerate(tops))


def test_modes_see_the_call():
    class Sees(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    seen, x = [], torch.rand(4, 5)
    with Sees():
        top = sigmoid(x)
    assert sigmoid.operator.torch_op in seen and torch.equal(top, sigmoid(x))
    with Functions(), torch.device("meta"):
        assert torch.equal(sigmoid(x), top)


def test_transforms_after_a_plan():
    x, more = torch.rand(4, 5), torch.rand(3, 4, 5)
    assert torch.allclose(torch.vmap(round_ste)(more), torch.stack([round_ste(m) for m in more]))
    with pytest.raises(RuntimeError, match=r"sigmoid|forward"):
        torch.func.jvp(sigmoid, (x,), (x,))
    said = "^sigmoid: sigmoid has no forward-mode derivative"
    with torch.autograd.forward_ad.dual_level(), pytest.raises(CaffeRuntimeError, match=said):
        sigmoid(torch.autograd.forward_ad.make_dual(x, x))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_traced_after_a_plan():
    traced = torch.jit.trace(lambda x: sigmoid(x), torch.rand(4, 5))
    assert "::sigmoid" in str(traced.graph)


def test_deterministic_fill():
    torch.use_deterministic_algorithms(True)
    try:
        x = torch.rand(4, 5)
        torch.testing.assert_close(sigmoid(x), torch.sigmoid(x))
    finally:
        torch.use_deterministic_algorithms(False)


def test_autocast_after_a_plan():
    x, w = torch.rand(1, 2, 5, 5), torch.rand(2, 1, 3, 3, requires_grad=True)
    for _ in range(4):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            top = depthwise_conv2d(x, w)
            assert top.dtype == torch.bfloat16
            assert depthwise_conv2d(x.bfloat16(), w.detach().bfloat16()).dtype == torch.bfloat16
        top.float().sum().backward()
        assert depthwise_conv2d(x, w).dtype == torch.float32 and not_none(w.grad).dtype == torch.float32
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert sigmoid(torch.rand(4, 5)).dtype == torch.float32
            assert elementwise_mult(x, x.bfloat16()).dtype == torch.float32


def test_autocast_leaves_weights_alone():
    """Neither the weight nor its gradient is cast: the graph leads from the top straight to the weight."""
    x, w, b = torch.rand(1, 2, 5, 5).bfloat16(), torch.rand(2, 1, 3, 3), torch.rand(2)
    w.requires_grad_(), b.requires_grad_()
    for _ in range(4):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            top = depthwise_conv2d(x, w, b)
        wanted = torch.nn.functional.conv2d(x.double(), w.double(), b.double(), groups=2)
        torch.testing.assert_close(top.double(), wanted, rtol=2**-8, atol=0)
        reached = [node.variable for node, _ in top.grad_fn.next_functions if node]
        assert reached[0] is w and reached[1] is b
        assert torch.equal(depthwise_conv2d(x, w, b), top)
    entry = depthwise_conv.operator
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert entry.compiled(x.float(), w, b, (1, 1), (0, 0), (1, 1)).dtype == torch.bfloat16
        cast = entry.cast(x.float(), w, b.double(), (1, 1), (0, 0), (1, 1), 0)
        assert [a.dtype for a in cast[:3]] == [torch.bfloat16, torch.float32, torch.float64]


def test_gradients_of_another_operator():
    """backward_by: the saved tensors, the needed gradients, and an operator with other arguments."""
    x, w = torch.rand(1, 2, 5, 5, requires_grad=True), torch.rand(2, 1, 3, 3, requires_grad=True)
    for tensors in ((x, w), (x.detach(), w), (x, w.detach())):
        for _ in range(3):
            diffs = torch.autograd.grad(
                depthwise_conv2d(*tensors).square().sum(), [t for t in tensors if t.requires_grad]
            )
        top = torch.nn.functional.conv2d(*tensors, groups=2)
        wanted = torch.autograd.grad(top.square().sum(), [t for t in tensors if t.requires_grad])
        torch.testing.assert_close(diffs, wanted)

    @operator(sigmoid_layer)
    def copied(x: Tensor) -> Tensor:
        return torch.empty_like(x).copy_(x)

    with pytest.raises(TypeError, match="backward takes ctx"):
        depthwise_conv.operator.short.backward()
    with pytest.raises(TypeError, match=r"stays_float: no tensors are called wieght"):
        operator(sigmoid_layer, stays_float=("wieght",))(copied.operator.function)
    copied.backward_by(elementwise_mult, save=())
    with pytest.raises(TypeError, match=r"elementwise_mult|takes other arguments"):
        copied(x).sum().backward()
    # What does not fit is said at the definition.
    with pytest.raises(TypeError, match=r"elementwise_mult is given top_diff, x, x_wanted; it takes a, b"):
        copied.backward_by(elementwise_mult, save=("x",))
    with pytest.raises(TypeError, match=r"sigmoid: backward_by: save: 'y' is not a tensor of copied"):
        copied.backward_by(elementwise_mult, save=("y",))


def test_parameters_of_other_types(monkeypatch):
    """1, 1.0 and True are three values. A list may change."""
    seen = []

    @operator(sigmoid_layer)
    def scaled(x: Tensor, factor: float, twice: bool) -> Tensor:
        seen.append((factor, twice))
        top = sigmoid_layer.empty_like(x)
        sigmoid_layer.sigmoid_forward(x, top, x.numel())
        return top

    x = torch.rand(3)
    for factor in (1, 1.0, True, 0.0, -0.0, float("nan"), "a", (1, 2), (1, True), [1], None):
        before = len(seen)
        for _ in range(4):
            scaled(x, factor, False)  # ty: ignore[invalid-argument-type]
        assert len(seen) - before == (4 if isinstance(factor, list) else 2), factor
    before = len(seen)
    for _ in range(4):
        scaled(x, float("0.375"), False)  # the same value each time, in another object
    assert len(seen) - before == 2


def test_a_function_that_does_more_is_never_a_plan():
    box = [1.0]

    @operator(sigmoid_layer)
    def more(x: Tensor) -> Tensor:
        top = sigmoid_layer.empty_like(x)
        sigmoid_layer.sigmoid_forward(x, top, x.numel())
        return top.mul_(box[0])

    @operator(sigmoid_layer)
    def of_value(x: Tensor) -> Tensor:
        top = sigmoid_layer.empty_like(x)
        if x.sum().item() > 0:
            sigmoid_layer.sigmoid_forward(x, top, x.numel())
        return top

    @operator(sigmoid_layer)
    def copies(x: Tensor) -> Tensor:
        top = torch.zeros_like(x)
        sigmoid_layer.sigmoid_forward(x, top, x.numel())
        return top

    for call in (more, of_value, copies):
        for i in range(4):
            box[0] = float(i)
            top = call(torch.ones(3))
            assert torch.allclose(top, torch.sigmoid(torch.ones(3)) * (i if call is more else 1))
        assert call.operator.short.plans() == 0


def test_what_becomes_a_plan():
    x = torch.rand(3)

    def function(x, y):
        first, second = torch.empty_like(x), x.new_empty((2, 2))
        sigmoid_layer.sigmoid_forward(x, first, 3)
        sigmoid_layer.sigmoid_forward(first, second, 2)
        return second, first

    with Watcher() as watcher:
        function(x, 3)
    assert watcher.is_plain and len(watcher.allocations) == 2 and len(watcher.launches) == 2
    assert run_and_plan(function, (x, 3))[1] is not None
    assert run_and_plan(function, (x, object()))[1] is None
    assert run_and_plan(lambda x: x, (x,))[1] is None
    assert run_and_plan(lambda x: torch.empty(3), (x,))[1] is None  # launches nothing
    assert is_constant((1, (2.0, "a"), None)) and not is_constant([1]) and not is_constant((x,))


def test_one_tensor_given_twice():
    """A plan of such a call does not apply to calls with two tensors, nor the reverse."""
    for first in (True, False):
        elementwise_mult.operator.short.clear()
        for i in range(8):
            a, b = torch.rand(3, 7), torch.rand(3, 7)
            b = a if (i < 4) == first else b
            assert torch.equal(elementwise_mult(a, b), a * b), i
        assert elementwise_mult.operator.short.plans() == 1
    for i in range(8):
        x = torch.rand(5)
        top = x if i < 4 else torch.zeros(5)
        wanted = torch.sigmoid(x)
        sigmoid_layer.sigmoid_forward(x, top, 5)
        torch.testing.assert_close(top, wanted)


def test_a_function_that_writes_to_its_argument_is_no_plan():
    """A plan would not notify autograd."""

    @operator(sigmoid_layer)
    def writes(x: Tensor) -> Tensor:
        top = sigmoid_layer.empty_like(x)
        sigmoid_layer.sigmoid_forward(x, top, x.numel())
        sigmoid_layer.sigmoid_forward(top, x, x.numel())
        return top

    x = torch.rand(3)
    for i in range(4):
        writes(x)
        assert x._version == i + 1
    assert writes.operator.short.plans() == 0


def test_many_shapes():
    """More than are remembered; all results are right, and the table does not grow without limit."""
    for size in [*range(1, 1200), *range(1, 30)] * 2:
        x = torch.full((size,), 0.25)
        assert sigmoid(x)[size - 1].item() == pytest.approx(0.5621765)
    assert len(sigmoid.operator.short) <= 1024


def test_threads():
    sigmoid.operator.short.clear()
    wrong = []

    def run(seed):
        generator = torch.Generator().manual_seed(seed)
        for i in range(300):
            x = torch.rand(1 + i % 40, generator=generator, requires_grad=i % 3 == 0)
            top = sigmoid(x)
            if not torch.allclose(top, torch.sigmoid(x)):
                wrong.append((seed, i))
            if i % 50 == seed:
                sigmoid.operator.short.clear()

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_failure_is_said_and_tried_again(monkeypatch):
    """An error while a call is planned does not affect the next one. A plan's own error is the library's."""

    @operator(sigmoid_layer)
    def fails(x: Tensor) -> Tensor:
        if broken:
            raise CaffeRuntimeError("no memory")
        top = sigmoid_layer.empty_like(x)
        sigmoid_layer.sigmoid_forward(x, top, x.numel())
        return top

    broken = False
    fails(torch.rand(3))
    broken = True
    with pytest.raises(CaffeRuntimeError, match="no memory"):
        fails(torch.rand(3))
    broken = False
    assert [fails.operator.short.plans() for _ in range(2) if fails(torch.rand(3)) is not None] == [1, 1]


def test_the_collector_of_cycles_is_shown_all_that_is_held():
    held = gc.get_referents(sigmoid.operator.short)
    (plan,) = [one for one in held if type(one).__name__ == "Plan"]
    names = {type(one).__name__ for one in gc.get_referents(plan)}
    assert {"type", "tuple", "dict", "function"} <= names


def test_nothing_is_kept():
    x = torch.rand(4, 5, requires_grad=True)
    for _ in range(3):  # what other tests left, and what that held
        gc.collect()
    before = sys.getrefcount(x), sys.getrefcount(None)
    for _ in range(500):
        sigmoid(x).sum().backward()
        with torch.no_grad():
            sigmoid(x)
    gc.collect()
    assert abs(sys.getrefcount(x) - before[0]) < 5 and abs(sys.getrefcount(None) - before[1]) < 100
    top = weakref.ref(sigmoid(x))
    gc.collect()
    assert top() is None


def test_backward_is_one_operator_and_a_plan():
    x, w = torch.rand(1, 2, 5, 5, requires_grad=True), torch.rand(2, 1, 3, 3, requires_grad=True)
    for call in (depthwise_conv, depthwise_conv_backward):
        call.operator.short.clear()
    for _ in range(3):
        depthwise_conv2d(x, w).backward(torch.rand(1, 2, 3, 3))
    assert depthwise_conv.operator.short.plans() == depthwise_conv_backward.operator.short.plans() == 1


def test_nothing_large_is_imported():
    """torch._dynamo takes seconds to import: no layer's import, net or first call may import it."""
    script = f"""
import importlib, sys, torch
for name in {LAYERS}:
    importlib.import_module(f"cuffi.{{name}}")
import cuffi
cuffi.caffe_net, cuffi.load, cuffi.load_inline
from cuffi.sigmoid import sigmoid
for _ in range(3):
    sigmoid(torch.rand(3))
    sigmoid(torch.rand(3, requires_grad=True)).sum().backward()
assert sigmoid.operator.short.plans() == 1
print("torch._dynamo" in sys.modules)
"""
    done = python_with_torch.run([sys.executable, "-c", script])
    assert done.stdout == "False\n", done.stdout + done.stderr


def test_the_gradients_that_backward_by_gives():
    """They are those of the tensors that were passed, in both ways and in Python's own backward."""
    x, weight, bias = torch.rand(2, 3, 4, 5), torch.rand(3, 1, 3, 3), torch.rand(3)
    for wanted in ((x, weight, None), (None, weight, bias), (x, None, bias), (x, weight, bias)):
        for tensor in (x, weight, bias):
            tensor.requires_grad_(any(tensor is one for one in wanted))
        given, inputs = bias if wanted[2] is not None else None, [t for t in wanted if t is not None]
        expected = torch.autograd.grad(torch.nn.functional.conv2d(x, weight, given, groups=3).sum(), inputs)
        for create_graph in (False, False, False, True):
            top = depthwise_conv2d(x, weight, given)
            found = torch.autograd.grad(top.sum(), inputs, create_graph=create_graph)
            torch.testing.assert_close(found, expected)


def _names(nodes) -> set[str]:
    """The names that the body of a stub declares, without those of Python's own methods."""
    made = {
        node.target.id if isinstance(node, ast.AnnAssign) else node.name
        for node in nodes
        if isinstance(node, ast.AnnAssign | ast.FunctionDef | ast.ClassDef)
    }
    return {name for name in made if not name.startswith("__")}


def test_the_stub_for_type_checkers_has_the_extensions_names():
    tree = ast.parse(Path(extension.__file__).with_name("_call.pyi").read_text())
    call = extension.extension("round")
    assert _names(tree.body) == {name for name in dir(call) if not name.startswith("_")}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            known = vars(getattr(call, node.name))
            assert _names(node.body) == {name for name in known if not name.startswith("_")}, node.name
