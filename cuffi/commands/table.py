"""The commands of `cuffi`: what `cuffi`, `cuffi NAME --help` and `make` know of each."""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """An option of a command. It has a name in make, too, by which the toolkit's tools get it in the environment."""

    flag: str  # --weights, or the name of the argument without a flag, such as prototxt
    setting: str  # make's name, WEIGHTS
    help: str
    is_path: bool = False
    is_switch: bool = False
    is_list: bool = False


class Command(NamedTuple):
    """A command.

    Attributes:
        summary: for the list of commands.
        usage: what follows its name.
        about: what it does.
        example: lines of a shell.
        run: the function in run.py.
        needs: the module of the distribution cuffi that it needs; "" if the nets suffice.
        options: of a command whose arguments become make's settings. Others read their arguments themselves.
        writes: the setting with which it writes into the folder of layers, by default ./layers.
        flags: of a command that reads its arguments itself: its options, for a shell's completion.
        status: what its exit status is, if it is not as STATUS says.
    """

    summary: str
    usage: str
    about: str
    example: str
    run: str
    needs: str = ""
    options: tuple[Option, ...] = ()
    writes: str = ""
    flags: tuple[str, ...] = ()
    status: str = ""


# The exit status of every command. Those that run a program or a script end as that does.
STATUS = {
    0: "done, and nothing is wrong; `cuffi judge --prove`: it is proved",
    1: "it failed, or what it checked is wrong",
    2: "it cannot begin: wrong arguments, or something is missing, which one line names",
    3: "no verdict: what it should check or run could not be built; `cuffi judge --prove`: it is not proved",
    130: "Ctrl-C",
}
_AS_SCRIPT = "the script's own"
LAYERS = Option(
    "--layers-dir", "LAYERS_DIR", "folders of layers; default: LAYERS_DIR of the environment", is_path=True
)
_NET = (
    Option("prototxt", "PROTOTXT", "the net", is_path=True),
    Option("--weights", "WEIGHTS", "a .caffemodel", is_path=True),
    Option("--caffe", "CAFFE", "a fork's tree: types that are missing are ported out of it", is_path=True),
    Option("--phase", "PHASE", "TEST or TRAIN"),
    Option("--shapes", "SHAPES", "of inputs without one: 'data=1,3,224,224 label=1'"),
    Option("--stages", "STAGES", "stages, separated by spaces"),
    Option("--ignore", "IGNORE", "fields that do not matter: 'convolution_param.rank'"),
    Option("--replace", "REPLACE", "words of the prototxt to replace: 'OLD=new'"),
    Option("--python-layers", "PYTHON_LAYERS", "run the net's Python layers", is_switch=True),
    Option("--python-path", "PYTHON_PATH", "their folders", is_path=True),
    LAYERS,
)

