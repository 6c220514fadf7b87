"""The console of the tools: names of others are printed without their escape sequences, and without markup."""

import io

from rich.progress import track
from rich.table import Table

from tools.console import console


def printed(*renderables, **options) -> str:
    made = console(file=io.StringIO(), width=60, **options)
    for each in renderables:
        made.print(each)
    return made.file.getvalue()


def test_escape_sequences_of_names_are_escapes():
    table = Table("a\x1b[2Jb")
    table.add_row("c\x9b1md")
    said = printed(table, "e\x1b]0;f\x07")
    assert all(line.isprintable() for line in said.splitlines())
    assert (
        "a\\x1b[2Jb" in said and "c\\x9b1md" in said and "e\\x1b]0;f" in said
    )  # rich removes the bell itself


def test_names_with_brackets_stay():
    assert printed("[red]a[/red]") == "[red]a[/red]\n"


def test_rich_s_own_styles_stay():
    made = console(file=io.StringIO(), force_terminal=True, color_system="standard")
    made.print("a\x1b[2J", style="red")
    assert made.file.getvalue() == "\x1b[31ma\\x1b[2J\x1b[0m\n"
    assert list(track(range(3), console=made)) == [0, 1, 2] and "\x1b[2K" in made.file.getvalue()
