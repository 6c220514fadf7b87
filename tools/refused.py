class Refused(Exception):
    """A command refuses. The text is the message: the reason, and what to do instead."""
