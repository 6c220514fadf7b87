"""Caffe layers as torch modules: calls and gradients, state per call, blobs, phases, errors. On layers of caffe_zoo."""

import copy
import gc
import importlib
import pickle
import shutil
import struct
import threading

import pytest
import torch
from conftest import ROOT, make
from torch import Tensor

from layers._cases import load_package
from layers._runtime import CaffeError, CaffeRuntimeError, CaffeTypeError, CaffeValueError

DEVICES = ["cpu", "kernels", "cuda"]  # the layer's CPU code, its kernels on the host, on a GPU


@pytest.fixture(scope="session")
def zoo(tmp_path_factory):
    """The layers of caffe_zoo, built outside of the tree, but with the engine that make has compiled for it."""
    folder = tmp_path_factory.mktemp("caffe") / "layers"
    shutil.copytree(ROOT / "tests" / "caffe_zoo", folder / "caffe_zoo")
    settings = [] if torch.cuda.is_available() else ["NVCC="]
    build = f"BUILD={ROOT / 'build'}"
    done = make(f"LAYERS_DIR={folder}", build, *settings, "-j4", "libraries", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return importlib.import_module(f"{load_package(folder, 'caffe_zoo_layers')}.caffe_zoo")


@pytest.fixture(params=DEVICES)
def place(request):
    """Where a layer runs: a function that puts a module there, with the device."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    return Place(request.param)


class Place:
    def __init__(self, name: str):
        self.mode = {"cpu": "cpu", "kernels": "gpu", "cuda": None}[name]
        self.device = "cuda" if name == "cuda" else "cpu"

    def __call__(self, module):
        module.mode = self.mode
        return module.to(self.device)

    def draw(self, *shape, dtype=torch.float64, grad=False, seed=1) -> Tensor:
        values = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)
        return values.to(self.device).requires_grad_(grad)


def grads(tops, inputs, seed=3, **options):
    tops = tops if isinstance(tops, tuple) else (tops,)
    generator = torch.Generator().manual_seed(seed)
    diffs = [torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t) for t in tops]
    return torch.autograd.grad(tops, inputs, diffs, **options)


def raises(error, *words):
    """An error of this kind, and the layers' own, whose message has all these words."""
    pattern = "(?s)" + "".join(f"(?=.*{word})" for word in words)
    assert issubclass(error, CaffeError)
    return pytest.raises(Exception, match=pattern, check=lambda e: type(e).__name__ == error.__name__)


# ------------------------------------------------------------------------------------ calls, gradients


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_bottom_one_top(zoo, place, dtype):
    m = place(zoo.Ramp(zoo_param={"slope": 0.25}))
    x = place.draw(2, 3, 4, dtype=dtype, grad=True)
    y = m(x)
    reference = torch.nn.functional.leaky_relu(x, 0.25)
    torch.testing.assert_close(y, reference)
    assert y.grad_fn is not None and y.device == x.device
    torch.testing.assert_close(grads(y, x), grads(reference, x))
    with torch.no_grad():
        for _ in range(3):  # by the careful way, then by the short one
            again = m(x)
            assert torch.equal(again, y) and not again.requires_grad
    assert torch.autograd.gradcheck(m, (place.draw(3, 5, grad=True),))


def test_two_bottoms_two_tops(zoo, place):
    m = place(zoo.Pair())
    if place.mode == "cpu":
        said = r"Pair's own Forward_cpu is NOT_IMPLEMENTED \(zoo_layers.cpp:\d+: Not Implemented Yet\)"
        with raises(CaffeRuntimeError, said):
            m(place.draw(3), place.draw(3))
        m.mode = None  # its kernels, as there is no CPU code
    a, b = place.draw(3, 4, grad=True), place.draw(3, 4, grad=True, seed=2)
    tops = m(a, b)
    assert type(tops) is tuple
    torch.testing.assert_close(tops, (a + b, a * b))
    torch.testing.assert_close(grads(m(a, b), (a, b)), grads((a + b, a * b), (a, b)))
    torch.testing.assert_close(grads(m(a, b)[1], (a,)), grads(a * b, (a,)))  # no gradient comes to the sum
    torch.testing.assert_close(grads(m(a.detach(), b), (b,)), grads((a + b, a * b), (b,)))  # propagate_down
    assert torch.autograd.gradcheck(m, (a, b))


def test_names_say_how_many_tops(zoo):
    m = zoo.Pair(bottom=["a", "b"], top=["s", "p", "s2", "p2"])
    a, b = torch.randn(5, requires_grad=True), torch.randn(5, requires_grad=True)
    torch.testing.assert_close(m(a, b), (a + b, a * b, a + b, a * b))
    torch.testing.assert_close(grads(m(a, b), (a, b)), grads((a + b, a * b, a + b, a * b), (a, b)))
    with raises(CaffeValueError, "1 bottoms came, expected 2: a, b"):
        m(a)
    with raises(CaffeTypeError, "bottom 'b'", "float32 as"):
        m(a, b.double())
    with raises(CaffeRuntimeError, r"Check failed: .*2 vs. 1", "2 bottom"):
        zoo.Pair()(a)


def test_parameters_as_text(zoo):
    text = 'layer { name: "r" type: "Ramp" bottom: "x" top: "y" zoo_param { slope: 0.5 } }'
    assert torch.equal(zoo.Ramp(text)(torch.tensor([-2.0, 2.0])), torch.tensor([-1.0, 2.0]))
    assert torch.equal(zoo.Ramp({"zoo_param": {"slope": 3}})(torch.tensor([-2.0])), torch.tensor([-6.0]))
    assert "zoo_param { slope: 0.5 }" in repr(zoo.Ramp(text))
    with raises(CaffeValueError, "slop", "slope"):
        zoo.Ramp(zoo_param={"slop": 1})


def test_loss_and_its_weight(zoo, place):
    x, label = place.draw(6, 2, grad=True), place.draw(6, 2, seed=2)
    loss = 0.5 * (x - label).square().mean()
    for weight in (1, 0.25):
        m = place(zoo.Rewriting(loss_weight=[weight] if weight != 1 else []))
        for _ in range(3):  # the careful way, then the short one
            y = m(x, label)
            torch.testing.assert_close(y, weight * loss)
            torch.testing.assert_close(
                torch.autograd.grad(2 * y, x), torch.autograd.grad(2 * weight * loss, x, retain_graph=True)
            )
            with torch.no_grad():
                torch.testing.assert_close(m(x, label), weight * loss.detach())
    m = place(zoo.Pair(loss_weight=[0.5, 1]))
    m.mode = None
    a, b = place.draw(3, 4, grad=True), place.draw(3, 4, grad=True, seed=2)
    for _ in range(3):
        torch.testing.assert_close(m(a, b), ((a + b) / 2, a * b))
        torch.testing.assert_close(grads(m(a, b), (a, b)), grads(((a + b) / 2, a * b), (a, b)))
    shared = place(zoo.Shared(loss_weight=[3]))
    for _ in range(3):
        torch.testing.assert_close(shared(a), 3 * a.flatten())
        torch.testing.assert_close(grads(shared(a), a), grads(3 * a.flatten(), a))


def test_top_shaped_by_its_values(zoo, place):
    m = place(zoo.Positive())
    with torch.no_grad():
        for seed in range(6):
            x = place.draw(9, seed=seed)
            assert torch.equal(m(x), x[x > 0])
    x = place.draw(9, grad=True)
    m = place(zoo.Positive())
    for seed in range(6):
        x = place.draw(9, grad=True, seed=seed)
        torch.testing.assert_close(m(x), x[x > 0])
        torch.testing.assert_close(grads(m(x), x), grads(x[x > 0], x))
    assert m(-torch.ones(3, device=place.device)).shape == (0,)


def test_top_that_is_the_bottoms_memory(zoo, place):
    m = place(zoo.Shared())
    x = place.draw(2, 3, grad=True)
    y = m(x)
    assert y.data_ptr() == x.data_ptr() and y.shape == (6,)
    torch.testing.assert_close(grads(y * y, x), grads(x.flatten().square(), x))
    with torch.no_grad():
        assert m(x).data_ptr() == x.data_ptr()


def test_in_place(zoo, place):
    m = place(zoo.Ramp(zoo_param={"slope": 0.25}, bottom=["x"], top=["x"]))
    x = place.draw(3, 4, grad=True)
    inner = x * 2
    y = m(inner)
    assert y.data_ptr() == inner.data_ptr()
    reference = torch.nn.functional.leaky_relu(x * 2, 0.25)
    assert torch.equal(y, reference)
    torch.testing.assert_close(grads(y, x, retain_graph=True), grads(reference, x))
    with raises(CaffeRuntimeError, "in-place", "once"):
        grads(y, x)
    before = x.detach().clone()
    with raises(CaffeRuntimeError, "bottom 'x' is a leaf"):
        m(x)
    assert torch.equal(x, before)
    with raises(CaffeTypeError, "bottom 'x'", "contiguous"):
        m(place.draw(3, 4).t())
    squared = (z := x * 1).square()  # needs z, which the layer then overwrites
    with torch.no_grad():
        m(z)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grads(squared, x)


# ---------------------------------------------------------------------------------- state of one call


def test_several_forwards_before_a_backward(zoo, place):
    m = place(zoo.Rewriting())
    xs, label = [place.draw(4, grad=True, seed=s) for s in range(3)], place.draw(4, seed=9)
    ys = [m(x, label) for x in xs]
    for x, y in reversed([*zip(xs, ys, strict=True)]):
        torch.testing.assert_close(torch.autograd.grad(y, x)[0], (x - label).detach() / 4)
    assert [len(pool) for pool in m._engine.pools.values()] == [3]


def test_instances_come_back(zoo, place):
    m = place(zoo.Noise())
    x = place.draw(4, grad=True)
    for _ in range(5):
        m(x).sum().backward()
        m(x)  # its graph dies
        with torch.no_grad():
            m(x)
    gc.collect()
    assert sum(map(len, m._engine.pools.values())) == 1


def test_memory_goes_with_the_module(zoo, place):
    services = importlib.import_module(f"{zoo.__package__.rpartition('.')[0]}._caffe_services")
    gc.collect()
    before = set(services.memory)
    m, x = place(zoo.Noise()), place.draw(4, grad=True)
    y = m(x)
    with torch.no_grad():
        m(x), m(x)
    assert set(services.memory) > before
    gc.disable()
    try:
        del m
        y.sum().backward()  # what it needs is still there
        del y
        assert set(services.memory) == before
    finally:
        gc.enable()


@pytest.mark.filterwarnings("ignore:.*torch.jit")  # make_dual's own
def test_short_and_careful_way_agree(zoo, place):
    """The short way is for calls like the last one; whatever else comes must not take it."""
    m = place(zoo.Ramp(zoo_param={"slope": 0.5}))
    reference = torch.nn.functional.leaky_relu
    x = place.draw(4, 6, dtype=torch.float32)
    grad = x.clone().requires_grad_()
    calls = [x, grad, x.t(), x[:2], x.double(), x.round().int(), x[:0], x.view(6, 4), x.unsqueeze(0), x, grad]
    calls += [torch._neg_view(x), x.as_strided((4, 6), (1, 1)), torch.nn.Parameter(x), x]
    with torch.no_grad():
        for other in calls:
            for again in (other, other, x):
                floating = again if again.is_floating_point() else again.float()
                torch.testing.assert_close(m(again), reference(floating, 0.5))
                assert not m(again).requires_grad
    assert m._shortcut is not None
    assert m(grad).requires_grad and not m(x).requires_grad
    torch.testing.assert_close(grads(m(grad), grad), grads(reference(grad, 0.5), grad))
    with (
        torch.autograd.forward_ad.dual_level(),
        pytest.raises(RuntimeError, match="forward"),
    ):
        m(torch.autograd.forward_ad.make_dual(x, x))
    with raises(CaffeRuntimeError, "torch.func"):
        torch.func.grad(lambda x: m(x).sum())(x)
    with raises(CaffeValueError, "2 bottoms came, expected 1"):
        m(x, x)


def test_training_takes_the_short_way(zoo, place, monkeypatch):
    m = place(zoo.Affine(zoo_param=FILLER))
    x = place.draw(2, 3, 4, grad=True)
    m(x)
    (instance,) = m._engine.pools[next(iter(m._engine.pools))]

    def careful(*_):
        raise AssertionError("the careful way")

    monkeypatch.setattr(type(m._engine), "forward", careful)
    monkeypatch.setattr(type(instance), "backward", careful)
    y = place.draw(2, 3, 4, seed=2)
    for inputs in [(x, m.blob0, m.blob1), (x,), (m.blob1,), (m.blob0, x)]:
        reference = x * m.blob0.view(3, 1) + m.blob1.view(3, 1)
        for diff in (y, y.mT.contiguous().mT, y[:1, :1, :1].expand(2, 3, 4)):
            result = m(x)
            torch.testing.assert_close(result, reference)
            expected = torch.autograd.grad(reference, inputs, diff, retain_graph=True)
            torch.testing.assert_close(torch.autograd.grad(result, inputs, diff), expected)
            with torch.no_grad():
                torch.testing.assert_close(m(x), reference)
    with raises(CaffeRuntimeError, "once only"):
        (gradient,) = torch.autograd.grad(m(x).square().sum(), x, create_graph=True)
        gradient.sum().backward()
    monkeypatch.undo()
    several = [m(x) for _ in range(3)]  # each with an instance of its own
    for result in several:
        torch.testing.assert_close(grads(result, x), grads(reference, x, retain_graph=True))
    result = m(x).sum()  # the short way's backward, then a second one
    once, twice = (torch.autograd.grad(result, x, retain_graph=True) for _ in range(2))
    expected = torch.autograd.grad(reference.sum(), x, retain_graph=True)
    torch.testing.assert_close(once, expected)
    torch.testing.assert_close(twice, expected)


def test_results_start_from_zero(zoo, place):
    """As Caffe's memory does, whatever calls there were before on the same object."""
    x = place.draw(1000, grad=True)
    for training in (1, 2, 3):
        m = place(zoo.Adding())
        for _ in range(training):
            torch.full_like(x, 7)  # what the memory to come may hold
            (diff,) = torch.autograd.grad(m(x).sum(), x)
            assert torch.equal(diff, torch.ones_like(x))
        with torch.no_grad():
            for _ in range(3):
                torch.full_like(x, 7)
                assert torch.equal(m(x), x)


def test_backward_twice(zoo, place):
    """Backward rewrites what it reads: a second one must start from Forward's state again."""
    m = place(zoo.Rewriting())
    x, label = place.draw(4, grad=True), place.draw(4, seed=9)
    y = m(x, label)
    first = torch.autograd.grad(y, x, retain_graph=True)[0]
    second = torch.autograd.grad(y, x, retain_graph=True)[0]
    torch.testing.assert_close(first, (x - label).detach() / 4)
    assert torch.equal(first, second)
    torch.autograd.grad(y, x)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y, x)


