"""Every layer, from its cases.py alone: nothing in this file knows a layer by name.

`python test.py -k round_ste` runs one function's tests, `-k "cuda and float16"` one device's and dtype's.
"""

import copy
import importlib
import inspect
import pickle
import re
import threading

import pytest
import torch
from conftest import LAYERS, PACKAGE, Point, cases_of, differentiable, layer_object, random_like, same_bits
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

from layers._cases import Bad, Case, Draw, away_from_kinks, cast, results

# Of a grid's points, those whose case ...
differentiated = pytest.mark.only(lambda case: case.gradient != "none")
numeric = pytest.mark.only(lambda case: case.gradient == "numeric")
twice = pytest.mark.only(lambda case: case.gradient != "none" and case.twice)
once = pytest.mark.only(lambda case: case.gradient != "none" and not case.twice)
elementwise = pytest.mark.only(lambda case: case.elementwise)
of_module = pytest.mark.only(lambda case: case.module is not None)
of_operators = pytest.mark.only(lambda case: not case.is_caffe)


# ------------------------------------------------------------------------------------ is it all there


@pytest.mark.parametrize("layer", LAYERS)
def test_layer_says_its_cases(layer):
    """A layer that says no cases would pass this suite untested."""
    try:
        cases = importlib.import_module(f"{PACKAGE}.{layer}.cases").CASES
    except ModuleNotFoundError as error:
        pytest.fail(f"layer {layer} has no cases.py, so nothing of it is tested: {error}")
    assert cases, f"layer {layer}: CASES in its cases.py is empty, so nothing of it is tested"
    assert all(case.inputs for case in cases), f"layer {layer}: a case without inputs tests nothing"


@pytest.mark.parametrize("layer", LAYERS)
def test_layer_is_built(layer):
    """For one backend at least; tests of a backend that is missing are skipped."""
    assert layer_object(layer).backends(), (
        f"layer {layer} is built for no backend: type `make LAYERS={layer}`"
    )


@pytest.mark.parametrize("layer", LAYERS)
def test_every_operator_is_in_a_case(layer):
    points = [Point(layer, case, next(iter(case.inputs)), "cpu", dtype_of(layer)) for case in cases_of(layer)]
    reached = {op for point in points for op, _ in operator_calls(point)}
    module = vars(importlib.import_module(f"{PACKAGE}.{layer}"))
    operators = {v.operator.torch_op for v in module.values() if hasattr(v, "operator")}
    assert operators <= reached, f"layer {layer}: no case reaches {sorted(map(str, operators - reached))}"


def dtype_of(layer) -> torch.dtype:
    dtypes = layer_object(layer).dtypes
    return torch.float32 if torch.float32 in dtypes else dtypes[0]


# -------------------------------------------------------------------------------------- right values


def test_forward(point):
    arguments = point.arguments()
    result = point.call(*arguments)
    _, reference = point.reference(*arguments)
    assert type(result) is type(reference)
    for got, wanted in zip(results(result), results(reference), strict=True):
        assert (got.dtype, got.device.type, got.shape) == (point.dtype, point.device, wanted.shape)
        assert is_laid_out(got) and got.layout == torch.strided
        assert not got.requires_grad
    point.assert_close(result, reference)


def is_laid_out(tensor) -> bool:
    """Contiguous, or channels_last where a layer works in that layout too."""
    return tensor.is_contiguous() or (
        tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    )


@differentiated
def test_backward(point):
    arguments = point.arguments(grad=True)
    result = point.call(*arguments)
    top_diffs = random_like(result)
    diffs = torch.autograd.grad(results(result), differentiable(arguments), top_diffs)
    doubled, reference = point.reference(*arguments, grad=True)
    wanted = torch.autograd.grad(
        results(reference), differentiable(doubled), [d.double().cpu() for d in top_diffs]
    )
    for diff, argument in zip(diffs, differentiable(arguments), strict=True):
        assert (diff.dtype, diff.device, diff.shape) == (argument.dtype, argument.device, argument.shape)
    point.assert_close(diffs, wanted)


