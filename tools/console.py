"""The package's console, for tools that do not import the package."""

from .parts import part

console = part("base/console").console
