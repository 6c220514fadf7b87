"""rich's console for names of others: their control characters are printed as escapes."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleRenderable, RenderHook
from rich.segment import Segment

from .shown import without_escapes


def console(**options) -> Console:
    """A console that interprets no markup in names. options: those of rich's Console."""
    options.setdefault("markup", False), options.setdefault("highlight", False)
    made = Console(**options)
    made.push_render_hook(_Safe())
    return made


class _Safe(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Cleaned(each) for each in renderables]


class _Cleaned:
    def __init__(self, renderable: ConsoleRenderable):
        self.renderable = renderable

    def __rich_console__(self, console: Console, options) -> Iterator[Segment]:
        for text, style, control in console.render(self.renderable, options):
            yield Segment(text if control else without_escapes(text), style, control)
