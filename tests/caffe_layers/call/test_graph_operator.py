"""Caffe layers as operators: torch.compile without a graph break, torch.export, fake tensors, torch.jit.trace."""

import io
import signal
import subprocess
import sys

import pytest
import torch
from cuffi.normalize import Normalize
from cuffi.sigmoid import Sigmoid, sigmoid
from support import python_with_torch
from support.points import ROOT
from support.zoo import FILLER, grads, raises
from torch._dynamo.testing import CompileCounter

from cuffi import caffe_net
from cuffi.runtime import CaffeRuntimeError


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(module):
    """The module between two functions of torch, as one graph."""
    counter = CompileCounter()
    function = torch.compile(lambda *x: module(*(v * 2 for v in x)), backend=counter, fullgraph=True)
    return function, counter


def test_one_graph_forward_and_backward(zoo, place):
    m = place(zoo.Ramp(zoo_param={"slope": 0.25}))
    x = place.draw(2, 3, 4, grad=True)
    m(x.detach())
    function, counter = compiled(m)
    reference = torch.nn.functional.leaky_relu(x * 2, 0.25)
    for _ in range(2):
        y = function(x)
        torch.testing.assert_close(y, reference)
        torch.testing.assert_close(grads(y, x), grads(reference, x, retain_graph=True))
        with torch.no_grad():
            torch.testing.assert_close(function(x), reference)
    assert counter.frame_count <= 2  # one graph with a gradient, one without
    explained = torch._dynamo.explain(lambda x: m(x * 2) + 1)(x)
    assert explained.graph_break_count == 0


