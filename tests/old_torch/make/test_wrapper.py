"""The C++ around an extension's C functions."""

import pytest

from cuffi.old_torch.make.wrapper import functions, source_of
from tools.refused import Refused


@pytest.fixture
def job(tmp_path):
    """job(header, source): an extension whose files are copies of the user's."""

    def made(header: str, source: str = "", **more) -> dict:
        (tmp_path / "x.h").write_text(header)
        (tmp_path / "x.c").write_text(source)
        files = {
            "headers": [str(tmp_path / "x.h")],
            "sources": [str(tmp_path / "x.c")],
            "kernels": [],
            "local": [],
        }
        return files | {"copies": str(tmp_path), "above": "/of/a/user/ext", "with_cuda": False} | more

    return made


HEADER = "int add(THFloatTensor *a, THFloatTensor *, double by);\nvoid none(void);\n"
SOURCE = "int add(THFloatTensor *a, THFloatTensor *out, double by) { THFloatTensor_copy(out, a); return 1; }"


def test_each_function_has_its_table_and_its_call(job):
    text = source_of(job(HEADER, SOURCE), "_x_host")
    assert 'extern "C" int add(THFloatTensor *, THFloatTensor *, double);' in text
    assert "result->integer = add(words[0].tensor, words[1].tensor, (double)words[2].real);" in text
    assert (
        "{ none(); }" in text
        and "PyInit__x_host(void)" in text
        and 'th::make_module("_x_host", all, 2)' in text
    )
    assert "#include <THC/THC.h>" not in text
    assert "#include <THC/THC.h>" in source_of(job(HEADER, SOURCE, with_cuda=True), "_x")


def test_a_parameter_without_a_name_has_that_of_the_definition(job):
    rows = [
        line
        for line in source_of(job(HEADER, SOURCE), "_x").splitlines()
        if "kTensor" in line and '{"' in line
    ]
    assert [row.split('"')[1] for row in rows] == ["a", "out"]
    (alone,) = [
        line for line in source_of(job("int f(THFloatTensor *);"), "_x").splitlines() if "kTensor" in line
    ]
    assert '"argument1"' in alone


def test_a_function_in_two_headers_is_one(job, tmp_path):
    both = job("int f(int a);")
    both["headers"] *= 2
    assert [f.name for f in functions(both)] == ["f"]


def test_no_function_names_the_users_header(job):
    with pytest.raises(Refused, match=r"/of/a/user/ext/x\.h: error: no function is declared"):
        functions(job("struct S;"))
