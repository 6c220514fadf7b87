"""The site: the pages of the tree and a reference from the docstrings, as HTML."""

# Methods between a file and the net, for the net's own modules. The reference leaves them out.
INNER = {
    "CaffeNet.make_schedule",
    "CaffeNet.notes_on",
    "CaffeNet.values_of",
}
