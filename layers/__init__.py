"""A folder of layers, and no package: the package is `cuffi`."""

raise ImportError(
    "the package is called cuffi: write `from cuffi ...` where the script says `from layers ...`"
)
