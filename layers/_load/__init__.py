"""Layers built at run time: a folder's, or those of a string.

    layers.load("/my/layers/foo")                     the module that `import my_layers.foo` would be
    layers.load_inline("foo", "__global__ void ...")  a module with a function for each exported launcher

Both run the toolkit's own make, once for each content of sources, toolkit and compilers. What was built is kept in
~/.cache/cuffi, or where CUFFI_CACHE says.
"""