def test_backward_twice_of_a_random_layer(zoo, place):
    m = place(zoo.Noise())
    x = place.draw(100, grad=True)
    y = m(x)
    first = torch.autograd.grad(y.sum(), x, retain_graph=True)[0]
    assert torch.equal(first, (y != 0).to(x))
    expected = torch.rand(3, generator=_state_like())
    assert torch.equal(torch.autograd.grad(y.sum(), x, retain_graph=True)[0], first)
    assert torch.equal(torch.rand(3), expected)  # torch's generator went on as if nothing had been drawn


def _state_like():
    generator = torch.Generator()
    generator.set_state(torch.get_rng_state())
    return generator


def test_second_backward_that_would_be_wrong_is_refused(zoo):
    m = zoo.Noise()
    x = torch.randn(100, requires_grad=True)
    y = m(x)
    torch.autograd.grad(y.sum(), x, retain_graph=True)
    m.eval(), m.train()
    m._engine.pools.clear()
    node = y.grad_fn
    node.call.states.clear()  # as if the layer drew from a source that nobody can replay
    with raises(CaffeRuntimeError, "gave another result"):
        torch.autograd.grad(y.sum(), x)


def test_modified_bottom_is_noticed(zoo):
    m, x = zoo.Noise(), torch.randn(4, requires_grad=True) * 1
    y = m(x)
    x.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_second_derivative_is_refused(zoo):
    m, x = zoo.Rewriting(), torch.randn(4, requires_grad=True)
    (diff,) = torch.autograd.grad(m(x, torch.zeros(4)), x, create_graph=True)
    with raises(CaffeRuntimeError, "no second derivative"):
        diff.sum().backward()


