"""The package's console, for tools that do not import the package."""

from .package_module import package_module

console = package_module("base/console").console
