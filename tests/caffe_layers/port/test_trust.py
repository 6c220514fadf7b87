"""port writes only to its folder, removes only its own files, and reads only the given tree."""

import pytest

from tools import files


@pytest.mark.parametrize(
    "name", ["../../x", "/tmp/x", ".", "..", "class", "None", "caffe", "core", "build", "_runtime"]
)
def test_names_that_are_refused(fork, port, tmp_path, name):
    fork.layer("Shift")
    (tmp_path / "mine" / "round").mkdir()
    mine = tmp_path / "mine" / "round" / "round.cu"
    mine.write_text("int x;\n")
    (tmp_path / "beside.cu").write_text("int x;\n")
    before = {path for path in tmp_path.rglob("*") if "mine/build" not in str(path)}
    output = port("Shift", f"--name={name}", "--force", fails=True)
    assert "NAME=" in output and len(output.splitlines()) == 1
    assert {path for path in tmp_path.rglob("*") if "mine/build" not in str(path)} == before


@pytest.mark.parametrize("type_name", ["Shift;touch pwned", "../Shift", "$(touch pwned)", "--force"])
def test_types_that_are_refused(fork, port, tmp_path, type_name):
    fork.layer("Shift")
    assert "TYPE=" in port("--", type_name, fails=True)
    assert not list(tmp_path.rglob("pwned"))


def test_force_removes_what_origin_lists(fork, port):
    fork.layer("Shift")
    port("Shift")
    folder = port.folder / "shift"
    (folder / "my_notes.cu").write_text("// mine\n")
    (folder / "shift_layer.cpp").write_text("// changed\n")
    port("Shift", "--force")
    assert (folder / "my_notes.cu").read_text() == "// mine\n"
    assert "changed" not in (folder / "shift_layer.cpp").read_text()


def test_force_leaves_files_that_are_not_ports(fork, port):
    fork.layer("Shift")
    folder = port.folder / "shift"
    folder.mkdir()
    (folder / "shift_layer.cpp").write_text("// a week of work\n")
    assert "which its ORIGIN does not list" in port("Shift", "--force", fails=True)
    assert (folder / "shift_layer.cpp").read_text() == "// a week of work\n"


def test_a_folder_that_is_a_link(fork, port, tmp_path):
    fork.layer("Shift")
    (tmp_path / "elsewhere").mkdir()
    (port.folder / "shift").symlink_to(tmp_path / "elsewhere")
    assert "a link that leads out of" in port("Shift", fails=True)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_file_that_is_a_link(fork, port, tmp_path):
    fork.layer("Shift")
    (port.folder / "shift").mkdir()
    (tmp_path / "precious").write_text("precious\n")
    (port.folder / "shift" / "ORIGIN").symlink_to(tmp_path / "precious")
    assert "a link that leads elsewhere" in port("Shift", fails=True)
    assert (tmp_path / "precious").read_text() == "precious\n"


def test_links_out_of_the_tree_are_not_followed(fork, port, tmp_path):
    """A hostile tree must not bring a user's files into a folder that is then published."""
    source = fork.layer("Shift")
    secret = tmp_path / "secret.hpp"
    secret.write_text("#define SECRET 1\n")
    header = source.parents[3] / "include/caffe/layers/shift_layer.hpp"
    text = header.read_text()
    (header.parent / "secret.hpp").symlink_to(secret)
    header.write_text('#include "caffe/layers/secret.hpp"\n' + text)
    output = port("Shift", fails=True)
    assert "a link that leads out of the tree" in output
    assert not any("SECRET" in path.read_text() for path in port.folder.rglob("*.hpp"))


def test_a_file_that_cannot_be_written(fork, port):
    """The error names it, without a traceback. The next port is whole, and removes what killed ones left."""
    fork.layer("Shift")
    folder = port.folder / "shift"
    (folder / "shift_layer.hpp").mkdir(parents=True)
    said = port("Shift", fails=True)
    assert said.startswith(f"make port: {folder}/shift_layer.hpp") and len(said.splitlines()) == 1
    assert not list(folder.rglob("*.partial"))
    (folder / "shift_layer.hpp").rmdir()
    (folder / "shift_layer.cpp.4711.partial").write_text("half a li")
    (folder / "my.partial").write_text("mine")
    (folder / "run.17.partial").write_text("mine")
    port("Shift")
    assert {p.name for p in folder.iterdir()} == {
        "caffe.proto", "shift_layer.cpp", "shift_layer.hpp", "ORIGIN", "__init__.py", "my.partial", "run.17.partial"
    }  # fmt: skip


def test_writing_leaves_the_old_file_or_the_new_one(tmp_path, monkeypatch):
    file = tmp_path / "a" / "file"
    files.write(file, "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        files.write(file, "new")
    assert [p.read_text() for p in file.parent.iterdir()] == ["old"]
