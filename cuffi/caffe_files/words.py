"""What is said of a name or a word in a prototxt that the messages do not have."""

import difflib
import re
from collections.abc import Iterable

from ..base import CaffeValueError
from .prototxt import Field


def unknown_field(name: str, descriptor) -> str:
    known = sorted(descriptor.fields_by_name)
    return f"no field {name!r}{did_you_mean(name, known) or '.'} There are: {', '.join(known) or 'none'}"


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The end of an error's sentence about an unknown name; "" if no known name is similar.

    Args:
        cutoff: the least similarity: difflib's ratio of the lower-case names.
    """
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=cutoff)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""


def check_word(entry: Field, field, where: str) -> None:
    """CaffeValueError for a text without quotes, and for a name that the field's list does not have."""
    value, quoted = str(entry.value)[:40], str(entry.value)[:1] in ("'", '"')
    names = [one.name for one in field.enum_type.values] if field.enum_type else []
    if field.cpp_type == field.CPPTYPE_STRING and not quoted:
        wrong = f'expected a text in quotes, "{value}"'
    elif not names or value in names or re.fullmatch(r"-?\d\w*", value):
        return
    elif quoted and value[1:-1] in names:
        wrong = f"expected {value[1:-1]}, without quotes"
    else:
        wrong = f"there is no {value}{did_you_mean(value, names) or '.'} There are: {', '.join(names)}"
    raise CaffeValueError(f"line {entry.line}: {where}: {wrong}")