def test_kinks_are_kept_away_from():
    (x,) = away_from_kinks((torch.tensor([-1.0, -0.01, 0.0, 0.02, 0.5]),), ((0.0, 0.1),))
    assert torch.equal(x.detach(), torch.tensor([-1.0, -0.1, 0.1, 0.1, 0.5]))


def is_large(arguments) -> bool:
    """Too large to perturb element by element; a random direction is checked instead."""
    return sum(a.numel() for a in differentiable(arguments)) > 64


@numeric
def test_gradcheck(double):
    arguments = away_from_kinks(double.arguments(grad=True), double.case.kinks)
    assert torch.autograd.gradcheck(double.call, arguments, fast_mode=is_large(arguments))


@numeric
@twice
def test_gradgradcheck(double):
    arguments = away_from_kinks(double.arguments(grad=True), double.case.kinks)
    assert torch.autograd.gradgradcheck(double.call, arguments, fast_mode=is_large(arguments))


@twice
def test_second_derivative(point):
    """Against the reference's; a straight-through gradient can't be had from finite differences."""

    def second(arguments, result, top_diffs):
        wanted = differentiable(arguments)
        first = torch.autograd.grad(results(result), wanted, top_diffs, create_graph=True)
        seeds = [s.to(f.dtype) for s, f in zip(random_like([f.float() for f in first]), first, strict=True)]
        total = sum((f * s).sum() for f, s in zip(first, seeds, strict=True))
        found = torch.autograd.grad(total, [*wanted, *top_diffs], allow_unused=True)
        return [
            torch.zeros_like(x) if f is None else f for f, x in zip(found, [*wanted, *top_diffs], strict=True)
        ]

    arguments = point.arguments(grad=True)
    result = point.call(*arguments)
    top_diffs = [d.requires_grad_() for d in random_like(result)]
    found = second(arguments, result, top_diffs)
    doubled, reference = point.reference(*arguments, grad=True)
    wanted = second(doubled, reference, [d.detach().double().cpu().requires_grad_() for d in top_diffs])
    point.assert_close(found, wanted)


@once
@pytest.mark.parametrize("top", ["constant", "variable"])
def test_second_derivative_is_refused(each_device, top):
    """Never left out in silence: a gradient penalty that adds nothing is a wrong result."""
    arguments = each_device.arguments(grad=True)
    result = each_device.call(*arguments)
    top_diffs = [d.requires_grad_(top == "variable") for d in random_like(result)]
    first = torch.autograd.grad(results(result), differentiable(arguments), top_diffs, create_graph=True)
    loss = sum(t.sum() for t in results(result)) + sum(f.square().sum() for f in first)
    with pytest.raises(RuntimeError, match=r"differentiated once|second derivative"):
        torch.autograd.grad(loss, differentiable(arguments))


@pytest.mark.only(lambda case: case.gradient == "none")
def test_no_derivative_is_refused(each_device):
    """A function without a derivative says so, where otherwise the gradient would lack its part."""
    result = each_device.call(*each_device.arguments(grad=True))
    with pytest.raises(RuntimeError, match="no derivative"):
        results(result)[0].sum().backward()


