"""Prepare the build of a Caffe layer.

    python -m cuffi.caffe_layers.make.prepare headers layers/foo build/foo   forwarding headers, the registration
    python -m cuffi.caffe_layers.make.prepare init layers/foo                   an __init__.py for a folder without one

A fork includes its files by their paths there, such as "caffe/layers/foo_layer.hpp". If such an include names a file of
the folder (layer_folder.py), build/foo/include gets a header of that name that includes the file.

For libraries that the toolkit lacks, such as databases, there is a header with a few names, because most layers with
such an include do not use it. Includes of thrust find the toolkit's thrust for the processor. In a layer that uses
thrust on the device, nvcc finds its own thrust, on the call's stream.

Some layers, such as stock's Convolution, are not registered in their own file. build/foo/registration.cpp registers
each class of the folder that has a type() and is not registered.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import NamedTuple

from tools.cuda.source import Source
from tools.files import read, write
from tools.make.folders import SOURCES
from tools.refused import Refused

from .cpu_code import CUDA_BUILD, PASSES, missing, without_kernels
from .includes import CUDA_NAMES, NOTHING, spelled_here
from .layer_folder import LayerFolder
from .registers import instantiated, registrations, types_said

WING = Path(__file__).resolve().parents[1] / "include"
TOOLKIT = [WING, WING / "legacy"]
BANNER = "// Made by cuffi/caffe_layers/make/prepare.py; do not edit.\n"
# The first lines that older versions wrote.
BANNERS = (BANNER, "// Made by tools/make/build.py;")

# The toolkit's headers that have only names.
MESSAGES = "caffe/proto/caffe.pb.h"
READERS, DATA_LAYERS = '#include "caffe/readers.hpp"\n', '#include "caffe/data_layers.hpp"\n'
# Headers that CUDA's own include by these names, too. Not every CUDA has each.
CUDA = "#include <cuda_runtime.h>\n"
CUDAS_OWN = f"""\
#if defined(__CUDACC__) && __has_include_next(<%s>)
#include_next <%s>
#else
{CUDA}#endif
"""
# A layer that uses thrust on the device has one of these names.
DEVICE_MEMORY = {"device_vector", "device_ptr", "device_pointer_cast", "device_malloc"}
DEVICE_POLICY = {"device", "cuda", "system"}
THRUST = '#include "caffe_thrust/thrust.h"\n'
THRUST_ON_DEVICE = f"""\
#ifdef __CUDACC__
#include "caffe/util/thrust_stream.hpp"
#include_next <%s>
#else
{THRUST}#endif
"""

# For headers of boost, which may be missing. Editors insert such includes into code that does not use them.
SYSTEMS = "#if __has_include_next(<%s>)\n#include_next <%s>\n#endif\n"

# An abstract base class, such as Recurrent, may have a type(), too.
REGISTER = """\
template <template <typename> class LayerClass, typename Dtype>
void RegisterFor(const char* type) {
  if constexpr (!std::is_abstract<LayerClass<Dtype> >::value) {
    LayerRegistry<Dtype>::AddCreator(type, [](const LayerParameter& parameter) {
      return shared_ptr<Layer<Dtype> >(new LayerClass<Dtype>(parameter));
    });
  }
}
template <template <typename> class LayerClass>
bool Register(const char* type) {
  RegisterFor<LayerClass, float>(type);
  RegisterFor<LayerClass, double>(type);
  return true;
}"""

INIT = '''"""{name}, a Caffe layer: see ORIGIN."""
from cuffi import caffe_layer

{name} = caffe_layer(__name__, "{name}")
'''


class Types(NamedTuple):
    """The layer types of a folder."""

    registered: list[str]
    unregistered: dict[str, tuple[str, str]]  # type -> (class, file that defines it)
    of_class: dict[str, str]  # class -> the text that its type() returns

    def all(self) -> list[str]:
        return [*self.registered, *self.unregistered]


def sources_of(folder: LayerFolder) -> dict[str, Source]:
    paths = {name: f"{folder.path}/{name}" for name in folder.files}
    return {name: Source(read(path), path, CUDA_BUILD) for name, path in paths.items()}


def types_of(sources: dict[str, Source]) -> Types:
    registered, classes, instantiated_classes = [], {}, set()
    for name, source in sources.items():
        classes.update({c: (t, name) for c, t in types_said(source).items()})
        if name.endswith(SOURCES):
            registered += [registration.type for registration in registrations(source)]
            instantiated_classes |= instantiated(source)
    candidates = {t: (c, name) for c, (t, name) in classes.items() if c in instantiated_classes}
    unregistered = {t: place for t, place in candidates.items() if t not in registered}
    if not registered and not unregistered:  # a class without type(), which its fork registers elsewhere
        named = ((c, name) for name, source in sources.items() for c in source.classes)
        unregistered = {c.removesuffix("Layer"): (c, name) for c, name in named if c in instantiated_classes}
    return Types(list(dict.fromkeys(registered)), unregistered, {c: t for c, (t, _) in classes.items()})


def forwards(folder: LayerFolder, sources: dict[str, Source]) -> dict[str, str]:
    """{include: text of a header of this name}, for the includes that no include path finds."""
    texts, on_device = {}, any(map(uses_thrust_on_device, sources.values()))
    for spelled in dict.fromkeys(i for source in sources.values() for i in source.includes(angles=True)):
        include = spelled_here(spelled)
        relative = folder.find(include)
        is_ours = any((d / include).exists() for d in TOOLKIT)
        if relative is None and not is_ours and (name := CUDA_NAMES.match(include)):
            texts[spelled] = CUDA if name["library"] else CUDAS_OWN % (include, include)
        elif relative is None and include.startswith("thrust/"):
            texts[spelled] = THRUST_ON_DEVICE % include if on_device else THRUST
        elif relative is None and not is_ours and NOTHING.match(include):
            texts[spelled] = DATA_LAYERS if include.startswith("caffe/layers/") else READERS
        elif relative is None and not is_ours and include.startswith("boost/"):
            texts[spelled] = SYSTEMS % (include, include)
        # The fork's Makefile puts the messages into ../build/src/caffe/...
        elif include.endswith(f"/{MESSAGES}"):
            texts[spelled] = f'#include "{MESSAGES}"\n'
        elif "/" in include and relative not in (None, spelled):
            texts[spelled] = f"#include <{relative}>\n"
        elif include != spelled:
            texts[spelled] = f"#include <{include}>\n"
    # The toolkit's headers include these names, too: a fork's common_layers.hpp is a part of vision_layers.hpp.
    for header in (h.relative_to(TOOLKIT[0]).as_posix() for h in TOOLKIT[0].glob("caffe/**/*.hpp")):
        if (relative := folder.find(header)) not in (None, header):
            texts[header] = f"#include <{relative}>\n"
    return texts


def uses_thrust_on_device(source: Source) -> bool:
    texts = [token.text for token in source.lexed.tokens]
    words = {texts[i + 2] for i in range(len(texts) - 2) if texts[i : i + 2] == ["thrust", "::"]}
    if any(texts[i : i + 3] == ["using", "namespace", "thrust"] for i in range(len(texts))):
        words |= set(texts)
    return bool(words & (DEVICE_MEMORY | DEVICE_POLICY))


def registration(sources: dict[str, Source], overwriting: list[str]) -> str:
    """The C++ text that registers the unregistered types, and lists facts about functions.

    Args:
        overwriting: functions that write each element of their results.
    """
    types, missing_functions, kernelless = types_of(sources), missing(sources), without_kernels(sources)
    if not types.unregistered and not missing_functions and not kernelless and not overwriting:
        return BANNER + "// Each layer of the folder registers itself.\n"
    headers = [name for name, _ in kernelless.values()] + [name for _, name in types.unregistered.values()]
    lines = ["#include <type_traits>", '#include "caffe/layer_factory.hpp"']
    lines += [f"#include <{name}>" for name in dict.fromkeys(headers)]
    lines += ["namespace caffe {", *([REGISTER] if types.unregistered else [])]
    for type_name, (class_name, _) in types.unregistered.items():
        lines.append(f'static const bool {class_name}_registered = Register<{class_name}>("{type_name}");')

    def key(layer: str, function: str) -> str:
        return f'"{types.of_class.get(layer, layer.removesuffix("Layer"))}.{function}"'

    for layer, function, why in missing_functions:
        lines.append(
            f'static const bool {layer}_{function} = MissingCpuCode().emplace({key(layer, function)}, "{why}").second;'
        )
    for i, function in enumerate(overwriting):
        lines.append(
            f'static const bool overwrites_{i} = OverwritingFunctions().insert("{function}").second;'
        )
    if kernelless:
        lines.append("#undef NO_GPU")
        lines.append('#define NO_GPU LOG(FATAL) << "Not Implemented Yet: the fork has no GPU code of it"')
    for layer, (_, functions) in kernelless.items():
        for function in functions:
            kind = function.upper()
            lines += [f"STUB_GPU_{kind}({layer}, {function})", f"INSTANTIATE_LAYER_GPU_{kind}({layer});"]
    return BANNER + "\n".join([*lines, "}  // namespace caffe", ""])


def make_headers(folder: LayerFolder, build: Path) -> None:
    sources = sources_of(folder)
    texts = {}
    for include, text in forwards(folder, sources).items():
        path = build / "include" / include
        # An include with ../ may lead out of the build folder.
        if path.resolve().is_relative_to(build.resolve()):
            texts[path] = text
    for old in (build / "include").rglob("*"):
        if old.is_file() and old not in texts and read(str(old)).startswith(BANNERS):
            old.unlink()
    for path, text in texts.items():
        write(str(path), BANNER + text, if_changed=True)
    # This list decides which header an include finds, so the layer's objects depend on it.
    listed = [str(path.relative_to(build)) for path in sorted(texts)]
    listed += [name for name in ("additions.hpp", "additions_blob.hpp") if name in folder.files]
    write(str(build / "forwarded"), "".join(f"{name}\n" for name in listed), if_changed=True)
    text = registration(sources, overwriting(Path(folder.path), types_of(sources)))
    write(str(build / "registration.cpp"), text, if_changed=True)


def overwriting(folder: Path, types: Types) -> list[str]:
    """The functions in the folder's file `overwrites`, one per line, such as Forward_gpu or Normalize.Forward_gpu.

    Raises Refused if a line is not a function of one of the folder's layers.
    """
    path = folder / "overwrites"
    words = read(str(path)).split() if path.exists() else []
    known = {f"{of}{function}" for of in ("", *(f"{t}." for t in types.all())) for function in PASSES}
    if wrong := [word for word in words if word not in known]:
        raise Refused(f"{path}: {wrong[0]}: expected lines such as Forward_gpu, of: {', '.join(PASSES)}")
    pairs = [([word] if "." in word else [f"{t}.{word}" for t in types.all()]) for word in words]
    return list(dict.fromkeys(itertools.chain.from_iterable(pairs)))


def init_text(types: list[str]) -> str:
    if len(types) == 1:
        return INIT.format(name=types[0])
    lines = [f'"""{", ".join(types)}: Caffe layers, see ORIGIN."""', "from cuffi import caffe_layer", ""]
    return "\n".join([*lines, *(f'{t} = caffe_layer(__name__, "{t}")' for t in types), ""])


def make_init(folder: LayerFolder) -> int:
    types = types_of(sources_of(folder)).all()
    if not types:
        print(f"{folder.path}: error: no source here registers a layer (REGISTER_LAYER_CLASS)")
        return 1
    path = Path(folder.path) / "__init__.py"
    write(path, init_text(types).encode())
    print(f"  wrote {path}: {', '.join(types)}")
    return 0


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    layer = LayerFolder(paths[0])
    if command == "init":
        sys.exit(make_init(layer))
    try:
        make_headers(layer, Path(os.path.normpath(paths[1])))
    except Refused as error:
        sys.exit(f"error: {error}")
