"""What a candidate's and a reference's file must define, in the file and in its text."""

import ast
import warnings
from pathlib import Path


def named(found: dict, name: str, file: Path):
    """What a file must define. LookupError if it does not."""
    if name not in found:
        own = [n for n, value in found.items() if getattr(value, "__module__", "") == found["__name__"]]
        raise LookupError(_lacks(file, name, own))
    return found[name]


def unfit(file: Path, names: list[str]) -> str:
    """Why Python cannot read the file, or which of these names its text has nowhere; "" if it may be fit."""
    text = file.read_bytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, str(file))
    except (SyntaxError, ValueError) as error:
        return f"{file}:{getattr(error, 'lineno', 0) or 0}: {type(error).__name__}: {getattr(error, 'msg', error)}"
    if b"import *" in text:
        return ""
    own = [node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    lacking = next((name for name in names if name.encode() not in text), "")
    return _lacks(file, lacking, own) if lacking else ""


def unfit_pair(file: Path, reference: Path | None) -> str:
    """What is wrong with the texts of a candidate and its reference, if there is one, before anything is built."""
    said = unfit(file, ["ModelNew"] if reference else [])
    return said or (unfit(reference, ["get_inputs", "Model"]) if reference else "")


def _lacks(file: Path, name: str, own: list[str]) -> str:
    its = f"{file.name} defines no {name}. It defines {', '.join(sorted(own)) or 'nothing'}"
    return its + (
        ". Write: def get_inputs(): return [the tensors of forward()]" if name == "get_inputs" else ""
    )
