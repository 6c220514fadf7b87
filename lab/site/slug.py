"""The anchor of a heading, as GitHub makes it. Links between the pages use these."""

import re


def slug(heading: str, separator: str = "-") -> str:
    """Lower case, words joined by "-", no punctuation."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", separator)
