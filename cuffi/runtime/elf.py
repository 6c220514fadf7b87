"""Is a library's file complete? The loader would end Python without a message at the first missing page."""

import struct
from pathlib import Path

# In a 64-bit ELF file's header: the tables of segments and of sections (offset, size and number of their entries).
_TABLES = struct.Struct("<32xQQ6xHHHH2x")
# In an entry of the table of segments: a segment's offset in the file, and its size there.
_SEGMENT = struct.Struct("<8xQ16xQ16x")


def why_broken(path: Path) -> str:
    """Why the loader must not open the file: "is empty", "is truncated", "is not a library"; "" if it is whole."""
    size = path.stat().st_size
    if not size:
        return "is empty"
    with path.open("rb") as file:
        header = file.read(_TABLES.size)
        if not header.startswith(b"\x7fELF\x02\x01"):
            return "is not a library"
        if len(header) < _TABLES.size:
            return "is truncated"
        segments, sections, segment_bytes, segment_count, section_bytes, section_count = _TABLES.unpack(
            header
        )
        file.seek(segments)
        table = file.read(segment_bytes * segment_count)
    # The linker writes the table of sections last.
    ends = [sections + section_bytes * section_count, segments + segment_bytes * segment_count]
    whole = range(0, len(table) - _SEGMENT.size + 1, segment_bytes or _SEGMENT.size)
    ends += [sum(_SEGMENT.unpack_from(table, at)) for at in whole]
    return "is truncated" if max(ends) > size else ""
