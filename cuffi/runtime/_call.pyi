"""The extension that makes calls (src/edge/call.cpp), for type checkers: its names, without their types."""

from typing import Any

def __getattr__(name: str) -> Any: ...
