"""Build layers at run time, from a folder or a string.

    cuffi.load("/my/layers/foo")                     the module that `import my_layers.foo` would give
    cuffi.load_inline("foo", "__global__ void ...")  a module with a function for each exported launcher

Both run the toolkit's own make. They build again only if sources, toolkit or compilers change. Builds are kept in
~/.cache/cuffi, or in the folder that CUFFI_CACHE names.
"""
