"""The Makefile with the fragments of the wings, as text."""

from .points import ROOT

FILES = [ROOT / "Makefile", *sorted(ROOT.glob("cuffi/*/targets.mk")), ROOT / "lab" / "targets.mk"]
TEXT = "".join(file.read_text() for file in FILES)