def test_threads(zoo):
    m = zoo.Rewriting()
    m.setup((64,), (64,))
    wrong = []

    def work(seed):
        for i in range(50):
            x = torch.randn(64, generator=torch.Generator().manual_seed(seed * 100 + i)).requires_grad_()
            y = m(x, torch.zeros(64))
            y.backward()
            if not torch.allclose(x.grad, x.detach() / 64):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_layer_that_counts_its_calls(zoo):
    m, x = zoo.Counting(), torch.zeros(2)
    for i in range(3):
        assert m(x)[0] == i + 1
    assert copy.deepcopy(m)(x)[0] == 1


def test_iteration(zoo, place):
    """A layer that asks its net for the training loop's iteration is told, or says how to tell it."""
    m, x = place(zoo.Scheduled()), place.draw(5, grad=True)
    assert m.iteration is None
    with raises(CaffeRuntimeError, "m.iteration = step"):
        m(x)
    for step in (0, 3, 1, 2**30):
        m.iteration = step
        for _ in range(2):  # the careful way, the short one
            with torch.no_grad():
                torch.testing.assert_close(m(x), step * x)
            (diff,) = grads(m(x), x)
        torch.testing.assert_close(diff, step * grads(x * 1, x)[0])
    assert m.iteration == 2**30
    with raises(CaffeValueError, "iteration", "-1"):
        m.iteration = -1
    m.iteration = None
    with raises(CaffeRuntimeError, "m.iteration = step"):
        m(x)


