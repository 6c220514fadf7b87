"""The build scripts that `make ffi` finds."""

import pytest

from cuffi.old_torch.make.scripts import command, listed, scripts_in
from tools.refused import Refused


def test_scripts_and_their_arguments(tmp_path):
    for name, text in {
        "a/build.py": "from torch.utils.ffi import create_extension\nffi = create_extension(\n)\n",
        "a/old.py": "from torch.utils.ffi import create_extension\n# create_extension()\n",
        "a/build/build.py": "from torch.utils.ffi import create_extension\ncreate_extension()\n",
        "c/setup.py": "from torch.utils.cpp_extension import CUDAExtension\nsetup(CUDAExtension('c', []))\n",
        "c/other.py": "from torch.utils.cpp_extension import CUDAExtension\nCUDAExtension('c', [])\n",
        "b/setup.py": "from torch.utils.cpp_extension import BuildExtension as create_extension\ncreate_extension()\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert scripts_in(str(tmp_path)) == [f"{tmp_path}/a/build.py", f"{tmp_path}/c/setup.py"]
    assert command([f"{tmp_path}/c/setup.py"])[3:] == ["setup.py", "build_ext", "--inplace"]
    assert command([f"{tmp_path}/c/setup.py", "install"])[3:] == ["setup.py", "install"]
    assert command([f"{tmp_path}/a/build.py", "-x"])[2:] == ["build.py", "-x"]
    assert listed("a a/build.py b/setup.py --with_cuda", str(tmp_path)) == [
        [f"{tmp_path}/a/build.py"], [f"{tmp_path}/b/setup.py", "--with_cuda"],
    ]  # fmt: skip
    for ext, said in (("no", "there is no"), ("b", "no script there"), ("", "which extension")):
        with pytest.raises(Refused, match=said):
            listed(ext, str(tmp_path))
