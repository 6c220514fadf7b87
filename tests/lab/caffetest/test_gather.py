"""make caffetest: the files that a fork's own tests need."""

import os

import pytest

from lab.caffetest import __main__, aggregate, gather
from tools.refused import Refused


def test_what_a_forks_test_is_made_of(fork):
    """Helpers' sources are included, and a database is reported missing only if it is used."""
    for file in ("src/gtest/gtest-all.cpp", "src/caffe/util/twist.cpp", "src/caffe/util/twist.cu"):
        fork.write(file, "")
    for header in ("twist", "db"):
        fork.write(f"include/caffe/util/{header}.hpp", "")
    fork.layer("Shift", includes='#include "caffe/util/twist.hpp"')
    text = '#include "caffe/util/db.hpp"\n#include "caffe/layers/shift_layer.hpp"\n'
    fork.write("src/caffe/test/test_feed_layer.cpp", text + "db::DB* db;\n")
    fork.write("src/caffe/test/test_shift_layer.cpp", text + "#ifdef USE_LMDB\ndb::DB* db;\n#else\n#endif\n")
    tree = gather.LayerTests(fork.root)
    tests, left_out = tree.select(["all"])
    assert [t.name for t in tests] == ["test_shift_layer.cpp"]
    assert left_out == {"test_feed_layer.cpp": "a database"}
    found = {path.name for path in tree.files(tests)}
    assert {"shift_layer.hpp", "shift_layer.cpp", "twist.hpp", "twist.cpp", "twist.cu"} <= found
    assert "db.hpp" not in found


def test_the_tests_that_are_named(fork):
    fork.write("src/gtest/gtest-all.cpp", "")
    for name in ("shift", "data"):
        fork.write(f"src/caffe/test/test_{name}_layer.cpp", '#include "caffe/solver.hpp"\n')
    tree = gather.LayerTests(fork.root)
    tests, left_out = tree.select(
        ["test_shift_layer", "test_data_layer.cpp"]
    )  # what it lacks, the compiler says
    assert [t.name for t in tests] == ["test_shift_layer.cpp", "test_data_layer.cpp"] and left_out == {}
    with pytest.raises(Refused) as said:
        tree.select(["test_no_layer"])
    there = "no test test_no_layer.cpp. There are: test_data_layer.cpp, test_shift_layer.cpp"
    assert str(said.value) == f"{fork.root.resolve()}: {there}"


def test_a_layer_that_another_makes_by_name(fork):
    """Its type is in its source, not in an include; of a test's own source types are not taken."""
    fork.write("src/gtest/gtest-all.cpp", "")
    fork.layer("Other")
    fork.write("src/caffe/layers/other_layer.cu", "")
    fork.layer("Named")
    fork.layer("Shift", body='LayerParameter inner;\n  inner.set_type( "Other" );')
    test = fork.write(
        "src/caffe/test/test_shift_layer.cpp", '#include "caffe/layers/shift_layer.hpp"\nset_type("Named")\n'
    )
    found = {path.name for path in gather.LayerTests(fork.root).files([test])}
    assert {
        "shift_layer.cpp",
        "other_layer.cpp",
        "other_layer.cu",
    } <= found and "named_layer.cpp" not in found


def test_the_folder_that_is_built(fork, tmp_path):
    """The fork's files, unedited. Files that are no longer needed are removed; unchanged ones keep their time."""
    for file in ("gtest-all.cpp", "gtest.h"):
        fork.write(f"src/gtest/{file}", "")
    fork.layer("Shift")
    folder, times = tmp_path / "of_test", []
    for text in ("first", "second"):
        test = fork.write(
            "src/caffe/test/test_shift_layer.cpp", f'#include "caffe/layers/shift_layer.hpp" // {text}'
        )
        __main__.lay_out(gather.LayerTests(fork.root), [test], folder)
        assert (folder / test.name).read_text() == test.read_text()
        times.append({path.name: path.stat().st_mtime_ns for path in folder.iterdir()})
        for more in ("old_layer.cpp", "_host.xml"):
            (folder / more).touch()
        for path in folder.iterdir():
            os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**9))
    wanted = "caffe.proto caffe_test.h gtest-all.cpp gtest.h runner.cpp shift_layer.cpp shift_layer.hpp"
    assert times[0].keys() == {"__init__.py", test.name, *wanted.split()}
    assert times[1].keys() == times[0].keys() | {"_host.xml"}
    assert all(times[1][name] == times[0][name] - 10**9 for name in wanted.split())


def test_what_the_toolkit_has_is_not_taken_for_a_forks_test(fork):
    """common.cuh is the fork's alone; common.cpp, its companion by name, is not."""
    test = fork.write("src/caffe/test/test_shift_layer.cpp", '#include "caffe/layers/shift_layer.hpp"\n')
    fork.write("src/gtest/gtest-all.cpp", "")
    fork.layer("Shift", includes='#include "caffe/common.cuh"')
    fork.write("include/caffe/common.cuh", "#define HELP\n")
    fork.write("src/caffe/common.cpp", "no C++\n")
    found = {path.name for path in gather.LayerTests(fork.root).files([test])}
    assert {"shift_layer.hpp", "shift_layer.cpp", "common.cuh"} <= found and "common.cpp" not in found


def test_what_the_tests_themselves_want_of_a_fork(fork):
    """A function that Microsoft/caffe's test_caffe_main.hpp calls stands in its util/io.hpp, which is replaced."""
    functions = "namespace caffe {\ninline void forget_files() {}\ninline void other() {}\n}\n"
    fork.write("include/caffe/util/io.hpp", functions)
    text = '#include "caffe/util/io.hpp"\nstruct Test { ~Test() { forget_files(); } };\n'
    shared = fork.write("include/caffe/test/test_caffe_main.hpp", text)
    made = aggregate.Layers(fork.root).additions([shared])["additions.hpp"]
    assert "inline void forget_files" in made and "other" not in made