# ------------------------------------------------------------------------------------ random numbers


def test_follows_torchs_seed(zoo, place):
    m, x = place(zoo.Noise()), place.draw(1000)
    torch.manual_seed(5)
    y = m(x)
    other = m(x)
    torch.manual_seed(5)
    assert torch.equal(m(x), y) and not torch.equal(other, y)
    assert 300 < (y == 0).sum() < 700
    assert torch.equal(m.eval()(x), x)
    assert not torch.equal(m.train()(x), x)
    m = place(zoo.Noise('layer { type: "Noise" phase: TEST }'))
    assert torch.equal(m(x), x) and not torch.equal(m.train()(x), x)


def test_cpu_forward_without_cpu_backward(zoo, monkeypatch):
    """Forward is run again by kernels, and from then on at once."""
    m, x = zoo.Kernels(), torch.randn(5, requires_grad=True)
    torch.testing.assert_close(grads(m(x), x), grads(2 * x, x))
    assert m._engine.host_mode == 1
    torch.testing.assert_close(grads(m(x), x), grads(2 * x, x))
    m = zoo.Kernels()
    m(x)
    several = [m(x) for _ in range(3)]  # each object has its short way, with CPU code
    grads(several.pop(), x)
    del several
    monkeypatch.setattr(type(m._engine), "forward_again", None)
    for _ in range(2):
        several = [m(x) for _ in range(3)]
        for y in several:
            torch.testing.assert_close(grads(y, x), grads(2 * x, x))
    m = zoo.Kernels()
    m.mode = "cpu"
    with raises(CaffeRuntimeError, r"Backward_cpu is NOT_IMPLEMENTED \(zoo_layers.cpp:\d+: ", "m.mode"):
        grads(m(x), x)


