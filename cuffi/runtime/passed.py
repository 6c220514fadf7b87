"""The arguments of a call of a launcher, in the order of its parameters: tuples, dicts and names become single values.

in_order(("y", "p_n", "p_k_0", "p_k_1"), (y, {"n": 3, "k": (1, 2)}), {})   # (y, 3, 1, 2)

By name, grid and block are called the same in every launcher that takes them, and what is left out of y and z is 1:
`grid=4`, `grid=(4, 2)` and `grid_x=4, grid_y=2` are understood by all.
"""

import re

from ..base.errors import CaffeTypeError

# The names of a vector's numbers.
AXES = "xyzw"


def in_order(
    names: tuple[str, ...],
    arguments: tuple,
    named: dict,
    geometry: tuple[str, ...] = (),
    launched: dict | None = None,
) -> tuple:
    """One value for each name, as far as the call has them. `geometry` are the names of grid and block.

    `launched` are those that the file's own launch has in numbers: a call may repeat them.

    A kernel's float3 is three numbers of its launcher, which may be passed as one tuple. A struct is a number or a
    pointer for each of its fields, which may be passed as one dict, by the fields' names; a struct in it, too.

    Raises:
        CaffeTypeError: a name is unknown or given twice, a field is missing, or names are not given to the end.
    """
    values: list = []
    for argument in arguments:
        if isinstance(argument, tuple):
            values += argument
        elif isinstance(argument, dict):
            values += _of_struct(names[len(values) :], _flat(argument))
        else:
            values.append(argument)
    if not named:
        return tuple(values)
    named = _with_geometry(names, len(values), named, geometry)
    for what, sizes in (launched or {}).items():
        named = _without_repeated(what, sizes, names, named)
    for name in named:
        if name not in names:
            raise CaffeTypeError(f"no argument is called {name!r}: there are {', '.join(names)}")
        if name in names[: len(values)]:
            raise CaffeTypeError(f"{name} is given twice")
    rest = names[len(values) :]
    if missing := [name for name in rest if name not in named]:
        raise CaffeTypeError(f"{', '.join(missing)}: missing")
    return (*values, *(named[name] for name in rest))


# The launcher's own names end with _ where a parameter of the kernel has theirs.
AXIS = re.compile(r"(grid|block)(?:_([xyz]))?_*\Z")


def _with_geometry(names: tuple[str, ...], given: int, named: dict, geometry: tuple[str, ...]) -> dict:
    """The named arguments with grid and block by the launcher's own names.

    Args:
        given: the number of arguments without names.
    """
    named, placed = dict(named), names[:given]
    for what in ("grid", "block"):
        own = {m[2] or "": name for name in geometry if (m := AXIS.match(name)) and m[1] == what}
        sizes = _sizes(what, {*names} - {own.get("", "")}, named) if own else {}
        if "" in own:
            if further := [f"{what}_{axis}" for axis, size in sizes.items() if axis != "x" and size != 1]:
                raise CaffeTypeError(f"{further[0]}: this kernel's {what} has one dimension, {own['']}")
            sizes = {"": sizes["x"]} if "x" in sizes else {}
        for axis, size in sizes.items():
            if own[axis] in named or own[axis] in placed:
                raise CaffeTypeError(f"{own[axis]} is given twice")
            named[own[axis]] = size
        further = [own[axis] for axis in "yz" if axis in own]
        named |= {name: 1 for name in further if name not in named and name not in placed}
    return named


def _without_repeated(what: str, sizes: list[int], names: tuple[str, ...], named: dict) -> dict:
    """The named arguments without a grid, a block or bytes of shared memory that the file's own launch has, too."""
    named = dict(named)
    if what == "shared_bytes":
        pairs = [(what, named.pop(what), sizes[0])] if what in named and what not in names else []
    else:
        given = _sizes(what, {*names}, named)
        pairs = [(f"{what}_{axis}", size, sizes["xyz".index(axis)]) for axis, size in given.items()]
    for name, size, own in pairs:
        if size != own:
            raise CaffeTypeError(
                f"{name}: {size!r}, but the file launches this kernel with {own}: leave it out"
            )
    return named


def _sizes(what: str, names: set[str], named: dict) -> dict:
    """The sizes by axis that a call gives by names which are not these. They are taken out of `named`."""
    sizes: dict = {}
    for name in (what, *(f"{what}_{axis}" for axis in "xyz")):
        if name in names or name not in named:
            continue
        value, axis = named.pop(name), name.removeprefix(what)[1:]
        several = value if isinstance(value, tuple | list) and not axis else (value,)
        if len(several) > 3:
            raise CaffeTypeError(f"{name}: expected at most three sizes, got {value!r}")
        for own, size in zip(axis or "xyz", several, strict=False):
            if own in sizes:
                raise CaffeTypeError(f"{name}: {what} is given twice")
            sizes[own] = size
    return sizes


def _flat(given: dict) -> dict:
    """The fields of a struct in a struct by one name each: {"q": {"n": 3}} is {"q_n": 3}."""
    flat: dict = {}
    for field, value in given.items():
        inner = _flat(value) if isinstance(value, dict) else None
        flat |= {field: value} if inner is None else {f"{field}_{own}": v for own, v in inner.items()}
    return flat


def _of_struct(names: tuple[str, ...], given: dict) -> list:
    """The values of a struct's fields. `names` begins with theirs."""
    if not names:
        raise CaffeTypeError("a dict, after the last argument")
    splits = [names[0][:at] for at, letter in enumerate(names[0]) if letter == "_"]
    if not splits:
        return [given]  # no struct's field: the check of its type says what is expected
    fitting = [p for p in splits if any(_element(names[0], f"{p}_{field}") is not None for field in given)]
    if not fitting:
        raise CaffeTypeError(f"{names[0]}: a dict has no such field: it has {', '.join(map(str, given))}")
    prefix, values, used = f"{fitting[0]}_", [], {}
    for name in names:
        field = next((f for f in given if _element(name, prefix + str(f)) is not None), None)
        if field is None and name.startswith(prefix):
            raise CaffeTypeError(f"{name}: missing in a dict")
        if field is None:
            break
        element = _element(name, prefix + field)
        value = given[field]
        if element:
            if not isinstance(value, tuple | list):
                raise CaffeTypeError(f"{prefix}{field}: expected a tuple, got {value!r}")
            place = AXES.index(element) if element in AXES else int(element)
            if place >= len(value):
                raise CaffeTypeError(f"{prefix}{field}: expected more than {len(value)} values")
            value = value[place]
        values.append(value)
        used[field] = used.get(field, 0) + 1
    for field, value in given.items():
        count = len(value) if isinstance(value, tuple | list) else 1
        if used.get(field) != count:
            raise CaffeTypeError(f"{prefix}{field}: expected {used.get(field, 'no')} values, got {count}")
    return values


def _element(name: str, field: str) -> str | None:
    """ "" if the name is the field's, "x" or "0" if it is of one of its elements, None otherwise."""
    if name == field:
        return ""
    rest = name.removeprefix(f"{field}_")
    return rest if rest != name and (rest.isdigit() or (len(rest) == 1 and rest in AXES)) else None
