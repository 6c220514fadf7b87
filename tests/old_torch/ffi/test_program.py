"""`python program.py x.py`: the toolkit is `cuffi`, and `layers` is the script's own package."""

from .conftest import run


def test_a_script_has_layers_of_its_own(tmp_path):
    (tmp_path / "layers.py").write_text("mine = 5\n")
    (tmp_path / "old.py").write_text(
        "import sys, layers, torch.utils.ffi\nprint(layers.mine, 'cuffi.old_torch' in sys.modules, sys.argv[1:])\n"
    )
    done = run(tmp_path, "old.py", "-x", "1")
    assert done.returncode == 0 and done.stdout == "5 True ['-x', '1']\n", done.stderr


def test_its_status_is_that_of_the_script(tmp_path):
    (tmp_path / "old.py").write_text("raise SystemExit(3)\n")
    assert run(tmp_path, "old.py").returncode == 3
