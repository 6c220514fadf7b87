"""The options of a project's makefile."""

import os

import pytest

from cuffi.loading.flags import Flags


def test_what_counts():
    words = [
        "-std=c++20",
        "-D",
        "N=3",
        "-DFAST",
        "-UX",
        "-I",
        "a",
        "-Ib/c",
        "-isystem",
        "d",
        "-lfoo",
        "-L",
        "e",
    ]
    flags = Flags(words)
    assert (flags.standard, flags.macros) == ("20", ["-DN=3", "-DFAST", "-UX"])
    assert [os.path.relpath(folder) for folder in flags.folders] == ["a", "b/c", "d"]
    assert flags.libraries == ["-lfoo", "-Le"] and not flags.openmp
    assert flags.for_compiler()[-1] == "-std=c++20" and flags.for_linker() == flags.libraries


@pytest.mark.parametrize(
    "words",
    [
        ["-Xcompiler", "-fopenmp"],
        ["-Xcompiler=-fopenmp,-Wall"],
        ['-Xcompiler="-O3 -fopenmp"'],
        ["--compiler-options", "-Wall -fopenmp -DN=1"],
        ["-fopenmp"],
    ],
)
def test_openmp_by_way_of_nvcc(words):
    flags = Flags(words)
    assert flags.openmp and "-fopenmp" in flags.for_compiler() and "-fopenmp" in flags.for_linker()


@pytest.mark.parametrize(
    "words",
    [
        "-O3 -g -G -lineinfo --use_fast_math -Wall -Wno-unused -w -m64 -march=native",
        "-arch=sm_80 -arch sm_80 -gencode arch=compute_80,code=sm_80 -gencode=arch=compute_70,code=sm_70",
        "--gpu-architecture=sm_90 --expt-relaxed-constexpr --extended-lambda -rdc=true --ptxas-options=-v",
        "-Xptxas -v -x cu -std=c++11 -std=c++14 -std c++17 -lcublas -lcudart -lnvToolsExt",
        "-fPIC -pthread -ffast-math -o a.out -ccbin g++-11",
    ],
)
def test_what_the_toolkit_chooses(words):
    flags = Flags(words.split())
    assert (flags.for_compiler(), flags.for_linker()) == (["-std=c++17"] * ("c++17" in words), [])


@pytest.mark.parametrize("word", ["--unknown", "-fwhole-thing", "main", "-std=c++99", ""])
def test_what_nobody_knows(word):
    with pytest.raises(ValueError, match="no option that is known here"):
        Flags([word])
