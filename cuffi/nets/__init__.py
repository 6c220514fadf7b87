"""The wing of nets: whole Caffe models, their solvers and scripts, by torch alone (README.md)."""

from . import net as net  # first, because its parts and those of stock and forks use each other
