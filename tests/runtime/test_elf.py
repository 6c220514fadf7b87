"""An incomplete library file is refused before the loader opens it."""

import re


def test_broken_library(workshop):
    """Another file under the library's name is a Python error that says so."""
    one = workshop.layer("one")
    workshop.build()
    (one / "_host.abi3.so").write_text("not a library\n")
    said = workshop.import_and_fill("one")
    assert re.match(
        r"CaffeRuntimeError: one: /.*one/_host\.abi3\.so is not a library, remove it\. Type `make ", said
    ), said
