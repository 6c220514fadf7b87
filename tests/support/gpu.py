"""Which tests need a GPU. This module imports nothing of the toolkit."""


def needs_gpu(item) -> bool:
    """Does it need a GPU: by its mark, the fixture `gpu`, a point on the GPU, or its parameters?"""
    parameters = getattr(item, "callspec", None)
    values = parameters.params if parameters else {}
    return (
        item.get_closest_marker("gpu") is not None
        or "gpu" in item.fixturenames
        or any(values.get(name) == "cuda" for name in ("device", "place", "at"))
        or any(getattr(value, "device", None) == "cuda" for value in values.values())
    )