@differentiated
def test_only_wanted_gradients(each_device):
    """Each gradient asked for alone equals the one asked for with the others, and those are not computed."""
    arguments = each_device.arguments(grad=True)
    result = each_device.call(*arguments)
    top_diffs = random_like(result)
    together = torch.autograd.grad(results(result), differentiable(arguments), top_diffs)
    for wanted, diff in zip(differentiable(arguments), together, strict=True):
        alone = tuple(
            a.detach().requires_grad_(a is wanted) if isinstance(a, Tensor) and a.is_floating_point() else a
            for a in arguments
        )
        result = each_device.call(*alone)
        node = results(result)[0].grad_fn
        if hasattr(
            each_device.case.function, "operator"
        ):  # what backward itself returns, before autograd drops some
            raw = node.apply(*top_diffs)
            raw = raw if isinstance(raw, tuple) else (raw,)
            assert [d is not None for d in raw] == [isinstance(a, Tensor) and a.requires_grad for a in alone]
        (found,) = torch.autograd.grad(
            results(result),
            differentiable([a for a in alone if isinstance(a, Tensor) and a.requires_grad]),
            top_diffs,
        )
        assert same_bits(found, diff)


def test_same_bits_twice(each_dtype):
    arguments = each_dtype.arguments(grad=each_dtype.case.gradient != "none")

    def run():
        result = each_dtype.call(*arguments)
        if each_dtype.case.gradient == "none":
            return results(result)
        return [
            *results(result),
            *torch.autograd.grad(results(result), differentiable(arguments), random_like(result)),
        ]

    assert same_bits(run(), run())


def test_inputs_stay_as_they_are(each_dtype):
    """Neither values nor versions of what is given change, top_diff included."""
    arguments = each_dtype.arguments(grad=each_dtype.case.gradient != "none")
    before = [(a, a.detach().clone(), a._version) for a in arguments if isinstance(a, Tensor)]
    result = each_dtype.call(*arguments)
    if each_dtype.case.gradient != "none":
        top_diffs = random_like(result)
        before += [(d, d.clone(), d._version) for d in top_diffs]
        before += [(t, t.detach().clone(), t._version) for t in results(result)]
        torch.autograd.grad(results(result), differentiable(arguments), top_diffs)
    for tensor, copied, version in before:
        assert tensor._version == version and same_bits(tensor, copied)
    storages = {a.untyped_storage().data_ptr() for a in arguments if isinstance(a, Tensor)}
    assert not any(t.untyped_storage().data_ptr() in storages for t in results(result)), (
        "the result is an argument"
    )


# ------------------------------------------------------------------------------------------- layouts


def transposed(x):
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def sliced(x):
    padded = torch.full((*x.shape, 3), float("nan"), dtype=x.dtype, device=x.device)
    padded[..., 1] = x
    return padded[..., 1]


def offset(x):
    """Contiguous, but aligned to one element only."""
    return torch.cat([x.new_full((1,), float("nan")), x.flatten()])[1:].view(x.shape)


def expanded(x):
    return x[:1].expand_as(x) if x.dim() else x


def channels_last(x):
    return x.to(memory_format=torch.channels_last) if x.dim() == 4 else transposed(x)


def negated(x):
    """Its memory holds -x, and a bit that says so: what z.conj().imag is."""
    return torch._neg_view(-x)


@pytest.mark.parametrize(
    "view", [transposed, sliced, offset, expanded, channels_last, negated], ids=lambda f: f.__name__
)
def test_views(each_dtype, view):
    """A view gives what its contiguous copy gives, forward and backward."""
    viewed = [
        view(a) if isinstance(a, Tensor) and a.is_floating_point() and a.dim() else a
        for a in each_dtype.arguments()
    ]
    copies = [a.clone(memory_format=torch.contiguous_format) if isinstance(a, Tensor) else a for a in viewed]
    if each_dtype.case.gradient != "none":
        for a in differentiable(viewed + copies):
            a.requires_grad_()
    one, other = each_dtype.call(*viewed), each_dtype.call(*copies)
    # A layer with kernels for several layouts may add up in another order in each.
    alike = each_dtype.assert_close if each_dtype.layer_object.any_layout else assert_same_bits
    alike(one, other)
    assert all(is_laid_out(t) for t in results(one))
    if each_dtype.case.gradient != "none":
        top_diffs = random_like(one)
        views = [view(d) if d.dim() else d for d in top_diffs]
        copied = [v.clone(memory_format=torch.contiguous_format) for v in views]
        found = torch.autograd.grad(results(one), differentiable(viewed), views)
        alike(found, torch.autograd.grad(results(other), differentiable(copies), copied))


