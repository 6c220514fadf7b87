"""What the toolkit offers a layer: headers by their names, and all the words in them."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from caffe_folder import NOTHING
from cuda_source import Source, read

ROOT = Path(__file__).resolve().parent.parent.parent
INCLUDE = [ROOT / "include", ROOT / "include" / "legacy", ROOT / "include" / "host"]


class Toolkit:
    def header(self, include: str) -> Path | None:
        """The toolkit's header of that name; caffe.pb.h is made from the fork's messages."""
        if include.endswith("caffe/proto/caffe.pb.h") or include == "caffe.pb.h":
            return Path(include)
        found = next((folder / include for folder in INCLUDE if (folder / include).is_file()), None)
        return found or (Path(include) if NOTHING.match(include) else None)

    @cached_property
    def headers(self) -> dict[str, Source]:
        """Our caffe/ headers, by the name an include says."""
        found = {}
        for path in sorted((ROOT / "include").rglob("*")):
            if path.is_file() and path.suffix in (".hpp", ".h", ".cuh") and "host" not in path.parts:
                name = path.relative_to(ROOT / "include").as_posix().removeprefix("legacy/")
                found[name] = Source(read(str(path)), str(path))
        return found

    @cached_property
    def classes(self) -> set[str]:
        return {name for source in self.headers.values() for name in source.classes}

    @cached_property
    def words(self) -> set[str]:
        """Every name that our headers mention: what one of them calls, a layer may call as well."""
        words = set()
        for source in self.headers.values():
            words.update(t.text for t in source.lexed.tokens if t.kind == "name")
            for macro in source.macros:
                words.update(t.text for t in macro.tokens if t.kind == "name")
        return words

    @cached_property
    def thrust(self) -> set[str]:
        """The names of thrust that there are."""
        sources = [source for name, source in self.headers.items() if name.startswith("thrust/")]
        return {t.text for source in sources for t in source.lexed.tokens}

    @cached_property
    def base_names(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self.headers:
            found.setdefault(Path(name).name, []).append(name)
        return found