def test_cpu_forward_without_cpu_backward_and_other_random_numbers(zoo):
    m, x = zoo.Noise(zoo_param={"slope": 1}), torch.randn(100, requires_grad=True)
    with raises(CaffeRuntimeError, "gave another result"):
        m(x).sum().backward()
    y = m(x)
    y.sum().backward()
    assert torch.equal(x.grad, (y != 0).to(x))


def test_no_backward_at_all(zoo):
    m, x = zoo.Kernels(zoo_param={"slope": 1}), torch.randn(3, requires_grad=True)
    for _ in range(2):
        with raises(CaffeRuntimeError, r"Backward_... is NOT_IMPLEMENTED \(zoo_layers.c..?:\d+: "):
            m(x).sum().backward()
    assert m._engine.host_mode in (None, 0)


# --------------------------------------------------------------------------------- parameter blobs


FILLER = {"filler": {"type": "uniform", "min": 1, "max": 2}}


def test_blobs(zoo, place):
    torch.manual_seed(1)
    m = place(zoo.Affine(zoo_param=FILLER))
    x = place.draw(2, 3, 4, grad=True)
    m(x)
    torch.manual_seed(1)
    other = place(zoo.Affine(zoo_param=FILLER)).setup((2, 3, 4), dtype=torch.float64, device=place.device)
    assert torch.equal(m.blob0, other.blob0) and (m.blob0 >= 1).all() and (m.blob0 < 2).all()
    assert dict(m.named_parameters()).keys() == {"blob0", "blob1"} and m.blob0.is_leaf

    def reference(x, w, b):
        return x * w[:, None] + b[:, None]

    inputs = (x, m.blob0, m.blob1)
    torch.testing.assert_close(m(x), reference(*inputs))
    torch.testing.assert_close(grads(m(x), inputs), grads(reference(*inputs), inputs))
    y = m(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    torch.testing.assert_close(m.blob1.grad, torch.full_like(m.blob1, 16))
    with torch.no_grad():
        m.blob0.fill_(2), m.blob1.fill_(1)
        for _ in range(3):
            torch.testing.assert_close(m(x), 2 * x + 1)
        m.blob1 = torch.nn.Parameter(torch.zeros_like(m.blob1))
        torch.testing.assert_close(m(x), 2 * x)


def test_propagate_down(zoo, place):
    m = place(zoo.Pair(propagate_down=[True, False]))
    m.mode = None
    a, b = place.draw(3, 4, grad=True), place.draw(3, 4, grad=True, seed=2)
    for _ in range(2):
        tops = m(a, b)
        torch.testing.assert_close(tops, (a + b, a * b))
        left, right = grads(tops, (a, b), allow_unused=True)
        torch.testing.assert_close(left, grads((a + b, a * b), (a,))[0])
        assert right is None
    with raises(CaffeValueError, "propagate_down says 1 bottoms, 2 came"):
        zoo.Pair("propagate_down: false")(a, b)


def test_learning_rate_zero_freezes(zoo):
    m = zoo.Affine(param=[{"lr_mult": 1}, {"lr_mult": 0}], zoo_param=FILLER).setup((2, 3))
    assert [p.requires_grad for p in m.parameters()] == [True, False]
    m(torch.randn(2, 3)).sum().backward()
    assert m.blob0.grad is not None and m.blob1.grad is None


def test_another_shape_meets_the_layers_own_check(zoo):
    m = zoo.Affine(zoo_param=FILLER).setup((2, 3))
    x = torch.randn(2, 3)
    first = m(x)  # keeps the first instance; what comes is checked by a second one
    with raises(
        CaffeRuntimeError,
        "zoo: forward",
        r"zoo_layers.cpp:\d+",
        "Check failed: .*5 vs. 3",
        "channels changed",
    ):
        m(torch.randn(2, 5))
    torch.testing.assert_close(m(x), first)
    assert m(torch.randn(7, 3, 2)).shape == (7, 3, 2)


def test_blobs_that_the_layer_was_not_given(zoo):
    """Where a layer does not say how many it takes, Caffe reads behind the end of a list."""
    x = torch.ones(2, 3)
    with raises(CaffeRuntimeError, "forward", "a bottom or top that the layer was not given"):
        zoo.Careless()(x)
    assert zoo.Careless()(x, 2 * x).tolist() == (2 * x).tolist()
    m = zoo.Careless(zoo_param={"slope": 1})
    with raises(CaffeRuntimeError, "setup", r"it has 2 bottom\(s\) and 1 top\(s\), and needs more"):
        m(x, x)
    assert m(x[:1], 2 * x[:1]).tolist() == [[2, 2, 2]]
    with raises(CaffeRuntimeError, "forward", "and needs more"):
        m(x, x)
    assert m(3 * x[:1], x[:1]).tolist() == [[3, 3, 3]]
    tops = zoo.Careless(top=["product", "other"], zoo_param={"slope": 1})(x, x)
    assert [top.tolist() for top in tops] == [x.tolist(), (0 * x).tolist()]


def test_no_top_that_the_layer_does_not_tell_of(zoo):
    for grad in (False, True):
        m = zoo.Finite()
        for x in (torch.ones(3), torch.zeros(2, 2), torch.ones(3)):
            assert m(x.requires_grad_(grad)) == ()
        with raises(CaffeRuntimeError, "number 1"):
            m(torch.tensor([1, torch.inf]))
    with raises(CaffeRuntimeError, "top 'y'", "no shape"):
        zoo.Finite(bottom=["x"], top=["y"])(torch.ones(3))


def test_more_instances_leave_the_generator_alone(zoo):
    m = zoo.Affine(zoo_param=FILLER).setup((2, 3))
    x = torch.randn(2, 3)
    state = torch.get_rng_state()
    kept = [m(x), m(x), m.eval()(x)]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(kept[0], kept[2])


def test_state_dict_before_the_first_call(zoo):
    m = zoo.Affine(zoo_param=FILLER).setup((2, 3), dtype=torch.float64)
    other = zoo.Affine(zoo_param=FILLER, param=[{"lr_mult": 0}])
    other.load_state_dict(m.state_dict())
    assert not other.blob0.requires_grad and other.blob1.requires_grad
    state = torch.get_rng_state()
    x = torch.randn(2, 3, dtype=torch.float64, generator=torch.Generator())
    assert torch.equal(other(x), m(x)) and torch.equal(torch.get_rng_state(), state)
    wrong = zoo.Affine()
    wrong.load_state_dict(m.state_dict())
    with raises(CaffeValueError, "blob0", r"\[4\]", r"\[3\]"):
        wrong(torch.randn(2, 4, dtype=torch.float64))
    with raises(CaffeTypeError, "blob0", "float32 on cpu", "float64"):
        m(x.float())
    assert m.float()(x.float()).dtype == torch.float32


def test_copies(zoo):
    m = zoo.Affine(zoo_param=FILLER).setup((2, 3))
    x = torch.randn(2, 3)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m)), copy.copy(m)):
        assert torch.equal(other(x), m(x))
    other = copy.deepcopy(m)
    with torch.no_grad():
        other.blob0 += 1
    assert not torch.equal(other(x), m(x))