def assert_same_bits(one, other):
    assert same_bits(one, other)


def empty_arguments(case: Case, dtype, device, grad=False):
    if case.empty:
        return cast(case.empty(Draw()), dtype, device, grad)
    given = next(iter(case.inputs.values()))(Draw())
    return cast(tuple(a[:0] if isinstance(a, Tensor) and a.dim() else a for a in given), dtype, device, grad)


def test_empty(each_dtype):
    case = each_dtype.case
    arguments = empty_arguments(case, each_dtype.dtype, each_dtype.device, case.gradient != "none")
    result = each_dtype.call(*arguments)
    doubled, reference = each_dtype.reference(*arguments, grad=case.gradient != "none")
    assert [t.shape for t in results(result)] == [t.shape for t in results(reference)]
    each_dtype.assert_close(result, reference)
    if case.gradient != "none":
        found = torch.autograd.grad(
            results(result), differentiable(arguments), [torch.ones_like(t) for t in results(result)]
        )
        wanted = torch.autograd.grad(
            results(reference), differentiable(doubled), [torch.ones_like(t) for t in results(reference)]
        )
        each_dtype.assert_close(found, wanted)
    if each_dtype.device == "cuda":
        torch.cuda.synchronize()  # a launch of 0 blocks would leave an error for this one


# ------------------------------------------------------------------------------------------ refusals


def tensor_places(case: Case, arguments) -> list[int]:
    """Where a tensor must stand: not where None would do."""
    parameters = list(inspect.signature(case.function).parameters.values())
    return [
        i
        for i, a in enumerate(arguments)
        if isinstance(a, Tensor)
        and parameters[i].default is not None
        and not is_blob(case, parameters[i].name)
    ]


def is_blob(case: Case, name: str) -> bool:
    """A parameter of a Caffe layer's module: torch.nn looks after these."""
    return case.is_caffe and name.startswith("blob")


def refused(point: Point, runtime, change, kind="CaffeTypeError"):
    """Each tensor in turn is made wrong: an error that names the layer, and the next good call works."""
    arguments = point.arguments()
    before = point.call(*arguments)
    for place in tensor_places(point.case, arguments):
        wrong = list(arguments)
        wrong[place] = change(arguments[place])
        with pytest.raises(getattr(runtime, kind)) as caught:
            point.call(*wrong)
        assert str(caught.value).startswith(f"{point.layer}: "), caught.value
        assert "expected" in str(caught.value) and "got" in str(caught.value)
        assert same_bits(point.call(*arguments), before)


def test_complex(each_device, runtime):
    refused(each_device, runtime, lambda x: x.to(torch.complex64))


@of_operators
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool], ids=str)
def test_integers(each_device, runtime, dtype):
    """A Caffe layer takes them, as labels, and computes in a floating type."""
    refused(each_device, runtime, lambda x: x.to(dtype))


@pytest.mark.only(lambda case: len(differentiable(next(iter(case.inputs.values()))(Draw()))) > 1)
def test_mixed_dtypes(each_device, runtime):
    other = torch.float64 if each_device.dtype != torch.float64 else torch.float32
    refused(each_device, runtime, lambda x: x.to(other))


def test_dtypes_the_layer_has_not(each_device, runtime):
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        if dtype not in each_device.layer_object.dtypes:
            refused(each_device, runtime, lambda x, dtype=dtype: x.to(dtype))


@pytest.mark.parametrize(
    "value", [3, 0.5, [1.0, 2.0], "text", None, torch.zeros(2).numpy()], ids=lambda v: type(v).__name__
)
def test_not_a_tensor(each_device, runtime, value):
    refused(each_device, runtime, lambda _: value)


