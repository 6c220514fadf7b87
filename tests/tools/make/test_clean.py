"""make clean: it removes what make made, and nothing else."""


def test_clean(workshop):
    one = workshop.layer("one")
    before = {p.name for p in one.iterdir()}
    workshop.build()
    workshop.build("clean")
    assert {p.name for p in one.iterdir()} == before and not (workshop.folder / "build").exists()


def test_what_make_did_not_make_stays_in_build(workshop, tmp_path):
    """A folder with the layer's name, for one, which a make would empty."""
    workshop.layer("one")
    own = [tmp_path / "b" / name for name in ("thesis.txt", "core/x", "two/x", "packages.txt", "link")]
    for file in own[:-1]:
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text("years of work")
    own[-1].symlink_to(tmp_path / "b" / "two")
    one = (tmp_path / "b" / "two").rename(tmp_path / "b" / "one")
    for options in ((), ("-n",), ()):
        refused = workshop.make(f"BUILD={tmp_path / 'b'}", *options, "libraries")
        assert "-n" in options or (
            refused.returncode
            and "b/one: make would empty this folder, but did not create it" in refused.output
        )
    one.rename(tmp_path / "b" / "two")
    workshop.build(f"BUILD={tmp_path / 'b'}", "-n", "libraries")
    workshop.build(f"BUILD={tmp_path / 'b'}", "libraries")
    said = workshop.build(f"BUILD={tmp_path / 'b'}", "clean")
    assert "not removed, because make did not write it: core, link, packages.txt, thesis.txt, two\n" in said
    assert all(file.exists() for file in own) and len(list((tmp_path / "b").iterdir())) == 5
