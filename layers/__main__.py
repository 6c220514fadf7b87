"""`python -m cuffi` prints the folder of the toolkit's Makefile.

make -C "$(python -m cuffi)" LAYERS_DIR=$PWD/my_layers
"""

from ._load.toolkit import root

print(root())