@pytest.mark.parametrize("grad", [False, True], ids=["", "grad"])
def test_sparse(each_device, runtime, grad):
    refused(each_device, runtime, lambda x: x.to_sparse().requires_grad_(grad))


def test_meta(each_device, runtime):
    refused(each_device, runtime, lambda x: x.to("meta"))


def test_without_memory(on_cpu, runtime):
    """Tensors whose address is NULL although they have elements: C would follow it."""
    refused(on_cpu, runtime, lambda x: torch._efficientzerotensor(x.shape, dtype=x.dtype))


@pytest.mark.only(lambda case: len(differentiable(next(iter(case.inputs.values()))(Draw()))) > 1)
def test_two_devices(on_cuda, runtime):
    refused(on_cuda, runtime, lambda x: x.cpu())


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "layer, case, name",
    [pytest.param(n, c, b, id=f"{n}-{c.name}-{b}") for n in LAYERS for c in cases_of(n) for b in c.bad],
)
def test_bad_arguments(layer, case, name, device):
    """Those that the case lists as bad."""
    from conftest import skip_if_missing

    skip_if_missing(device, layer_object(layer))
    bad: Bad = case.bad[name]
    good = Point(layer, case, next(iter(case.inputs)), device, dtype_of(layer))
    before = good.call(*good.arguments())
    with pytest.raises(bad.error) as caught:
        case.function(*cast(bad.arguments(Draw()), good.dtype, device))
    assert bad.message in str(caught.value)
    assert same_bits(good.call(*good.arguments()), before)


# --------------------------------------------------------------------------- torch.library and compile


class OperatorCalls(TorchDispatchMode):
    """Remembers the calls of a layer's operators, made forward and backward."""

    def __init__(self, namespace: str):
        super().__init__()
        self.namespace, self.calls = namespace, []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if op.namespace == self.namespace:
            self.calls.append((op, args))
        return op(*args, **(kwargs or {}))


def operator_calls(point: Point):
    """(operator, arguments) for each operator that the case's function is made of, backward included."""
    arguments = point.arguments(grad=point.case.gradient != "none")
    with OperatorCalls(f"{PACKAGE}_{point.layer}".replace(".", "_")) as mode:
        result = point.call(*arguments)
        if point.case.gradient != "none":
            torch.autograd.grad(results(result), differentiable(arguments), random_like(result))
    return mode.calls


@of_operators
def test_opcheck(each_device):
    """torch's own check of each operator: schema, shape function, autograd registration, AOT dispatch."""
    calls = {op: args for op, args in operator_calls(each_device)}
    assert calls, "the function reaches none of the layer's operators"
    for op, args in calls.items():
        grad = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "Autograd")
        fresh = [
            a.detach().clone().requires_grad_(grad and a.is_floating_point()) if isinstance(a, Tensor) else a
            for a in args
        ]
        torch.library.opcheck(op, tuple(fresh))


