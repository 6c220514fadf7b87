"""How messages describe values."""

import pathlib

import pytest
import torch

from cuffi.base.errors import CaffeRuntimeError, describe, path_of, some
from cuffi.runtime import CaffeError, CaffeTypeError, CaffeValueError


def test_each_error_is_also_one_of_pythons():
    kinds = {CaffeTypeError: TypeError, CaffeValueError: ValueError, CaffeRuntimeError: RuntimeError}
    assert all(issubclass(kind, CaffeError) and issubclass(kind, pythons) for kind, pythons in kinds.items())


@pytest.mark.filterwarnings("ignore:.*nested")
def test_values_in_words():
    assert describe(torch.zeros(2, 3)) == "cpu float32 [2, 3]"
    assert describe(torch.zeros((), dtype=torch.int64)) == "cpu int64 []"
    assert describe(torch.zeros(2, 2).to_sparse_csr()) == "sparse_csr cpu float32 [2, 2]"
    assert describe(torch.nested.nested_tensor([torch.zeros(2)])) == "nested cpu float32"
    assert describe(None) == "NoneType None" and len(describe("x" * 1000)) == 80


def test_paths():
    assert path_of("load", pathlib.Path("a/b")) == "a/b" and path_of("load", b"a") == "a"
    for wrong, error in (
        (3, CaffeTypeError),
        (None, CaffeTypeError),
        ("", CaffeValueError),
        ("a\0b", CaffeValueError),
    ):
        with pytest.raises(error, match=r"^load: expected a path, got "):
            path_of("load", wrong)


def test_a_long_list_is_cut():
    assert some(range(3), 3) == [0, 1, 2] and some(range(4), 3) == [0, 1, 2, "and 1 more"]
    assert some("ab", 0) == ["and 2 more"] and some([]) == []


def test_a_source_in_the_cache_has_the_users_name():
    folder = f"/cache/cuffi/foo-{'0a' * 16}"
    said = str(
        CaffeRuntimeError(f"{folder}/src/foo/foo.cu:5: kernel launch: x\n{folder}/src/foo/deep/a.cuh(3): y")
    )
    assert said == "foo.cu:5: kernel launch: x\ndeep/a.cuh(3): y"
    kept = f"{folder}/src/foo/_host.abi3.so is missing; /x/src/foo/foo.cu:1"
    assert str(CaffeRuntimeError(kept)) == kept
