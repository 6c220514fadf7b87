"""Whole Caffe models: caffe_net makes a torch.nn.Module of a prototxt and a caffemodel."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence

from ...base import CaffeValueError
from . import arguments
from .builder import Builder, read_net
from .choice import Options
from .net import CaffeNet
from .phases import TEST, TRAIN, State
from .python_layer import PythonPath
from .registry import Folders
from .weights import load

__all__ = ["CaffeNet", "caffe_net"]


def caffe_net(
    prototxt: str | os.PathLike[str],
    weights: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    train: bool = False,
    phase: str | None = None,
    stages=(),
    level: int | None = None,
    shapes: dict | None = None,
    replace: dict | None = None,
    native: bool | dict = True,
    layers=(),
    choose: dict | None = None,
    ignore=(),
    crop: str | None = None,
    python_layers: bool | PythonPath = False,
    python_path=(),
    types: dict | None = None,
) -> CaffeNet:
    """Make a torch.nn.Module of a Caffe net.

    Args:
        prototxt: the path of a deploy.prototxt or train_val.prototxt of any of Caffe's formats, or its text.
        weights: the path of a .caffemodel or .caffemodel.h5, or several. If two have the same layer, the later one
            wins.
        train: start in the phase TRAIN instead of TEST. `train()` and `eval()` change the phase.
        phase: 'TRAIN' or 'TEST': build only this phase. None: both, or one if the other has blobs that no layer makes.
            `net.notes` says so. A net without TEST starts in TRAIN, with a warning.
        stages, level: of Caffe's NetState. `stages` are added to those of the file's own `state`. level=None: the
            file's level, or 0. (pycaffe's Net ignores the file's level, as level=0 does.)
        shapes: shapes of inputs by blob, if the file has none or you want others: {"data": (1, 3, 224, 224)}.
        replace: values for the `$NAME$` of a template.
        native: False: the fork's ported code runs all types, instead of torch. {"Pooling": False}: only this type.
            {"Permute": True}: torch runs this type, even if a folder has it ported.
        layers: folders of ported layers, which come before those of LAYERS_DIR and the toolkit's own.
        choose: {type: folder's name}, if a folder has a type twice; {"BN": "segnet"}, if the file does not determine
            whose BN it is.
        ignore: fields of forks to ignore: ("quantization_param",).
        python_layers: True runs the Python layers' code, also of Python 2. It can do anything that Python can. Python
            layers without bottoms then make the data themselves, instead of being inputs. A PythonPath: runs those that
            it finds.
        python_path: folders with the Python layers' modules. Default: the prototxt's folder and the folders above it,
            also their `lib`, `python` and `src`, up to the folder with `.git`.
        types: {type: function}: the function makes the torch module of a layer of this type from its `Spec`. It is used
            before all other code.
        crop: 'stock': a Crop layer without crop_param cuts at 0, as in today's Caffe. None: at the offset that follows
            from the geometry of the net, as in Caffe before 2016.

    Returns:
        A CaffeNet on the CPU, with parameters of torch's default dtype. They are loaded from `weights`; layers that
        these files lack keep their fillers' values. A warning lists layers that did not match.

    Raises:
        CaffeTypeError: an argument has a wrong type.
        CaffeValueError: the file cannot be read or built (the message lists all problems, with their lines in the
            file), or the blobs in `weights` differ from a layer's in number or shape.
        OSError: a file cannot be read.
    """
    arguments.one_of("phase", phase, TRAIN, TEST)
    native, ignore = arguments.native("native", native), arguments.names("ignore", ignore)
    choose = arguments.mapping("choose", choose, str, "folders' names")
    folders, shapes = Folders(arguments.paths("layers", layers), choose), arguments.shapes("shapes", shapes)
    paths, crop = arguments.paths("weights", weights), arguments.one_of("crop", crop, "stock")
    options = Options(native, folders, ignore, shapes, crop, paths)
    options.types = arguments.mapping("types", types, Callable, "functions")
    train = arguments.boolean("train", train)
    level = None if level is None else arguments.integer("level", level)
    stages = frozenset(arguments.names("stages", stages))
    python_path = arguments.paths("python_path", python_path)
    if isinstance(python_layers, PythonPath):
        options.python = python_layers.find
    elif arguments.boolean("python_layers", python_layers):
        is_text = isinstance(prototxt, str) and "{" in prototxt
        options.python = PythonPath(python_path, "" if is_text else os.fspath(prototxt)).find
    elif python_path:
        raise CaffeValueError(
            "caffe_net: python_path: Python layers do not run. To run them: python_layers=True"
        )
    replace = arguments.mapping("replace", replace, object, "values")
    text, path = read_net(arguments.prototxt(prototxt), replace)
    phases = [phase] if phase else [TRAIN, TEST]
    net = Builder(text, path, options).build([State(p, level, stages) for p in phases])
    report = load(net, paths, fill=True)
    if paths and (report.missing or report.unused):
        warnings.warn(f"{path}: {report}", stacklevel=2)
    if phase is None and not train and TEST not in net.phases:
        warnings.warn(f"{path}: a net only for training: {net.notes_on(TEST)}", stacklevel=2)
        train = True
    return net.train(train if phase is None else phase == TRAIN)
