"""The rules of an extension's libraries."""

import json

import pytest

from cuffi.old_torch.make.build_library import LibraryRules, escaped
from tools.make.settings import Settings


@pytest.fixture
def rules(tmp_path):
    """rules(**job): those of an extension of one C file."""

    def made(**more) -> LibraryRules:
        job = {
            "name": "x", "place": str(tmp_path / "out"), "copies": str(tmp_path), "above": "/of/a/user",
            "sources": [f"{tmp_path}/src/x.c"], "headers": [f"{tmp_path}/src/x.h"], "local": [], "kernels": [],
            "flags": [], "objects": [], "link": [], "with_cuda": False,
        } | more  # fmt: skip
        (tmp_path / "job.json").write_text(json.dumps(job))
        settings = Settings({"NVCC": "", "BUILD": str(tmp_path / "build"), "CORE": str(tmp_path / "core")})
        return LibraryRules(settings, str(tmp_path / "job.json"))

    return made


def test_flags_are_words_for_make_and_the_shell(rules, tmp_path):
    flags = escaped(rules(flags=["-DA=$x", "-DB=a,b", "-DC=a b"]).flags(f"{tmp_path}/src/x.c", ["-O0"]))
    wanted = f"-iquote {tmp_path}/src -O0 '-DA=$$x' -DB=a$(comma)b '-DC=a b' -ffile-prefix-map={tmp_path}=/of/a/user"
    assert flags == wanted


def test_c_and_cpp_have_recipes_of_their_own(rules, tmp_path):
    text = rules(sources=[f"{tmp_path}/src/x.c", f"{tmp_path}/src/y.cc"]).written()
    assert "$(call ffi_c,host,x/x.c" in text and "$(call ffi_cpp,host,x/y.cc" in text
    assert f"{tmp_path}/out/_x_host.abi3.so" in text and ".PHONY: host" in text and "cuda:" not in text


def test_a_shared_object_is_found_where_it_lies(rules, tmp_path):
    text = rules(objects=["/opt/my lib/libz.so", "/opt/a.o"], link=["-lm"]).written()
    (options,) = [line for line in text.splitlines() if "host_LINK +=" in line]
    assert options.endswith("host_LINK += '/opt/my lib/libz.so' '-Wl,-rpath,/opt/my lib' -lm")
    assert "/opt/a.o" in next(
        line
        for line in text.splitlines()
        if line.startswith(f"{tmp_path}/out/_x_host") and "_LINK" not in line
    )
