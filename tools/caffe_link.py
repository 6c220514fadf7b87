"""Link a Caffe layer's library, and say which of the names it uses nobody defines.

    python tools/caffe_link.py OUTPUT.so WRAPPER.o LAYER.a ENGINE.a -- g++ ...

The layer's objects are linked whole, because nobody names a static registerer; the engine's as they are needed. A name
that nobody defines would otherwise show up when Python loads the library, without the place that uses it. Python's own
names stay undefined: the interpreter has them.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

# The interpreter's, and the sanitizers' (make sanitize loads them first).
ELSEWHERE = re.compile(r"_?Py|__\w+san_")
UNDEFINED = re.compile(r"undefined reference to [`']([^']+)'")


def missing(linker_output: str) -> list[str]:
    """The linker's lines about names that are not Python's, without its own name before them."""
    lines = linker_output.splitlines()
    ours = [line for line in lines if (name := UNDEFINED.search(line)) and not ELSEWHERE.match(name[1])]
    return [re.sub(r"^\S*ld: (warning: )?", "", line) for line in ours]


def main() -> int:
    split = sys.argv.index("--")
    output, wrapper, layer, engine = map(Path, sys.argv[1:split])
    partial = output.with_name(output.name + ".partial")
    command, *options = sys.argv[split + 1 :]
    done = subprocess.run(
        [command, "-shared", "-o", partial, wrapper, "-Wl,--whole-archive", layer, "-Wl,--no-whole-archive", engine,
         *options, "-Wl,--exclude-libs,ALL", "-Wl,-z,defs", "-Wl,--warn-unresolved-symbols"],
        capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    undefined = missing(done.stderr)
    if done.returncode or undefined:
        print("\n".join(undefined) or done.stderr)
        if undefined:
            print(
                "Neither the layer's folder nor the toolkit defines these: files of the fork are missing here."
            )
        partial.unlink(missing_ok=True)
        return 1
    os.replace(partial, output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