def test_functional_call(zoo):
    m, x = zoo.Affine(zoo_param=FILLER).setup((2, 3)), torch.randn(2, 3)
    blobs = {"blob0": torch.full((3,), 2.0, requires_grad=True), "blob1": torch.ones(3)}
    torch.testing.assert_close(torch.func.functional_call(m, blobs, (x,)), 2 * x + 1)


# ------------------------------------------------------------------------------------- .caffemodel


def field(number: int, value) -> bytes:
    """A protobuf field, written by hand."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    value = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    return (bytes([value & 127 | 128]) + _varint(value >> 7)) if value > 127 else bytes([value])


def floats(*values: float) -> bytes:
    return struct.pack(f"{len(values)}f", *values)


def test_caffemodel(zoo, tmp_path):
    new = [
        field(5, floats(1, 2, 3)) + field(7, field(1, b"\3")),
        b"".join(_varint(5 << 3 | 5) + floats(v) for v in (4, 5, 6)) + field(7, field(1, 3)),
    ]
    old = [
        field(1, 1) + field(2, 1) + field(3, 1) + field(4, 3) + field(5, floats(*v))
        for v in ((7, 8, 9), (1, 1, 1))
    ]
    net = field(100, field(1, "data")) + field(
        100, field(1, "a") + field(2, "Affine") + b"".join(field(7, b) for b in new)
    )
    net += field(2, field(4, "b") + b"".join(field(6, b) for b in old))
    # Caffe's first format: name and blobs in a message within the layer; a blob in double
    eight = b"".join(struct.pack("d", v) for v in (2, 2, 2))
    first = [field(8, eight) + field(7, field(1, 3)), old[1]]
    net += field(2, field(1, field(1, "v0") + b"".join(field(50, b) for b in first)))
    path = tmp_path / "net.caffemodel"
    path.write_bytes(field(1, "net") + net)
    m = zoo.Affine().load_caffemodel(path, "a")
    assert m.blob0.tolist() == [1, 2, 3] and m.blob1.tolist() == [4, 5, 6]
    assert m(torch.ones(1, 3)).tolist() == [[5, 7, 9]]
    assert m.load_caffemodel(path, "b").blob0.tolist() == [7, 8, 9]  # into blobs that are there
    m = zoo.Affine().load_caffemodel(path, "b")  # four axes, as old files have it
    assert m(torch.ones(1, 3)).tolist() == [[8, 9, 10]] and m.blob0.shape == (3,)
    assert m.load_caffemodel(path, "v0").blob0.tolist() == [2, 2, 2]
    with raises(CaffeValueError, "no layer 'c'", "data, a, b, v0"):
        m.load_caffemodel(path, "c")
    with raises(CaffeValueError, "0 blobs for 'data'", "has 2"):
        m.load_caffemodel(path, "data")
    path.write_bytes(net[:-2])
    with raises(CaffeValueError, "not a .caffemodel"):
        m.load_caffemodel(path, "a")


# --------------------------------------------------------------------------------------- bad input


def test_refused(zoo):
    m = zoo.Ramp()
    for bad, words in {
        "text": ("bottom 0", "a tensor", "str"),
        torch.ones(2, dtype=torch.float16): ("float32 or float64", "float16"),
        torch.ones(2, dtype=torch.complex64): ("real numbers",),
        torch.ones(2, device="meta"): ("bottom 0", "data on cpu or cuda", "meta"),
        torch.ones(2).to_sparse(): ("dense",),
    }.items():
        with raises(CaffeTypeError, *words):
            m(bad)
    with raises(
        CaffeRuntimeError, r"zoo_layers.cpp:\d+: Check failed: .* \(5 vs. 4\) no more than four axes"
    ):
        m(torch.ones(1, 1, 1, 1, 1))
    with raises(CaffeRuntimeError, "torch.func"):
        torch.func.vmap(m)(torch.ones(2, 2))
    with raises(CaffeValueError, "mode"):
        m.mode = "tpu"
    assert m(torch.tensor([-1.0, 1])).tolist() == [0, 1]


def test_converted(zoo):
    m = zoo.Ramp(zoo_param={"slope": 2})
    assert m(torch.tensor([-1, 3])).tolist() == [-2, 3] and m(torch.tensor([True])).dtype == torch.float32
    x = torch.randn(4, 6)
    for view in (x.t(), x[:, ::2], x.to_sparse().to_dense().expand(2, 4, 6), x[0].conj()):
        torch.testing.assert_close(m(view), torch.nn.functional.leaky_relu(view, 2))
    leaf = torch.randn(3, 4, requires_grad=True)
    torch.testing.assert_close(
        grads(m(leaf.t()), leaf), grads(torch.nn.functional.leaky_relu(leaf.t(), 2), leaf)
    )
    y = zoo.Rewriting()(torch.ones(2, requires_grad=True), torch.tensor([1, 2]))  # integer labels
    assert y.item() == 0.25


def test_autocast(zoo):
    m = zoo.Ramp()
    half = torch.randn(3, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu"):
        y = m(half)
    assert y.dtype == torch.float32
    y.sum().backward()
    assert half.grad.dtype == torch.bfloat16


def test_empty(zoo, place):
    m = place(zoo.Ramp())
    x = place.draw(0, 3, grad=True)
    y = m(x)
    assert y.shape == (0, 3)
    y.sum().backward()
    assert x.grad.shape == (0, 3)


def test_compile_breaks_the_graph(zoo):
    m, x = zoo.Ramp(zoo_param={"slope": 0.5}), torch.randn(5, requires_grad=True)
    compiled = torch.compile(lambda x: m(x * 2) + 1, backend="eager")
    torch.testing.assert_close(compiled(x), torch.nn.functional.leaky_relu(x * 2, 0.5) + 1)


def test_modes_and_subclasses(zoo):
    from torch.utils.flop_counter import FlopCounterMode

    class Marked(Tensor):
        pass

    m, x = zoo.Ramp(), torch.randn(3)
    with FlopCounterMode(display=False):
        assert torch.equal(m(x), x.relu())
    assert torch.equal(m(x.as_subclass(Marked)), x.relu())
    with torch.inference_mode():
        assert torch.equal(m(x), x.relu())
    assert torch.equal(m(x), x.relu())
    with torch.inference_mode():
        fresh = zoo.Noise().eval()
        fresh(x)
    y = torch.randn(3, requires_grad=True)
    fresh(y).sum().backward()
    assert y.grad.tolist() == [1, 1, 1]


# ------------------------------------------------------------------------------------------- GPU


@pytest.fixture
def gpu():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    return Place("cuda")


def test_a_diff_that_nobody_writes_is_zero(zoo, place):
    """Not what the memory held before."""
    m = place(zoo.Stopping())
    x = place.draw(1000, grad=True)
    for _ in range(3):
        y = m(x)
        diff = torch.ones_like(y)
        used = [torch.full_like(y, torch.nan) for _ in range(4)]
        del used  # the next allocations of this size
        assert torch.equal(torch.autograd.grad(y, x, diff)[0], torch.zeros_like(x))
        assert torch.equal(y, x)


def test_a_failed_setup_is_not_taken_down(zoo):
    """The destructor would free what LayerSetUp has not made."""
    with raises(CaffeRuntimeError, "a table needs channels"):
        zoo.Mirrored()(torch.randn(3))
    gc.collect()


@pytest.mark.parametrize("mode", ["cpu", "gpu"])
def test_products_are_rounded_on_the_host(zoo, mode):
    """Not fused with the sum, as Caffe's were not: bit by bit what two steps give."""
    m = zoo.Affine(zoo_param=FILLER).setup((2, 3, 1000))
    m.mode, x = mode, torch.randn(2, 3, 1000)
    with torch.no_grad():
        m.blob0.normal_(), m.blob1.normal_()
        product = x * m.blob0.view(3, 1)
        assert torch.equal(m(x), product + m.blob1.view(3, 1))


