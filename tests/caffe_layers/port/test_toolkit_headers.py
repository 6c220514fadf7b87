"""make port: macros that a fork added to headers that the toolkit replaces."""

import re

from support.fork import names

from cuffi.caffe_layers.port.toolkit_headers import WING, Toolkit


def test_macros_that_a_fork_added(fork, port):
    """Those that the layer uses are taken, those that they use, and the functions that they call."""
    fork.write(
        "include/caffe/common.hpp",
        """#define NOT_IMPLEMENTED LOG(FATAL) << "another text"
#define FORK_LIMIT 7
#ifdef CPU_ONLY
#define FORK_CHECK(n) nothing
#else
#define FORK_CHECK(n) \\
  CHECK_LT(fork_twice(n), FORK_LIMIT)
#endif
#define FORK_UNUSED 3
""",
    )
    fork.write(
        "include/caffe/util/math_functions.hpp",
        "namespace caffe {\ninline int fork_twice(int n) { return n * FORK_TWO; }\n}\n#define FORK_TWO 2\n",
    )
    fork.layer("Shift", body="FORK_CHECK(3); NOT_IMPLEMENTED;")
    assert "common.hpp: of it, into additions.*: FORK_CHECK, FORK_LIMIT\n" in port("Shift")
    assert {n for n in names(port.folder / "shift") if "additions" in n} == {"additions.hpp"}
    text = (port.folder / "shift" / "additions.hpp").read_text()
    assert "#define FORK_CHECK(n) \\\n  CHECK_LT(fork_twice(n), FORK_LIMIT)\n" in text
    assert text.index("#define FORK_TWO 2\n") < text.index("inline int fork_twice")
    assert not re.search("FORK_UNUSED|nothing|another text", text)
    assert "additions.hpp  include/caffe/common.hpp:6\n" in (port.folder / "shift" / "ORIGIN").read_text()


def test_macros_that_only_conditions_name(fork, port):
    """Without them the compiler would silently compile another branch."""
    fork.write(
        "include/caffe/common.hpp",
        "#define FORK_LEVEL (FORK_BASE + 1)\n#define FORK_BASE 2\n#define FORK_FAST\n#define FORK_OLD\n"
        "#define FORK_UNUSED\n#define USE_CUDNN\n",
    )
    fork.write(
        "include/caffe/util/math_functions.hpp",
        "namespace caffe {\ninline int fork_twice(int n) {\n#ifndef FORK_OLD\nn = 0;\n#endif\nreturn 2 * n;\n}\n}\n",
    )
    fork.layer(
        "Shift",
        body="fork_twice(level);",
        includes="#ifdef USE_CUDNN\n#include <cudnn.h>\n#endif\n#if 0\n#elif FORK_LEVEL == 3 && defined(FORK_FAST)\n"
        "const int level = 3;\n#endif\n",
    )
    assert "common.hpp: of it, into additions.*: FORK_BASE, FORK_FAST, FORK_LEVEL, FORK_OLD\n" in port(
        "Shift"
    )
    assert not re.search("FORK_UNUSED|CUDNN", (port.folder / "shift" / "additions.hpp").read_text())


def test_each_header_of_a_layer_has_a_source():
    """One file may have several layers: neuron_layers.cu. Headers of helpers may have none."""
    toolkit = Toolkit()
    layers = sorted((WING / "include/caffe/layers").glob("*.hpp"))
    assert len(layers) > 15 and all(toolkit.has_source(f"include/caffe/layers/{h.name}") for h in layers)
    assert toolkit.has_source("include/caffe/util/math_functions.hpp")
    assert not toolkit.has_source("include/caffe/filler.hpp")
    assert not toolkit.has_source("include/caffe/layers/of_a_fork_layer.hpp")
