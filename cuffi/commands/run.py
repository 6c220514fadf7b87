"""Start each command. Each function gets the command's name and its arguments, and returns the exit status."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from ..command_line import Parser
from .table import COMMANDS, LAYERS, Option

_PACKAGE = __name__.partition(".")[0]


def dnn(name: str, arguments: list[str], by_make: bool) -> int:
    return _module("nets.dnn.script").run(arguments, f"cuffi {name}")


def caffe(name: str, arguments: list[str], by_make: bool) -> int:
    return _module("nets.pycaffe.run_script").main(f"cuffi {name}", arguments)


def train(name: str, arguments: list[str], by_make: bool) -> int:
    return _module("train").main(arguments, f"cuffi {name}")


def judge(name: str, arguments: list[str], by_make: bool) -> int:
    return _module(name).main(arguments)


run = judge


def cache(name: str, arguments: list[str], by_make: bool) -> int:
    return _module("commands.cache").main(arguments)


def explain(name: str, arguments: list[str], by_make: bool) -> int:
    return _module("commands.explain").main(arguments)


def completion(name: str, arguments: list[str], by_make: bool) -> int:
    return _module("commands.completion").main(arguments)


def info(name: str, arguments: list[str], by_make: bool) -> int:
    _takes_none(name, arguments)
    return _module("commands.info").main()


def folder(name: str, arguments: list[str], by_make: bool) -> int:
    _takes_none(name, arguments)
    print(_root())
    return 0


def _takes_none(name: str, arguments: list[str]) -> None:
    """SystemExit if there are arguments."""
    Parser(prog=f"cuffi {name}").parse_args(arguments)


def net(name: str, arguments: list[str], by_make: bool) -> int:
    settings = _settings(name, arguments, by_make)
    target = {"onnx": "onnx"}.get(name, "verify" if settings.get("VERIFY") else "show")
    if _root():
        return _tool(name, settings, by_make, f"{_PACKAGE}.commands.net", target)
    os.environ.update(settings | {"CALLED_AS": f"cuffi {name}"})
    sys.argv[1:] = [target]
    return _module("commands.net.__main__").main()


onnx = net


def port(name: str, arguments: list[str], by_make: bool) -> int:
    settings = _settings(name, arguments, by_make)
    words = [f"--caffe={settings.get('CAFFE', '')}", f"--name={settings.get('NAME', '')}"]
    words += ["--force"] * bool(settings.get("FORCE"))
    words += ["--layers-dir", settings.get("LAYERS_DIR", "layers"), "--", settings.get("TYPE", "")]
    return _tool(name, settings, by_make, f"{_PACKAGE}.caffe_layers.port", *words)


def new(name: str, arguments: list[str], by_make: bool) -> int:
    settings = _settings(name, arguments, by_make)
    words = ["--layers-dir", settings.get("LAYERS_DIR", "layers"), f"--from={settings.get('FROM', '')}"]
    return _tool(name, settings, by_make, "tools.new_layer", *words, "--", settings.get("LAYER", ""))


def verify(name: str, arguments: list[str], by_make: bool) -> int:
    return _tool(name, _settings(name, arguments, by_make), by_make, "tools.make.build", "verify")


def ffi(name: str, arguments: list[str], by_make: bool) -> int:
    if by_make or arguments[:1] == ["--build"]:
        folders = {} if by_make else {"EXT": " ".join(map(os.path.abspath, arguments[1:]))}
        return _tool(f"{name} --build", folders, by_make, f"{_PACKAGE}.old_torch.make")
    return ext(name, arguments, by_make)


def ext(name: str, arguments: list[str], by_make: bool) -> int:
    if not arguments or (arguments[0].startswith("-") and arguments[0] != "-m"):
        what = f"no option {arguments[0]}" if arguments else "no script is given"
        first = COMMANDS[name].example.splitlines()[0]
        print(
            f"cuffi {name}: {what}: name a script: {first}. `cuffi {name} --help` lists all forms",
            file=sys.stderr,
        )
        return 2
    os.execv(sys.executable, [sys.executable, "-m", f"{_PACKAGE}.{name}", *arguments])


def _module(name: str):
    return importlib.import_module(f"{_PACKAGE}.{name}")


def _root() -> Path | None:
    """The folder of the toolkit's Makefile, where its tools run; None if it is not installed."""
    if not _module("installed").has_kernels():
        return None
    return _module("edge").root()


def _settings(name: str, arguments: list[str], by_make: bool) -> dict[str, str]:
    """The arguments by make's names. Paths that are relative to the user's folder become absolute."""
    command = COMMANDS[name]
    if by_make:  # the names of all targets are in the environment, and paths are relative to the toolkit
        settings = {o.setting: os.environ[o.setting] for o in command.options if os.environ.get(o.setting)}
        return settings | ({"VERIFY": "1"} if arguments == ["verify"] else {})
    parser = Parser(prog=f"cuffi {name}", usage=f"cuffi {name} {command.usage}")
    for option in command.options:
        _add(parser, option)
    given = vars(parser.parse_args(arguments))
    # An environment may have a NAME or a TYPE with another meaning.
    settings = {o.setting: "" for each in COMMANDS.values() for o in each.options if o is not LAYERS}
    for option in command.options:
        value = given[option.setting]
        if value in (None, False, []):
            continue
        text = "1" if value is True else " ".join(value) if isinstance(value, list) else value
        settings[option.setting] = _absolute(text) if option.is_path else text
    places = os.environ.get("LAYERS_DIR") or ("layers" if settings.get(command.writes) else "")
    if not settings.get("LAYERS_DIR") and places and _root():
        settings["LAYERS_DIR"] = _absolute(places)
    return settings


def _add(parser: Parser, option: Option) -> None:
    if not option.flag.startswith("-"):
        several = "+" if option.is_list else None
        parser.add_argument(option.setting, metavar=option.flag, help=option.help, nargs=several)
    elif option.is_switch:
        parser.add_argument(option.flag, dest=option.setting, action="store_true", help=option.help)
    else:
        parser.add_argument(option.flag, dest=option.setting, help=option.help)


def _absolute(paths: str) -> str:
    """Each path of a list, absolute. On Windows a drive has a colon, and the separator is another one."""
    return os.pathsep.join(os.path.abspath(os.path.expanduser(p)) for p in paths.split(os.pathsep) if p)


def _tool(name: str, settings: dict[str, str], by_make: bool, module: str, *words: str) -> int:
    """A program of the toolkit takes this process's place. It runs in the toolkit's folder, as under make.

    CALLED_AS is the command that the user typed, for its messages, where make did not call it.
    """
    environment = os.environ | settings | ({} if by_make else {"CALLED_AS": f"cuffi {name}"})
    environment.pop("PYTHONSAFEPATH", None)
    environment.setdefault("CALLED_IN", os.getcwd())
    sys.stdout.flush()
    os.chdir(_module("edge").root())
    os.execve(sys.executable, [sys.executable, "-m", module, *words], environment)
