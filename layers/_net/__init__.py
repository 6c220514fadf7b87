"""Whole Caffe models: caffe_net makes a torch.nn.Module of a prototxt and a caffemodel."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from .._runtime import CaffeValueError
from . import arguments
from .builder import Builder, Options, read_net
from .net import CaffeNet
from .phases import TEST, TRAIN, State
from .python_layer import PythonPath
from .registry import Folders
from .weights import load

__all__ = ["CaffeNet", "caffe_net"]


def caffe_net(
    prototxt,
    weights=None,
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
    python_layers: bool = False,
    python_path=(),
    types: dict | None = None,
) -> CaffeNet:
    """Make a torch.nn.Module of a Caffe net.

    Args:
        prototxt: the path of a deploy.prototxt or train_val.prototxt of any of Caffe's formats, or its text.
        weights: the path of a .caffemodel or .caffemodel.h5, or several. If two have a layer, the later one wins.
        train: begin in the phase TRAIN instead of TEST. `train()` and `eval()` change the phase.
        phase: 'TRAIN' or 'TEST': build only this phase. None: both.
        stages, level: those of Caffe's NetState. Stages are added to those of the file's own `state`. None: the
            file's level, else 0. (pycaffe's Net takes 0 even if the file has a level: level=0.)
        shapes: shapes of inputs by blob, if the file has none or you want others: {"data": (1, 3, 224, 224)}.
        replace: values for the `$NAME$` of a template.
        native: False runs all types by the fork's ported code instead of torch, {"Pooling": False} one type.
            {"Permute": True}: torch computes this type of forks, even if a folder has it ported.
        layers: folders of ported layers. They come before those of LAYERS_DIR and the toolkit's own.
        choose: {type: folder's name}, if several folders have a type; {"BN": "segnet"}, if the file does not tell which
            fork's BN it means.
        ignore: fields of forks to ignore: ("quantization_param",).
        python_layers: True runs the Python layers' code, which may do anything that Python can. Files of Python 2 run,
            too. Python layers without bottoms then make the data themselves, instead of being inputs.
        python_path: folders with their modules. Without: beside the prototxt and above it, also in `lib`, `python`
            and `src`, up to the folder with `.git`.
        types: {type: a function}: makes the torch module of a layer of this type from its `Spec`. It comes before all
            others.
        crop: 'stock': a Crop layer without crop_param cuts at 0, as today's Caffe does. None: as the geometry says.

    Returns:
        A CaffeNet on the CPU, with parameters of torch's default dtype: those of `weights`, and for layers that are in
        none of these files what their fillers give. A warning lists layers that did not match.

    Raises:
        CaffeTypeError: an argument of another type.
        CaffeValueError: the file cannot be read or built. The message lists all problems, with their lines in the
            file. Or blobs of `weights` have another shape than the layer's, or another number.
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
    if arguments.boolean("python_layers", python_layers):
        is_text = isinstance(prototxt, str) and "{" in prototxt
        options.python = PythonPath(python_path, "" if is_text else prototxt).find
    elif python_path:
        raise CaffeValueError(
            "caffe_net: python_path: Python layers do not run: python_layers=True lets them"
        )
    replace = arguments.mapping("replace", replace, object, "values")
    text, path = read_net(arguments.prototxt(prototxt), replace)
    phases = [phase] if phase else [TRAIN, TEST]
    net = Builder(text, path, options).build([State(p, level, stages) for p in phases])
    report = load(net, paths, fill=True)
    if paths and (report.missing or report.unused):
        warnings.warn(f"{path}: {report}", stacklevel=2)
    return net.train(train if phase is None else phase == TRAIN)
