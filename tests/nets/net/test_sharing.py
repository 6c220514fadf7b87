"""Shared parameters: which layer fills them, what was loaded, and their multipliers."""

import copy
import itertools
import pickle
import warnings

import pytest
import torch

from cuffi import CaffeValueError, caffe_net

INPUT = 'input: "a" input_shape { dim: 1 dim: 3 } '


def layer(name, params=("w", "b"), weight=1.0, bias=0.0, more=""):
    named = "".join(f'param {{ name: "{param}" }} ' if param else "param { } " for param in params)
    fillers = f"weight_filler {{ value: {weight} }} bias_filler {{ value: {bias} }}"
    return (
        f'layer {{ name: "{name}" type: "InnerProduct" bottom: "a" top: "{name}" {named} {more} '
        f"inner_product_param {{ num_output: 2 {fillers} }} }}\n"
    )


def values(net):
    """The values of each layer's weight and bias, each of which is constant."""
    found = {}
    for name, module in net.layers.items():
        assert all(blob.unique().numel() == 1 for blob in module.parameters())
        found[name] = module.weight.flatten()[0].item(), module.bias.flatten()[0].item()
    return found


SHARES = {"both": ("w", "b"), "weight": ("w",), "bias": ("", "b"), "none": ()}


@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize("branches", [2, 3])
def test_who_fills_and_what_is_loaded(tmp_path, shares, branches):
    """By Caffe's rules, for all sets of layers in the file: the first layer owns the blob; the last loaded one wins."""
    names, path = "fgh"[:branches], tmp_path / "a.caffemodel"
    fills = {name: (10.0 + i, 20.0 + i) for i, name in enumerate(names)}
    stored = {name: (30.0 + i, 40.0 + i) for i, name in enumerate(names)}
    text = INPUT + "".join(layer(name, SHARES[shares], *fills[name]) for name in names)
    for count in range(branches + 1):
        for of_file in itertools.combinations(names, count):
            given = ()
            if of_file:
                caffe_net(
                    INPUT + "".join(layer(name, (), *stored[name]) for name in of_file)
                ).save_caffemodel(path)
                given = (path,)
            wanted = dict(fills)
            for i, kind in enumerate(("weight", "bias")):
                groups = [names] if shares in ("both", kind) else names
                for group in groups:
                    loaded = [stored[name][i] for name in group if name in of_file]
                    value = loaded[-1] if loaded else fills[group[0]][i]
                    for name in group:
                        wanted[name] = (value, wanted[name][1]) if i == 0 else (wanted[name][0], value)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for train in (False, True):
                    assert values(caffe_net(text, *given, train=train)) == wanted


@pytest.mark.parametrize("shares", SHARES)
def test_hdf5_as_caffe_writes_it(tmp_path, shares):
    """Net::ToHDF5: a group for each layer; a dataset for each blob that the layer owns, by the blob's index."""
    h5py = pytest.importorskip("h5py")
    path, params = tmp_path / "a.caffemodel.h5", SHARES[shares]
    text = INPUT + layer("f", params, 1, 2) + layer("g", params, 3, 4)
    owned = {"f": (0, 1), "g": tuple(i for i in range(2) if not params[i : i + 1] or not params[i])}
    with h5py.File(path, "w") as file:
        for name, base in (("f", 50), ("g", 60)):
            group = file.create_group(f"data/{name}")
            for i in owned[name]:
                group[str(i)] = torch.full((2, 3) if i == 0 else (2,), base + i).float().numpy()
    wanted = {"f": (50.0, 51.0), "g": tuple((60.0 if i in owned["g"] else 50.0) + i for i in range(2))}
    assert values(caffe_net(text, path)) == wanted
    alone = INPUT + layer("f", ()) + layer("g", ())
    if shares == "both":
        with pytest.warns(UserWarning, match="no weights for g"):
            caffe_net(alone, path)
    elif shares != "none":
        lacking = {"weight": "'weight', dataset 0", "bias": "'bias', dataset 1"}[shares]
        with pytest.raises(CaffeValueError, match=f"'g': blob {lacking}, is not in the file"):
            caffe_net(alone, path)


def test_a_layer_that_shares_with_itself():
    text = """layer { name: "s" type: "Scale" bottom: "a" top: "s" param { name: "w" } param { name: "w" }
      scale_param { bias_term: true filler { value: 3 } bias_filler { value: 5 } axis: 0 num_axes: 0 } }"""
    assert caffe_net(INPUT + text)(torch.ones(1, 3)).tolist() == [[6, 6, 6]]


def test_an_owner_of_one_phase():
    """Training's layers come first, because Caffe's test net takes their parameters."""
    test = layer("g", weight=5, more="include { phase: TEST }")
    text = INPUT + test + layer("f", weight=7, more="include { phase: TRAIN }")
    assert values(caffe_net(text)) == {"g": (7, 0)} and values(caffe_net(text, phase="TEST")) == {"g": (5, 0)}


def groups(net):
    return {
        name: (group["lr"], group["weight_decay"])
        for group in net.parameter_groups(1.0, 1.0)
        for parameter in group["params"]
        for name, known in net.named_parameters()
        if known is parameter
    }


