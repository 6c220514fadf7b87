class Refused(Exception):
    """A command does not do what it was asked. The text is the message: why, and what to do instead."""
