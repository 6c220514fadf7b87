"""Python 2's order of values: of any two, one is less."""

from __future__ import annotations

import builtins
import functools
import numbers

import numpy as np


def _rank(value) -> tuple[int, str]:
    """None is less than numbers, and these are less than others, which are in the order of their types' names."""
    if value is None:
        return 0, ""
    if isinstance(value, numbers.Number | np.bool_):
        return 1, ""
    return 2, type(value).__name__


def compare(a, b) -> int:
    """cmp(a, b)"""
    try:
        return int(a > b) - int(a < b)
    except TypeError:
        if a is b:
            return 0
        if type(a) is type(b) and isinstance(a, list | tuple):
            different = next(((x, y) for x, y in zip(a, b, strict=False) if x != y), None)
            return compare(*different) if different else compare(len(a), len(b))
        if type(a) is type(b) and isinstance(a, dict):
            return compare((len(a), sorted(a.items())), (len(b), sorted(b.items())))
        of_a, of_b = _rank(a), _rank(b)
        if of_a == of_b:
            raise
        return 1 if of_a > of_b else -1


by_old_order = functools.cmp_to_key(compare)


def by_order(items, cmp=None, key=None, reverse=False) -> list:
    """sorted(items, cmp, key, reverse)"""
    items = list(items)
    keyed = key or (lambda value: value)
    if cmp is not None:
        by_cmp = functools.cmp_to_key(cmp)
        return builtins.sorted(items, key=lambda value: by_cmp(keyed(value)), reverse=bool(reverse))
    try:
        return builtins.sorted(items, key=key, reverse=bool(reverse))
    except TypeError:
        return builtins.sorted(items, key=lambda value: by_old_order(keyed(value)), reverse=bool(reverse))


def _extreme(choose):
    """min or max."""

    def call(*values, key=None):
        items = list(values[0]) if len(values) == 1 else values
        try:
            return choose(items, key=key)
        except TypeError:
            keyed = key or (lambda value: value)
            return choose(items, key=lambda value: by_old_order(keyed(value)))

    return call


least, greatest = _extreme(builtins.min), _extreme(builtins.max)


def less(operate, by_rank):
    """`a < b` and the like: `operate`, or `by_rank` of cmp(a, b) and 0 if that has no answer."""

    def call(a, b):
        try:
            return operate(a, b)
        except TypeError:
            return by_rank(compare(a, b), 0)

    return call