def compiled(function, device: str):
    torch._dynamo.reset()
    # inductor compiles C++ for the cpu, which takes seconds and tests nothing of ours
    return torch.compile(function, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")


@of_operators
def test_compile(each_device):
    """One graph, with a torch operation on either side; forward and backward equal eager."""
    case = each_device.case
    grad = case.gradient != "none"

    def around(*arguments):
        tops = results(case.function(*(a * 1 if isinstance(a, Tensor) else a for a in arguments)))
        return tuple(top * 2 for top in tops)

    eager, traced = each_device.arguments(grad), each_device.arguments(grad)
    wanted, found = around(*eager), compiled(around, each_device.device)(*traced)
    assert same_bits(found, wanted)
    if grad:
        top_diffs = random_like(wanted)
        wanted = torch.autograd.grad(wanted, differentiable(eager), top_diffs)
        each_device.assert_close(torch.autograd.grad(found, differentiable(traced), top_diffs), wanted)


@of_module
@of_operators
def test_compile_module(on_cpu):
    module, given = module_and_call(on_cpu)
    assert same_bits(compiled(module, "cpu")(*given), module(*given))


@of_operators
def test_subclass(on_cpu):
    """A tensor subclass goes through torch.library and comes back as one."""

    class Labelled(Tensor):
        pass

    arguments = on_cpu.arguments()
    labelled = [a.as_subclass(Labelled) if isinstance(a, Tensor) else a for a in arguments]
    result = on_cpu.call(*labelled)
    assert all(isinstance(t, Labelled) for t in results(result))
    assert same_bits([t.as_subclass(Tensor) for t in results(result)], on_cpu.call(*arguments))


@pytest.mark.filterwarnings("ignore:.*performance drop.*")
def test_vmap(on_cpu):
    """Right; a Caffe layer, into which torch.func cannot look, refuses it."""
    first, second = on_cpu.arguments(seed=1), on_cpu.arguments(seed=2)
    stacked = [
        torch.stack([a, b]) if isinstance(a, Tensor) else a for a, b in zip(first, second, strict=True)
    ]
    places = tuple(0 if isinstance(a, Tensor) else None for a in stacked)
    if on_cpu.case.is_caffe:
        with pytest.raises(RuntimeError, match=r"torch\.func"):
            torch.vmap(on_cpu.call, in_dims=places)(*stacked)
        return
    found = torch.vmap(on_cpu.call, in_dims=places)(*stacked)
    wanted = zip(results(on_cpu.call(*first)), results(on_cpu.call(*second)), strict=True)
    assert same_bits(found, [torch.stack(pair) for pair in wanted])


def reference_tangents(point, arguments, tangents):
    tensors = tuple(a.detach() for a in differentiable(arguments))

    def function(*given):
        given = iter(given)
        return point.case.reference(
            *(next(given) if isinstance(a, Tensor) and a.is_floating_point() else a for a in arguments)
        )

    return torch.autograd.functional.jvp(function, tensors, tangents)[1]


@pytest.mark.parametrize("way", ["make_dual", "func.jvp"])
def test_forward_mode(on_cpu, way):
    """Right, or refused: a tangent of 0 would be a wrong number."""
    arguments = on_cpu.arguments()
    tangents = tuple(random_like(differentiable(arguments)))
    try:
        if way == "make_dual":
            with forward_ad.dual_level():
                given = iter(tangents)
                dual = [
                    forward_ad.make_dual(a, next(given))
                    if isinstance(a, Tensor) and a.is_floating_point()
                    else a
                    for a in arguments
                ]
                found = [forward_ad.unpack_dual(t).tangent for t in results(on_cpu.call(*dual))]
        else:

            def function(*tensors):
                tensors = iter(tensors)
                return on_cpu.call(
                    *(
                        next(tensors) if isinstance(a, Tensor) and a.is_floating_point() else a
                        for a in arguments
                    )
                )

            _, found = torch.func.jvp(function, tuple(differentiable(arguments)), tangents)
    except RuntimeError as error:  # NotImplementedError is one
        assert re.search("forward|jvp|torch.func", str(error)), error
        return
    on_cpu.assert_close(found, reference_tangents(on_cpu, arguments, tangents))


@differentiated
def test_func_grad(on_cpu):
    """torch.func's gradient: right, or refused."""
    arguments = on_cpu.arguments()
    places = tuple(i for i, a in enumerate(arguments) if isinstance(a, Tensor) and a.is_floating_point())

    def total(function):
        return lambda *given: sum(t.sum() for t in results(function(*given)))

    try:
        found = torch.func.grad(total(on_cpu.call), argnums=places)(*arguments)
    except RuntimeError as error:
        assert "functorch" in str(error) or str(error).startswith(on_cpu.layer), error
        return
    doubled, _ = on_cpu.reference(*arguments)
    on_cpu.assert_close(found, torch.func.grad(total(on_cpu.case.reference), argnums=places)(*doubled))


# -------------------------------------------------------------------------------------------- autocast


def autocast_dtypes(point):
    return [d for d in (torch.bfloat16, torch.float16) if d in point.layer_object.dtypes]


def test_autocast(each_device):
    """The result has the dtype that the case says; the gradients have their arguments'."""
    case, grad = each_device.case, each_device.case.gradient != "none"
    for dtype in autocast_dtypes(each_device):
        arguments = each_device.arguments(grad)
        with torch.autocast(each_device.device, dtype=dtype):
            result = each_device.call(*arguments)
        wanted = dtype if case.autocast == "lower" else each_device.dtype
        assert [t.dtype for t in results(result)] == [wanted] * len(results(result))
        rounded = cast(arguments, wanted, each_device.device)
        assert same_bits(result, each_device.call(*rounded))
        if grad:
            diffs = torch.autograd.grad(results(result), differentiable(arguments), random_like(result))
            assert [d.dtype for d in diffs] == [a.dtype for a in differentiable(arguments)]


@pytest.mark.only(lambda case: len(differentiable(next(iter(case.inputs.values()))(Draw()))) > 1)
def test_autocast_mixed(each_device):
    """Under autocast arguments of different dtypes are brought to one."""
    for dtype in autocast_dtypes(each_device):
        arguments = each_device.arguments()
        first = next(i for i, a in enumerate(arguments) if isinstance(a, Tensor) and a.is_floating_point())
        mixed = tuple(a.to(dtype) if i == first else a for i, a in enumerate(arguments))
        with torch.autocast(each_device.device, dtype=dtype):
            result = each_device.call(*mixed)
        wanted = dtype if each_device.case.autocast == "lower" else each_device.dtype
        assert same_bits(result, each_device.call(*cast(mixed, wanted, each_device.device)))


# --------------------------------------------------------------------------------------------- modules


def module_and_call(point):
    """The case's module with the parameters that the arguments give it, and what is left to call it with."""
    arguments = point.arguments()
    named = dict(zip(inspect.signature(point.case.function).parameters, arguments, strict=False))
    module = point.case.module().to(point.device, point.dtype)
    for name, parameter in module.named_parameters():
        parameter.data.copy_(named.pop(name))
    return module, [a for a in named.values() if isinstance(a, Tensor)]


@of_module
def test_module_equals_function(each_dtype):
    module, given = module_and_call(each_dtype)
    assert same_bits(module(*given), each_dtype.call(*each_dtype.arguments()))


@of_module
def test_module_copies(on_cpu):
    """deepcopy, pickle and state_dict give a module that computes the same."""
    module, given = module_and_call(on_cpu)
    other = on_cpu.case.module().to(on_cpu.dtype)
    other.load_state_dict(module.state_dict())
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), other):
        assert twin is not module and type(twin) is type(module)
        assert same_bits(twin(*given), module(*given))
    assert repr(module)


