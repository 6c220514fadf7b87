"""The exception by which a command refuses."""

from .package_module import package_module

without_escapes = package_module("base/shown").without_escapes


class Refused(Exception):
    """A command refuses. The text is the message: the reason, and what to do instead, without escape sequences."""

    def __init__(self, text: str):
        super().__init__(without_escapes(text))
