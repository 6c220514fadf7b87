"""Which headers an extension's build reads, and whether an edit of any of them is seen."""

import itertools
import subprocess
from pathlib import Path

import pytest
from support.compiler import WORDS

from cuffi.loading.load import with_included
from cuffi.old_torch import cpp_extension
from cuffi.old_torch.aten_headers import beside


def test_headers_of_other_folders_are_included_by_relative_paths():
    """A kernel in them is rewritten for the host as one beside the source is, and `cuda/x.h` is not CUDA's own."""
    source, folder = Path("/e/src/cuda/k.cu"), Path("/e/src")
    files = {source: b"", Path("/e/src/cuda/x.h"): b"", Path("/e/src/y.h"): b"", Path("/e/src/cuda/z.h"): b""}
    text = b'#include "cuda/x.h"\n  #include <y.h> // y\n#include "z.h"\n#include <vector>\n'
    wanted = b'#include "x.h"\n#include "../y.h" // y\n#include "z.h"\n#include <vector>\n'
    assert beside(source, text, [folder], files) == wanted
    assert beside(source, b"\0" + text, [folder], files) == b"\0" + text


PLACES = ("src", "src/sub", "one", "two")


@pytest.mark.parametrize("brackets", ["<>", '""'])
@pytest.mark.parametrize("nested", [False, True])
def test_the_header_is_that_of_the_compiler(brackets, nested, tmp_path):
    """Whatever folders have one of its name: here all 15 sets of four, with the compiler's own -M as the judge."""
    line = f"#include {brackets[0]}x.h{brackets[1]}\n"
    (tmp_path / "src" / "sub").mkdir(parents=True)
    source = tmp_path / "src" / "s.cpp"
    source.write_text('#include "sub/near.h"\n' if nested else line)
    (tmp_path / "src" / "sub" / "near.h").write_text(line if nested else "")
    folders = [tmp_path / "one", tmp_path / "two"]
    tried = 0
    for size in range(1, 5):
        for places in itertools.combinations(PLACES, size):
            headers = [tmp_path / place / "x.h" for place in places]
            for header in headers:
                header.parent.mkdir(exist_ok=True)
                header.touch()
            words = [*WORDS, "-M", *(f"-I{folder}" for folder in folders), str(source)]
            asked = subprocess.run(words, capture_output=True, text=True)
            found = [path for path in with_included([source], folders) if path.name == "x.h"]
            if not asked.returncode:
                assert [word for word in asked.stdout.split() if word.endswith("x.h")] == list(
                    map(str, found)
                )
                tried += 1
            for header in headers:
                header.unlink()
    assert tried >= 12


# How a source reaches x.h of the folder `inc`, where its own x.h is not that.
REACHED = {
    "named": "#include <named.h>",
    "quoted": '#include "quoted.h"',
    "macro": "#define HEADER <macro.h>\n#include HEADER",
    "option": "#include OPTION",
    "next": "#include_next <next.h>",
    "asked": "#if __has_include(<asked.h>)\n#define HEADER <asked.h>\n#include HEADER\n#endif",
    "forced": "",
    "deep": "#include <inner/deep.h>",
}
OPTIONS = ["-DOPTION=<option.h>", "-include", "forced.h"]


@pytest.mark.parametrize("folder", ["src", "project/src"])
def test_an_edit_is_seen(folder, extensions, tmp_path, monkeypatch):
    """However a file reaches a header, and also if the folder of the headers is far from the source's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "inc" / "inner").mkdir(parents=True)
    (tmp_path / "inc" / "inner" / "deep.h").write_text("#define HEADER <deep.h>\n#include HEADER\n")
    sources = []
    for name, lines in REACHED.items():
        sources.append(tmp_path / folder / f"of_{name}.cpp")
        sources[-1].write_text(f"{lines}\nint f_{name}() {{ return SIZE_{name}; }}\n")
        if name != "quoted":
            (tmp_path / folder / f"{name}.h").write_text(f"#define SIZE_{name} 1\n")
    sources.append(tmp_path / folder / "bind.cpp")
    lines = [f'int f_{name}();\n#define AT_{name} m.def("{name}", &f_{name})' for name in REACHED]
    names = ", ".join(f"AT_{name}" for name in REACHED)
    lines += ["#include <torch/extension.h>", f"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ {names}; }}"]
    sources[-1].write_text("\n".join(lines))

    def built():
        name = f"seen_{folder.replace('/', '_')}"
        return cpp_extension.load(name, sources, extra_cflags=OPTIONS, extra_include_paths=["inc"])

    def numbers(value: int) -> dict:
        for name in REACHED:
            (tmp_path / "inc" / f"{name}.h").write_text(f"#define SIZE_{name} {value}\n")
        return {name: getattr(built(), name)() for name in REACHED}

    for value in (10, 20, 10):
        assert numbers(value) == dict.fromkeys(REACHED, value)
    Path("inc/macro.h").unlink()
    with pytest.raises(RuntimeError, match=r"macro\.h: No such file"):
        built()
