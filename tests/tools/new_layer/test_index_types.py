"""Type parameters of kernels that are integer types."""

import pytest
from support.new_layer import derive


def types(parameters, body, template="typename T, typename I", launch=""):
    """The types that the launcher compiles for, and the tensors of each type of indices."""
    text = (
        f"template <{template}>\n__global__ void run({parameters}) {{ {body} }}\nvoid go() {{ {launch} }}\n"
    )
    launcher = derive(text)[0]["run"]
    (_, arguments), *_ = launcher.instances
    return arguments, launcher.indices


TENSORS = "const T* x, const I* j, T* y, int n"
INDEX = ("Dtype, Index", {"Index": ["j"]})


@pytest.mark.parametrize(
    "body",
    [
        "y[n] = x[j[n]];",
        "const I k = j[n]; y[n] = x[k * 3 + 1];",
        "I k; k = j[n]; y[n] = x[k];",
        "auto k = j[n]; y[k] = x[n];",
        "y[n] = x[(j[n] + 1) * 4];",
        "const T* row = x + j[n] * 3; y[n] = *row;",
        "y[n] = x[0]; if (j[n] % 2) y[n] = 0;",
        "y[n] = x[j[n] << 1];",
        "y[n] = x[n]; const I bits = ~j[n];",
    ],
)
def test_what_only_whole_numbers_can_do(body):
    assert types(TENSORS, body) == INDEX


@pytest.mark.parametrize(
    "body",
    [
        "y[n] = x[(int)j[n]];",
        "y[n] = x[static_cast<int>(j[n])];",
        "y[n] = x[int(j[n])];",
        "y[n] = x[lround(j[n])];",
        "int k = j[n]; y[n] = x[k];",
        "y[n] = x[n + (j[n] > 0)];",
        "y[n] = x[n] * j[n];",
    ],
)
def test_what_other_numbers_can_do_as_well(body):
    """RoI pooling's kernels read the index of an image from a tensor of floats."""
    assert types(TENSORS, body) == ("Dtype, Dtype", {})


@pytest.mark.parametrize(
    ("launch", "found"),
    [
        ("run<scalar_t, index_t><<<1, 1>>>(x, j, y, n);", INDEX),
        ("run<float, int><<<1, 1>>>(x, j, y, n); run<float, long><<<1, 1>>>(x, j, y, n);", ("float, Index", INDEX[1])),
        ("run<<<1, 1>>>(x.data<scalar_t>(), j.data_ptr<index_t>(), y.data<scalar_t>(), n);", INDEX),
        ("run<<<1, 1>>>(x.data<scalar_t>(), j.data<int64_t>(), y.data<scalar_t>(), n);", ("Dtype, int64_t", {})),
        ("run<Dtype, Dtype><<<1, 1>>>(x, j, y, n);", ("Dtype, Dtype", {})),
    ],
)  # fmt: skip
def test_what_the_launches_say(launch, found):
    assert types(TENSORS, "y[n] = x[(int)j[n]];", launch=launch) == found


@pytest.mark.parametrize(
    "name", ["index_t", "IndexType", "Tind", "idx_t", "TIndex", "label_t", "target_t", "Int"]
)
def test_names_of_types(name):
    found = types(
        f"const T* x, const {name}* j, T* y", "y[0] = x[(int)j[0]];", f"typename T, typename {name}"
    )
    assert found == INDEX


def test_names_of_labels():
    body = "y[n] = labels[n] == 3 ? x[n] : T(0);"
    assert types("const T* x, const L* labels, T* y, int n", body, "typename T, typename L")[1] == {
        "Index": ["labels"]
    }
    # the only type of a kernel is that of its floats
    assert types("const T* label, int n", "", "typename T") == ("Dtype", {})


def test_tensors_of_one_type_and_numbers():
    parameters = "const T* x, const I* j, const I* k, const I last, T* y"
    assert types(parameters, "y[j[0]] = x[k[0]];") == ("Dtype, Index", {"Index": ["j", "k"]})
    two = "const J* j, const K* k, float* y"
    found = types(two, "y[j[0]] = y[k[0]];", "typename J, typename K")
    assert found == ("Index, Index2", {"Index": ["j"], "Index2": ["k"]})
    # no tensor says which
    assert types("const T* x, I n, T* y", "y[n] = x[n];") == ("Dtype, int64_t", {})