@pytest.mark.parametrize(
    "first, second, wanted",
    [
        ("", "", (1, 1)),
        ("lr_mult: 2", "", (2, 1)),
        ("", "lr_mult: 3 decay_mult: 0", (3, 0)),  # what nobody else says, as in Net::AppendParam
        ("lr_mult: 2", "decay_mult: 5", (2, 5)),
        ("lr_mult: 2 decay_mult: 5", "decay_mult: 5 lr_mult: 2.0", (2, 5)),
        ("", "lr_mult: 0", None),
        ("lr_mult: 0", "", None),
    ],
)
def test_multipliers_of_what_is_shared(first, second, wanted):
    text = INPUT + layer("f", ()).replace("bottom", f'param {{ name: "w" {first} }} bottom', 1)
    text += layer("g", ()).replace("bottom", f'param {{ name: "w" {second} }} bottom', 1)
    net = caffe_net(text)
    assert groups(net) == {"f.bias": (1, 1), "g.bias": (1, 1)} | ({"f.weight": wanted} if wanted else {})
    assert net.f.weight.requires_grad == (wanted is not None)


@pytest.mark.parametrize("what", ["lr_mult", "decay_mult"])
def test_multipliers_that_differ(what):
    text = INPUT + layer("f", ()).replace("bottom", f'param {{ name: "w" {what}: 2 }} bottom', 1)
    text += layer("g", ()).replace("bottom", f'param {{ name: "w" {what}: 3 }} bottom', 1)
    with pytest.raises(CaffeValueError, match=f"'g'.*: {what} 3 of a shared parameter for .* says 2$"):
        caffe_net(text)


def test_more_params_than_blobs():
    with pytest.raises(CaffeValueError, match=r"line 1: 'f' \(InnerProduct\): 3 `param` for 2 blobs"):
        caffe_net(INPUT + layer("f", ("w", "b", "c")))


def test_multipliers_that_a_ported_layer_writes(zoo, tmp_path):
    (tmp_path / "running").mkdir()
    code = f'from {zoo.__name__} import Running  # caffe_layer(__name__, "Running")'
    (tmp_path / "running/__init__.py").write_text(code)
    text = INPUT + 'layer { name: "r" type: "Running" bottom: "a" top: "r" param { decay_mult: 3 } %s }'
    net = caffe_net(text % "zoo_param { early: true }", layers=[tmp_path])
    assert groups(net) == {"r.blob1": (1, 0.25)} and not net.r.blob0.requires_grad
    assert groups(caffe_net(text % "", layers=[tmp_path])) == {"r.blob0": (1, 3), "r.blob1": (1, 1)}


def test_a_submodule_of_the_user_is_trained_too():
    net = caffe_net(INPUT + layer("f", ()))
    net.f = torch.nn.Linear(3, 2)
    net.head = torch.nn.PReLU()
    assert groups(net) == {"f.weight": (1, 1), "f.bias": (1, 1), "head.weight": (1, 1)}


TWO_SHAPES = """input: "x" input_shape { dim: 2 dim: 4 dim: 2 dim: 2 }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "a" param { name: "w" lr_mult: 3 }
  inner_product_param { num_output: 6 bias_term: false weight_filler { type: "xavier" } } }
layer { name: "cv" type: "Convolution" bottom: "x" top: "b" param { name: "w" %s }
  convolution_param { num_output: 6 kernel_size: 2 bias_term: false } }"""


def test_permissive_sharing_compares_counts():
    """As net.cpp does: one parameter in two shapes. Its gradient is the sum; copies, moves and saved files keep it."""
    net = caffe_net(TWO_SHAPES % "share_mode: PERMISSIVE").double()
    assert len(list(net.parameters())) == 1
    x = torch.randn(2, 4, 2, 2, dtype=torch.float64)
    for one in (net, copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        with torch.no_grad():
            one.ip.weight.mul_(2)
        made = one(x)
        torch.testing.assert_close(made["a"], made["b"].flatten(1))
        (made["a"].sum() + 2 * made["b"].sum()).backward()
        torch.testing.assert_close(one.ip.weight.grad, 3 * x.flatten(1).sum(0).expand(6, -1))
    (group,) = net.parameter_groups(0.1)
    assert group["lr_mult"] == 3 and group["params"][0] is net.ip.weight


def test_permissive_blobs_are_loaded_and_saved(tmp_path):
    net = caffe_net(TWO_SHAPES % "share_mode: PERMISSIVE")
    net.save_caffemodel(tmp_path / "a.caffemodel")
    other = caffe_net(TWO_SHAPES % "share_mode: PERMISSIVE", tmp_path / "a.caffemodel")
    assert torch.equal(other.cv.weight.flatten(), net.ip.weight.flatten())
    assert other.cv.weight.shape == (6, 4, 2, 2)


def test_strict_sharing_compares_shapes():
    for mode in ("", "share_mode: STRICT"):
        with pytest.raises(CaffeValueError, match="with another shape"):
            caffe_net(TWO_SHAPES % mode)
    with pytest.raises(CaffeValueError, match="with another shape"):
        caffe_net(TWO_SHAPES.replace("kernel_size: 2", "kernel_size: 1") % "share_mode: PERMISSIVE")
