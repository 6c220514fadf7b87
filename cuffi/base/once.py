"""A cache of what has an identity, such as a class: threads that ask at once get the same."""

import functools
import threading


def once(function):
    """functools.cache, whose function runs once for its arguments. A cache alone lets several threads run it at once,
    and each keeps what it made: two classes of one message, whose objects cannot be copied to each other."""
    cached, lock = functools.cache(function), threading.RLock()

    @functools.wraps(function)
    def call(*arguments):
        with lock:
            return cached(*arguments)

    return call