def test_kernels_on_host_mirrors(zoo, place):
    """Page-locked, so that a GPU reads them where they lie."""
    m = place(zoo.Mirrored())
    m.mode = None  # it has no CPU code
    x = place.draw(2, 3, 4, 5, grad=True)
    for _ in range(2):
        y = m(x)
        table = torch.arange(1.0, 4.0).to(x).view(3, 1, 1)
        torch.testing.assert_close(y, x * table)
        torch.testing.assert_close(grads(y, x), grads(x * table, x))


def test_devices_are_not_mixed(zoo, gpu):
    with raises(CaffeTypeError, "bottom 1", "cuda:0 as bottom 0 is"):
        zoo.Pair()(gpu.draw(3), torch.randn(3))
    m = zoo.Ramp()
    m.mode = "cpu"
    with raises(CaffeTypeError, "mode 'cpu' is for CPU tensors"):
        m(gpu.draw(3))


def test_streams(zoo, gpu):
    """What runs on one stream may be overtaken by the other: each has instances of its own."""
    m = zoo.Noise().cuda()
    streams = [torch.cuda.Stream() for _ in range(2)]
    x = torch.randn(1 << 20, device="cuda", requires_grad=True)
    torch.cuda.synchronize()
    tops = []
    for _ in range(10):
        for stream in streams:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(100000)
                tops.append((stream, m(x)))
    for stream, y in tops:
        with torch.cuda.stream(stream):
            (diff,) = torch.autograd.grad(y.sum(), x)
        stream.synchronize()
        assert torch.equal(diff, (y != 0).to(x))