COMMANDS = {
    "dnn": Command(
        "run an OpenCV 4 script that reads Caffe files, under any OpenCV",
        "script.py [arguments]",
        "Runs the script, of Python 2 or 3, unedited. cv2.dnn gets the names that OpenCV 5 no longer has, such as\n"
        "readNetFromCaffe. It needs OpenCV: pip install opencv-python",
        "cuffi dnn detect_faces.py --image me.jpg",
        "dnn",
        status=_AS_SCRIPT,
    ),
    "caffe": Command(
        "run a pycaffe script or notebook",
        "script.py [arguments]",
        "Runs the script, of Python 2 or 3, or the notebook, unedited. `import caffe` works without Caffe.",
        "cuffi caffe classify.py --cpu",
        "caffe",
        status=_AS_SCRIPT,
    ),
    "net": Command(
        "load a Caffe net, run it once, and print a table of its layers",
        "deploy.prototxt [--weights x.caffemodel] [options]",
        "Prints the layers with their shapes and times, and the Python call that loads the net. With --verify, it\n"
        "compares torch's results with the fork's own code, blob by blob. It needs rich: pip install rich",
        "cuffi net deploy.prototxt --weights x.caffemodel\n"
        "cuffi net train_val.prototxt --caffe /path/to/fork --verify",
        "net",
        options=(*_NET, Option("--verify", "VERIFY", "compare with the fork's code", is_switch=True)),
        writes="CAFFE",
    ),
    "onnx": Command(
        "write a Caffe net as ONNX, and compare every blob",
        "deploy.prototxt --weights x.caffemodel [--output x.onnx] [options]",
        "The certificate compares each blob with what onnxruntime computes. It needs onnx, onnxscript,\n"
        "onnxruntime and rich: pip install 'cuffi-nets[onnx]'",
        "cuffi onnx deploy.prototxt --weights x.caffemodel --output x.onnx",
        "onnx",
        options=(
            *_NET,
            Option("--output", "ONNX", "the file to write; default: beside the net", is_path=True),
        ),
        writes="CAFFE",
    ),
    "train": Command(
        "train a Caffe net by its solver file",
        "solver.prototxt [--weights x.caffemodel] [--resume] [options]",
        "Trains as `caffe train` did, and writes snapshots that Caffe can read. Its options: --weights, --snapshot,\n"
        "--resume, --device, --amp, --workers, --python-layers, --python-path, --directory; --solver and --gpu as\n"
        "`caffe train` takes them.",
        "cuffi train solver.prototxt --weights vgg.caffemodel",
        "train",
        flags=(
            "--weights",
            "--snapshot",
            "--resume",
            "--device",
            "--amp",
            "--workers",
            "--python-layers",
            "--python-path",
            "--directory",
            "--solver",
            "--gpu",
        ),
    ),
    "port": Command(
        "copy layers out of a Caffe fork, unedited, and build them",
        "TYPE [TYPE ...] --caffe /path/to/fork [options]",
        "TYPE is the type in a prototxt, or all. The layers are written to the first folder of --layers-dir, by\n"
        "default ./layers. It needs a C++ compiler.",
        "cuffi port Normalize --caffe /path/to/fork --layers-dir my_layers",
        "port",
        needs="caffe_layers",
        options=(
            Option("type", "TYPE", "types of layers, or all", is_list=True),
            Option("--caffe", "CAFFE", "the fork's tree", is_path=True),
            Option("--name", "NAME", "the folder's name, instead of one made from the type's"),
            Option("--force", "FORCE", "replace the files of a folder that exists", is_switch=True),
            LAYERS,
        ),
        writes="CAFFE",
    ),
    "new": Command(
        "start a layer of your own: kernels, declarations, an operator",
        "NAME [--from foo.cu] [--layers-dir my_layers]",
        "Writes a folder with an example that works, or with the kernels of a file, into --layers-dir, by default\n"
        "./layers.",
        "cuffi new my_pool --layers-dir my_layers",
        "new",
        needs="loading",
        options=(
            Option("name", "LAYER", "the new layer"),
            Option("--from", "FROM", "a Caffe layer's or an extension's .cu", is_path=True),
            LAYERS,
        ),
        writes="LAYER",
    ),
    "ffi": Command(
        "build and run extensions of torch.utils.ffi, of 2017 and 2018",
        "build.py [arguments] | make | --build FOLDER [FOLDER ...]",
        "Runs a script of that time, or its Makefile, unedited. With --build, it builds the extensions of these\n"
        "folders, and prints a table. It needs a C++ compiler.",
        "cuffi ffi build.py\ncuffi ffi --build /path/to/extension",
        "ffi",
        needs="old_torch",
        flags=("--build",),
        status=_AS_SCRIPT,
    ),
    "ext": Command(
        "build and run extensions of torch/extension.h",
        "setup.py build_ext --inplace | script.py [arguments] | pip install ...",
        "Runs a setup.py, or a script that calls torch.utils.cpp_extension, unedited. The extension is compiled with\n"
        "headers of our own, without torch's, so it works with several versions of torch. It needs a C++ compiler.",
        "cuffi ext setup.py build_ext --inplace\ncuffi ext train.py --epochs 3",
        "ext",
        needs="old_torch",
        status=_AS_SCRIPT,
    ),
    "verify": Command(
        "is a Caffe layer's gradient right?",
        "LAYER [--param P] [--shapes S] [--layers-dir my_layers]",
        "Compares the layer's CPU code, its kernels and finite differences with each other. It needs a C++ compiler.",
        "cuffi verify normalize --shapes '2,3,6,5'",
        "verify",
        needs="caffe_layers",
        options=(
            Option("layer", "LAYER", "the layer's folder"),
            Option("--param", "PARAM", "its parameters as prototxt: 'norm_param { eps: 0.1 }'"),
            Option("--shapes", "SHAPES", "one for each bottom: '2,3,6,5 2,1,1,1:label'"),
            Option("--type", "TYPE", "if the folder has several types"),
            LAYERS,
        ),
    ),
    "judge": Command(
        "check a CUDA file: races, wrong addresses, what it needs",
        "file.cu [options]",
        "Builds the file's kernels for the processor, and checks them. It needs a C++ compiler.",
        "cuffi judge kernels.cu",
        "judge",
        needs="judge",
        flags=(
            "--reference",
            "--json",
            "--annotate",
            "--promises",
            "--resident",
            "--jobs",
            "--lines",
            "--sarif",
            "--seconds",
            "--megabytes",
            "--blocks",
            "--prove",
        ),
    ),
    "explain": Command(
        "say how each kernel of a CUDA file runs on the processor, and why",
        "file.cu [--text]",
        "Prints a line for each kernel: is it a loop, phases of its blocks, loops over warps, or fibres? If it is no\n"
        "loop, the next lines name what stands in the way, with file and line. It compiles nothing.\n"
        "--text prints the lines that each pass of the rewriter changes, too.",
        "cuffi explain kernels.cu",
        "explain",
        needs="edge",
        flags=("--text",),
    ),
    "run": Command(
        "run a CUDA program on the processor or the GPU",
        "program.cu [arguments]",
        "Builds the program, and runs it. It needs a C++ compiler.",
        "cuffi run vector_add.cu",
        "run",
        needs="run",
        status="the program's own",
    ),
    "cache": Command(
        "show or empty the cache of what was built at run time",
        "[--clear]",
        "Prints the folder (CUFFI_CACHE, or ~/.cache/cuffi), what is in it, and how large it is. With --clear it\n"
        "removes all that no build is using now. What is loaded goes on; the next load builds again.",
        "cuffi cache\ncuffi cache --clear",
        "cache",
        needs="loading",
        flags=("--clear",),
    ),
    "info": Command(
        "print the versions that a bug report needs",
        "",
        "Prints the folder of the toolkit's Makefile, if it is here, and the versions of Python, torch and compilers.",
        "cuffi info",
        "info",
    ),
    "folder": Command(
        "print the folder of the toolkit's Makefile, alone",
        "",
        "For make, in a program of yours or a shell.",
        'make -C "$(cuffi folder)" LAYERS_DIR=$PWD/my_layers',
        "folder",
        needs="edge",
    ),
    "completion": Command(
        "print what makes a shell complete these commands",
        "bash | zsh | fish",
        "Prints a few lines for the shell's start file: commands, their options, and files.",
        'eval "$(cuffi completion bash)"            # in ~/.bashrc\n'
        'eval "$(cuffi completion zsh)"             # in ~/.zshrc, after compinit\n'
        "cuffi completion fish | source             # in ~/.config/fish/config.fish",
        "completion",
        flags=("bash", "zsh", "fish"),
    ),
}