def test_through_aot_autograd(zoo, place):
    """The backward is traced, too. The layers learn blobs, have several tops, or loss weights."""
    m = place(zoo.Affine(zoo_param=FILLER)).setup((2, 3, 4), dtype=torch.float64, device=place.device)
    x = place.draw(2, 3, 4, grad=True)
    function = torch.compile(lambda x: m(x).square(), backend="aot_eager", fullgraph=True)
    inputs = (x, m.blob0, m.blob1)
    reference = (x * m.blob0.view(3, 1) + m.blob1.view(3, 1)).square()
    torch.testing.assert_close(function(x), reference)
    torch.testing.assert_close(grads(function(x), inputs), grads(reference, inputs))
    pair = place(zoo.Pair(loss_weight=[0.5, 1]))
    pair.mode = None
    a, b = place.draw(3, 4, grad=True), place.draw(3, 4, grad=True, seed=2)
    pair(a, b)
    function = torch.compile(pair, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(function(a, b), ((a + b) / 2, a * b))
    torch.testing.assert_close(grads(function(a, b), (a, b)), grads(((a + b) / 2, a * b), (a, b)))
    torch.testing.assert_close(grads(function(a, b)[1], (a,)), grads(a * b, (a,)))


def test_operator_passes_torchs_own_check(zoo, place):
    """torch.library.opcheck: schema, fake shapes, autograd's registration, all under AOT."""
    m = place(zoo.Affine(zoo_param=FILLER)).setup((2, 3, 4), dtype=torch.float64, device=place.device)
    x = place.draw(2, 3, 4, grad=True)
    arguments = ([x], [m.blob0, m.blob1], m._text, True, place.mode, "")
    torch.library.opcheck(m.graph_operator.operator, arguments)


def test_kinds_of_layers(zoo):
    """A top that shares its bottom's memory, in place, integers, no tops, scratch memory between the passes."""
    x = torch.randn(2, 3, requires_grad=True)
    for m, reference in (
        (zoo.Shared(), lambda x: x.flatten()),
        (zoo.Early(), lambda x: x * x / 2),
        (zoo.Ramp(zoo_param={"slope": 2}, bottom=["x"], top=["x"]), lambda x: x.where(x > 0, 2 * x)),
        (zoo.Ramp(zoo_param={"slope": 2}), lambda x: x.where(x > 0, 2 * x)),
        (zoo.Kernels(), lambda x: 2 * x),
    ):
        m(x.detach().clone())
        function = torch.compile(lambda x, m=m: m(x * 1) + 1, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(function(x), reference(x) + 1)
        torch.testing.assert_close(grads(function(x), x), grads(reference(x), x))
    ramp = zoo.Ramp(zoo_param={"slope": 2})
    ramp(torch.ones(2))
    function = torch.compile(ramp, backend="eager", fullgraph=True)
    assert function(torch.tensor([-1, 3])).tolist() == [-2, 3]
    loss, label = zoo.Rewriting(), torch.zeros(4)
    y = torch.randn(4, requires_grad=True)
    loss(y, label)
    function = torch.compile(loss, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(grads(function(y, label), y), grads(y.square().mean() / 2, y))


def test_training_and_testing_are_two_graphs(zoo):
    m, x = zoo.Noise(), torch.ones(1000)
    m(x)
    function = torch.compile(m, backend="eager", fullgraph=True)
    assert 300 < (function(x) == 0).sum() < 700
    m.eval()
    assert torch.equal(function(x), x)


def test_sizes_that_change(zoo):
    m = zoo.Ramp()
    m(torch.ones(2))
    function = torch.compile(lambda x: m(x) + 1, backend="aot_eager", fullgraph=True)
    for size in (2, 3, 5, 8, 1):
        assert function(torch.ones(size, 2)).tolist() == [[2.0, 2.0]] * size


def test_exported(zoo, tmp_path):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 3)
            self.affine = zoo.Affine(zoo_param=FILLER).setup((2, 3))

        def forward(self, x):
            return self.affine(self.inner(x)).relu()

    net, x = Net(), torch.randn(2, 3)
    for strict in (False, True):
        program = torch.export.export(net, (x,), strict=strict)
        torch.testing.assert_close(program.module()(x), net(x))
        assert "Affine" in str(program.graph)
        kept = io.BytesIO()
        torch.export.save(program, kept)
        kept.seek(0)
        again = torch.export.load(kept).module()
        torch.testing.assert_close(again(x), net(x))
        assert {"affine.blob0", "affine.blob1"} <= dict(again.named_parameters()).keys()


def test_traced_by_jit(zoo):
    m, x = zoo.Ramp(zoo_param={"slope": 0.5}), torch.randn(5)
    m(x), m(x)
    traced = torch.jit.trace(lambda x: m(x) + 1, (x,), check_trace=False)
    other = torch.randn(5)
    torch.testing.assert_close(traced(other), torch.nn.functional.leaky_relu(other, 0.5) + 1)


LOADED = """
import faulthandler, sys, torch, cuffi.normalize, cuffi.sigmoid
faulthandler.enable()
x, expected = torch.load(sys.argv[2])
torch.testing.assert_close(torch._inductor.aoti_load_package(sys.argv[1])(x), expected)
print("the same", flush=True)
"""


# Of inductor's compilations this leaves what a package is made of: 7 seconds of 25.
QUICK = {
    "aot_inductor.precompile_headers": False,
    "aot_inductor.compile_wrapper_opt_level": "O0",
    "cpp.vec_isa_ok": True,
}


@pytest.mark.filterwarnings("ignore")  # torch's own, about its own
def torch_loads_its_own(folder) -> bool:
    """Can a process load a package without anything of ours? On one machine torch 2.11 cannot."""
    package = str(folder / "plain.pt2")
    with torch.no_grad():
        program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        torch._inductor.aoti_compile_and_package(program, package_path=package)
    command = [
        sys.executable,
        "-c",
        "import sys, torch; torch._inductor.aoti_load_package(sys.argv[1])",
        package,
    ]
    return not subprocess.run(command, capture_output=True, timeout=300).returncode


def test_a_package_of_aotinductor(tmp_path):
    """A native and a Caffe layer, in a process without a compiler."""
    model, x = torch.nn.Sequential(Sigmoid(), Normalize(norm_param={})), torch.randn(1, 3, 4, 4)
    package, values = str(tmp_path / "model.pt2"), tmp_path / "values.pt"
    with torch.no_grad():
        torch.save((x, model(x)), values)
        program = torch.export.export(model, (x,))
        options = {name: value for name, value in QUICK.items() if name in torch._inductor.list_options()}
        torch._inductor.aoti_compile_and_package(program, package_path=package, inductor_configs=options)
    environment = {"PATH": "", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    command = [sys.executable, "-c", LOADED, package, values]
    done = python_with_torch.run(command, env=environment)
    if done.returncode == -signal.SIGSEGV and not torch_loads_its_own(tmp_path):
        pytest.skip(
            "torch's loader ends by a segmentation fault for a package of torch's operators alone, too"
        )
    assert (done.returncode, done.stdout) == (0, "the same\n"), done.stderr


class Network(torch.nn.Module):
    """Layers of all kinds: of torch, native ones, Caffe layers of one and two tops, a whole Caffe net."""

    def __init__(self, zoo):
        super().__init__()
        self.native, self.ramp = Sigmoid(), zoo.Ramp(zoo_param={"slope": 0.5})
        self.pair = zoo.Pair(propagate_down=[True, False])
        self.net = caffe_net(
            'input: "x" input_shape { dim: 4 dim: 6 } '
            'layer { type: "Power" name: "p" bottom: "x" top: "y" power_param { scale: 3 } }'
        )

    def forward(self, x):
        a, b = self.pair(self.ramp(x - 0.5), torch.nn.functional.relu(x))
        return self.native(a) + self.net(b) + self.net(x=a) + sigmoid(bottom=x)


def test_traced_by_fx(zoo):
    """A layer that fx's tracer cannot trace into is a node."""
    network, x = Network(zoo), torch.randn(4, 6)
    for _ in range(2):
        traced = torch.fx.symbolic_trace(network)
        assert torch.equal(traced(x), network(x))
    assert sum(node.op == "call_module" for node in traced.graph.nodes) == 4
    for module in (network.ramp, network.pair, network.net):
        with raises(CaffeRuntimeError, "torch.fx cannot look into it"):
            torch.fx.symbolic_trace(module)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_traced_for_onnx(zoo, tmp_path):
    """torch refuses unknown operators; the toolkit's message says what to do, also for native layers."""
    m, x = zoo.Ramp(zoo_param={"slope": 0.5}), torch.randn(5)
    m(x)
    for module in (m, Sigmoid()):
        told = pytest.warns(UserWarning, match=r"ONNX has no operator like \w+::(Ramp|sigmoid)\. .*_symbolic")
        with told, pytest.raises(torch.onnx.errors.UnsupportedOperatorError):
            torch.onnx.export(module, (x,), tmp_path / "a.onnx", dynamo=False)


def test_fake_tensors(zoo):
    m = zoo.Affine(zoo_param=FILLER).setup((2, 3))
    mode = torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        x = torch.empty(7, 3, 2)
        y = m(x)
    assert type(y) is torch._subclasses.FakeTensor and y.shape == (7, 3, 2)
    with mode, raises(CaffeRuntimeError, "channels changed"):
        m(torch.empty(2, 5))


def test_what_changes_from_call_to_call_says_so(zoo):
    x = torch.randn(100, requires_grad=True)
    noise = zoo.Noise()
    noise(x)
    y = torch.compile(noise, backend="aot_eager", fullgraph=True)(x)
    with raises(CaffeRuntimeError, "a compiled graph", "something that changes from call to call"):
        y.sum().backward()
    running = zoo.Running()
    running(x)
    function = torch.compile(running, backend="eager", fullgraph=True)
    for written, blobs in ((0, (1.0, 2.0)), (1, (-1.0, 2.0))):
        with torch.no_grad():
            running.blob0.fill_(blobs[0])
        said = f"Running cannot be part of a graph: its Forward writes to blob{written}"
        with raises(CaffeRuntimeError, said, "compiler.disable"):
            function(x.detach())
        assert (running.blob0.item(), running.blob1.item()) == blobs
    positive = zoo.Positive().setup((100,))
    function = torch.compile(positive, backend="eager", fullgraph=True)
    with raises(
        CaffeRuntimeError,
        "Positive cannot be part of this graph: its tops' shapes depend on values",
        "Call the module on such values before",
    ):
        function(x.detach())
    scheduled = zoo.Scheduled()
    scheduled.iteration = 3
    scheduled(x)
    with raises(CaffeRuntimeError, "m.iteration"):
        torch.compile(scheduled, backend="eager", fullgraph=True)(x.detach())
    # Outside of the graph they work as ever.
    left_out = torch.compiler.disable(positive)
    function = torch.compile(lambda x: left_out(x * 1) + 1, backend="eager")
    torch.testing.assert_close(function(x.detach()), x[x > 0].detach() + 1)


def test_sizes_that_depend_on_values(zoo):
    """After a call has shown these sizes, torch reads them when the graph runs."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.positive = zoo.Positive()

        def forward(self, x):
            return self.positive(x * 2) + 1

    net = Net()
    net(torch.randn(100))
    exported = torch.export.export(net, (torch.randn(100),)).module()
    in_parts = torch.compile(net, backend="eager")
    for _ in range(2):
        x = torch.randn(100)
        torch.testing.assert_close(exported(x), 2 * x[x > 0] + 1)
        torch.testing.assert_close(in_parts(x), 2 * x[x > 0] + 1)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        whole = torch.compile(net, backend="aot_eager", fullgraph=True)
        for _ in range(2):
            x = torch.randn(100, requires_grad=True)
            wanted = 2 * x[x > 0] + 1
            top = whole(x)
            torch.testing.assert_close(top, wanted)
            top.square().sum().backward()
            found, x.grad = x.grad, None
            wanted.square().sum().backward()
            torch.testing.assert_close(found, x.grad)


def test_not_set_up(zoo):
    m = zoo.Affine(zoo_param=FILLER)
    with pytest.raises(Exception, match=r"(?s)m\.setup\(shape, \.\.\.\), before it becomes part of a graph"):
        torch.compile(m, backend="eager", fullgraph=True)(torch.randn(2, 3))
    m.setup((2, 3))
    assert torch.compile(m, backend="eager", fullgraph=True)(torch.randn(2, 3)).shape == (2, 3)
