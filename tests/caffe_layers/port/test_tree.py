"""make port: reading a fork's tree."""

from support.fork import names


def test_headers_for_windows_are_not_seen(fork, port):
    """A struct of its dirent.h is the system's elsewhere."""
    fork.write("include/windows/dirent.h", "#include <windows.h>\nstruct dirent { int d_type; };\n")
    either = '#ifdef _MSC_VER\n#include "windows/dirent.h"\n#else\n#include <dirent.h>\n#endif'
    fork.layer("Shift", body="struct dirent* entry = 0;", includes=either)
    port("Shift")
    assert "dirent.h" not in names(port.folder / "shift")


def test_headers_in_inc(fork, port):
    """Trees made by Visual Studio have inc/ and src/ side by side, and Caffe's own headers in include/caffe."""
    fork.write("inc/twist.hpp", "int twist(int n);\n")
    fork.layer("Shift", body="twist(3);", includes='#include "twist.hpp"')
    (fork.root / "include/caffe/layers/shift_layer.hpp").rename(fork.root / "inc/shift_layer.hpp")
    source = fork.root / "src/caffe/layers/shift_layer.cpp"
    fork.write("src/shift_layer.cpp", source.read_text().replace("caffe/layers/", ""))
    source.unlink()
    fork.write("src/twist.cpp", '#include "twist.hpp"\nint twist(int n) { return n; }\n')
    port("Shift")
    found = names(port.folder / "shift")
    assert {"shift_layer.hpp", "shift_layer.cpp", "twist.hpp", "twist.cpp"} <= found


def test_two_classes_of_one_name(fork, port):
    """Each layer gets the one that it includes, with its source."""
    for place in ("left", "right"):
        fork.write(f"include/caffe/{place}/turn.hpp", "class Turn { void go(); };\n")
        text = f'#include "caffe/{place}/turn.hpp"\nvoid Turn::go() {{}}\n'
        fork.write(f"src/caffe/{place}/{place}_turn.cpp", text)
        fork.layer(place.title(), members="Turn turn_;", includes=f'#include "caffe/{place}/turn.hpp"')
    port("Left", "Right")
    assert {"turn.hpp", "left_turn.cpp"} <= names(port.folder / "left")
    assert "right_turn.cpp" not in names(port.folder / "left")
    assert "right_turn.cpp" in names(port.folder / "right")


def test_sources_are_looked_through_before_headers(fork, port):
    """Caffe's Makefile has -I./src before -I./include."""
    fork.layer("Shift")
    header = fork.root / "include/caffe/layers/shift_layer.hpp"
    fork.write("src/caffe/layers/shift_layer.hpp", header.read_text() + "// of src\n")
    port("Shift")
    assert "// of src" in (port.folder / "shift" / "shift_layer.hpp").read_text()


def test_tree_without_messages(fork, port):
    """Layers are published as a few files: stock Caffe's messages serve, or those that lie somewhere in the tree."""
    fork.layer("Shift")
    (fork.root / "src/caffe/proto/caffe.proto").unlink()
    port("Shift")
    assert names(port.folder / "shift") == {"shift_layer.hpp", "shift_layer.cpp", "ORIGIN", "__init__.py"}
    fork.write("shift.proto", "message ShiftParameter {}\n")
    port("Shift", "--name", "again")
    assert "shift.proto" in names(port.folder / "again")