def test_cuda_graph(zoo, gpu):
    m = zoo.Ramp(zoo_param={"slope": 0.5}).cuda()
    x = torch.randn(1000, device="cuda")
    m(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = m(x)
    for _ in range(3):
        x.normal_()
        graph.replay()
        torch.testing.assert_close(y, torch.nn.functional.leaky_relu(x, 0.5))
    positive = zoo.Positive()
    positive(x)
    with raises(CaffeRuntimeError, "CUDA graph"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        positive(x)
    scheduled = zoo.Scheduled()
    scheduled.iteration = 1
    scheduled(x)
    with raises(CaffeRuntimeError, "iteration", "CUDA graph"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        scheduled(x)


def test_graphed_callable(zoo, gpu):
    m = zoo.Affine(zoo_param=FILLER).setup((4, 3), device="cuda")
    graphed = torch.cuda.make_graphed_callables(
        copy.deepcopy(m), (torch.randn(4, 3, device="cuda", requires_grad=True),)
    )
    for seed in range(3):
        x = gpu.draw(4, 3, dtype=torch.float32, grad=True, seed=seed)
        torch.testing.assert_close(graphed(x), m(x))
        torch.testing.assert_close(grads(graphed(x), x), grads(m(x), x))


def test_data_parallel(zoo, gpu):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    m = zoo.Affine(zoo_param=FILLER)
    x = gpu.draw(8, 3, dtype=torch.float32, grad=True)
    with raises(CaffeRuntimeError, "setup"):
        torch.nn.DataParallel(m)(x)
    m.setup((4, 3), device="cuda")
    parallel = torch.nn.DataParallel(m)
    torch.testing.assert_close(parallel(x), m(x))
    inputs = (x, m.blob0, m.blob1)
    torch.testing.assert_close(grads(parallel(x), inputs), grads(m(x), inputs))


def test_call_in_a_cycle(zoo, place):
    """A call that the collector of cycles frees, with all that only it holds, hands back an intact instance."""
    m = place(zoo.Ramp(zoo_param={"slope": 0.5}))
    x = place.draw(3, 4, grad=True)
    wanted = m(x)
    for _ in range(3):
        cycle = [m(x).grad_fn]
        cycle.append(cycle)
        del cycle
        gc.collect()
        torch.testing.assert_close(m(x), wanted)
        torch.testing.assert_close(m(x.detach()), wanted)


def test_negative_view_of_a_diff(zoo, place):
    m = place(zoo.Ramp(zoo_param={"slope": 0.5}))
    x = place.draw(3, 4, grad=True)
    diff = place.draw(3, 4, seed=2)
    (wanted,) = torch.autograd.grad(m(x), x, diff)
    (found,) = torch.autograd.grad(m(x), x, torch._neg_view(-diff))
    torch.testing.assert_close(found, wanted)
