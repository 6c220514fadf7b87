"""pycaffe's errors were RuntimeErrors, whatever went wrong in C++."""

from __future__ import annotations

import functools

from ...base import CaffeError
from ...base.once import once


@once
def _also_runtime(kind: type[Exception]) -> type[Exception]:
    return type(kind.__name__, (kind, RuntimeError), {"__module__": kind.__module__})


def as_runtime(function):
    """The function, whose CaffeErrors and OSErrors are RuntimeErrors, too."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (CaffeError, OSError) as error:
            if isinstance(error, RuntimeError):
                raise
            is_system = isinstance(error, OSError) and error.errno is not None
            given = (error.errno, error.strerror, error.filename) if is_system else error.args
            raise _also_runtime(type(error))(*given) from error.__cause__

    return call
