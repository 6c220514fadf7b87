"""`cuffi explain`: how each kernel of a file runs on the processor, which the toolkit's rewriter knows."""

import sys

from ..edge import root


def main(arguments: list[str]) -> int:
    sys.path.insert(0, str(root()))  # before a folder of yours that is called tools

    from tools.cuda.explain import main

    return main(arguments, "cuffi explain")