# ------------------------------------------------------------------------------- threads and processes


def test_two_threads(each_device):
    """Each with data of its own, one of them making mistakes: neither disturbs the other."""
    wanted = {seed: each_device.call(*each_device.arguments(seed=seed)) for seed in (1, 2)}
    problems = []

    def work(seed):
        try:
            arguments = each_device.arguments(seed=seed)
            for _ in range(50):
                if seed == 2:
                    with pytest.raises(TypeError):
                        each_device.call(*(a + 1j if isinstance(a, Tensor) else a for a in arguments))
                if not same_bits(each_device.call(*arguments), wanted[seed]):
                    problems.append(f"thread {seed} computed something else")
        except BaseException as error:
            problems.append(repr(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not problems and not any(thread.is_alive() for thread in threads)


class Samples(torch.utils.data.Dataset):
    """A data set that calls a layer, as an augmentation would."""

    def __init__(self, point):
        self.point = point

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return results(self.point.call(*self.point.arguments(seed=index)))[0]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_process(on_cpu):
    """A DataLoader's worker, forked after its parent has called the layer, calls it too."""
    wanted = [results(on_cpu.call(*on_cpu.arguments(seed=index)))[0] for index in (0, 1)]
    loader = torch.utils.data.DataLoader(
        Samples(on_cpu), batch_size=None, num_workers=1, multiprocessing_context="fork", timeout=60
    )
    assert same_bits(list(loader), wanted)


# --------------------------------------------------------------------------------------- CUDA's own


def test_side_stream(on_cuda):
    """On torch's current stream: inputs that arrive late, on a side stream, are waited for."""
    grad = on_cuda.case.gradient != "none"
    arguments = on_cuda.arguments(grad)
    wanted = on_cuda.call(*arguments)
    top_diffs = random_like(wanted)
    diffs = torch.autograd.grad(results(wanted), differentiable(arguments), top_diffs) if grad else ()
    late = [
        torch.full_like(a, float("nan")).detach() if isinstance(a, Tensor) and a.is_floating_point() else a
        for a in arguments
    ]
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)  # about 30 ms
        for to, what in zip(late, arguments, strict=True):
            if isinstance(to, Tensor) and to.is_floating_point():
                to.copy_(what.detach())
                to.requires_grad_(grad)
        result = on_cuda.call(*late)
        found = torch.autograd.grad(results(result), differentiable(late), top_diffs) if grad else ()
    stream.synchronize()
    assert same_bits(result, wanted)
    assert same_bits(found, diffs)


def test_cuda_graph(on_cuda):
    """Captured once, replayed on new data: bit for bit what eager gives, forward and backward."""
    grad = on_cuda.case.gradient != "none"
    static = on_cuda.arguments(grad)

    def step():
        result = on_cuda.call(*static)
        diffs = (
            torch.autograd.grad(
                results(result), differentiable(static), [torch.ones_like(t) for t in results(result)]
            )
            if grad
            else ()
        )
        return [*results(result), *diffs]

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    for seed in (2, 3):
        with torch.no_grad():
            for to, what in zip(static, on_cuda.arguments(seed=seed), strict=True):
                if isinstance(to, Tensor):
                    to.copy_(what)
        graph.replay()
        replayed = [t.detach().clone() for t in captured]
        assert same_bits(replayed, step())


HUGE = 2**31 + 8


@elementwise
def test_more_than_2_31_elements(on_cuda):
    """Against the reference where a 32-bit index, count or stride would wrap."""
    if torch.float16 not in on_cuda.layer_object.dtypes:
        pytest.skip("the layer has no float16")
    torch.cuda.empty_cache()
    if torch.cuda.mem_get_info()[0] < 40e9:
        pytest.skip("less than 40 GB of free GPU memory")
    given = on_cuda.arguments()
    huge = [
        torch.empty(HUGE, dtype=torch.float16, device="cuda").uniform_(-2, 2) if isinstance(a, Tensor) else a
        for a in given
    ]
    result = on_cuda.call(*huge)
    half = Point(on_cuda.layer, on_cuda.case, on_cuda.input, "cuda", torch.float16)
    for middle in (0, 2**30, 2**31, HUGE):
        part = slice(max(0, middle - 64), min(HUGE, middle + 64))
        arguments = tuple(a[part] if isinstance(a, Tensor) else a for a in huge)
        half.assert_close([t[part] for t in results(result)], half.reference(*arguments)[1])


def test_second_gpu(on_cuda):
    """A tensor on cuda:1 while cuda:0 is current."""
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU only")
    arguments = on_cuda.arguments()
    there = [a.to("cuda:1") if isinstance(a, Tensor) else a for a in arguments]
    result = on_cuda.call(*there)
    assert torch.cuda.current_device() == 0 and all(t.device.index == 1 for t in results(result))
    assert same_bits([t.cuda(0) for t in results(result)], on_cuda.call(*arguments))
