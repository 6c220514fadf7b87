"""A small tree like a Caffe fork, and `port` run on it."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import cuffi.caffe_layers.port.__main__ as tool
from cuffi.caffe_layers.port.toolkit_headers import Toolkit
from cuffi.caffe_layers.port.write_folder import git_of

ROOT = Path(__file__).resolve().parents[2]

CLASS = """
namespace caffe {{
template <typename Dtype>
class {name}Layer : public {base}<Dtype> {{
 public:
  explicit {name}Layer(const LayerParameter& param) : {base}<Dtype>(param) {{}}
  virtual inline const char* type() const {{ return "{name}"; }}
 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  {members}
}};
}}
"""
SOURCE = """
#include "{header}"
{includes}
namespace caffe {{
template <typename Dtype>
void {name}Layer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {{
  {body}
}}
INSTANTIATE_CLASS({name}Layer);
{register}
}}
"""
CORE = "namespace caffe {\ntemplate <typename Dtype> class %s {\n public:\n  %s\n};\n}\n"
# What every layer sees through layer.hpp.
SEEN = "".join(f'#include "caffe/{n}.hpp"\n' for n in ("blob", "common", "util/math_functions"))


class Fork:
    """Builds a Caffe tree."""

    def __init__(self, root: Path):
        self.root = root
        self.write("include/caffe/blob.hpp", CORE % ("Blob", "const Dtype* gpu_data_of_row(int n) const;"))
        self.write("include/caffe/layer.hpp", CORE % ("Layer", "void SetUp();\n  Net<Dtype>* net_;") + SEEN)
        self.write(
            "src/caffe/proto/caffe.proto", 'syntax = "proto2";\npackage caffe;\nmessage LayerParameter {}\n'
        )
        self.write("LICENSE", "do what you like\n")
        (root / "src/caffe/layers").mkdir()

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def layer(
        self, name, body="", includes="", base="Layer", members="", header="", register="REGISTER_LAYER_CLASS"
    ):
        """One class, in a header of its own or at the end of `header`, and its source."""
        stem = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() + "_layer"
        path = header or f"caffe/layers/{stem}.hpp"
        text = CLASS.format(name=name, base=base, members=members)
        file = self.root / "include" / path
        self.write(
            f"include/{path}", (file.read_text() if file.exists() else '#include "caffe/layer.hpp"\n') + text
        )
        source = SOURCE.format(
            name=name, header=path, includes=includes, body=body, register=f"{register}({name});"
        )
        return self.write(f"src/caffe/layers/{stem}.cpp", source)


@pytest.fixture
def fork(tmp_path):
    return Fork(tmp_path / "fork")


@pytest.fixture(scope="session")
def toolkit():
    """The toolkit's headers, read once, which is a third of the tool's time."""
    return Toolkit()


@dataclass
class Port:
    """The tool, run without a build: a call gives what it printed."""

    folder: Path  # of layers
    run: Callable[..., str]

    def __call__(self, *arguments, **options) -> str:
        return self.run(*arguments, **options)


@pytest.fixture
def port(fork, tmp_path, toolkit, monkeypatch, capfd) -> Port:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(tool, "Toolkit", lambda: toolkit)

    def run(*arguments, caffe=fork.root, fails=False):
        options = ["--caffe", caffe, "--layers-dir", tmp_path / "mine", "--unbuilt"]
        command = ["port", *options, *arguments]
        monkeypatch.setattr(sys, "argv", [*map(str, command)])
        git_of.cache_clear()  # another process would ask again
        capfd.readouterr()
        status = tool.main()
        said = capfd.readouterr()
        assert not said.err and status == int(fails), said.err + said.out
        return said.out

    return Port(tmp_path / "mine", run)


def names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


BLOB = """
#include <vector>
namespace caffe {
template <typename Dtype>
class Blob {
 public:
  void Reshape(const std::vector<int>& shape);
  inline Dtype middle() const { return cpu_data()[count_ / 2]; }
  Dtype above_middle() const;
  Dtype below_middle() const { return cached_; }
  virtual Dtype far_from_middle() const { return 0; }

 protected:
  Dtype cached_;
};
}  // namespace caffe
"""


BLOB_CPP = """
#include "caffe/blob.hpp"
namespace caffe {
template <typename Dtype>
Dtype Blob<Dtype>::above_middle() const {
  Dtype sum = 0;
  for (int i = 0; i < count_; ++i) sum += caffe_sign(cpu_data()[i] - middle()) > 0;
  return sum;
}
template <>
int Blob<int>::above_middle() const { NOT_IMPLEMENTED; return 0; }
INSTANTIATE_CLASS(Blob);
}  // namespace caffe
"""
