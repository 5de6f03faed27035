"""The one error type that users see."""

INTERRUPTED = "interrupted"  # the last word of a job that Ctrl-C ended


class UserError(Exception):
    """A mistake in an input: the message says what is wrong, where, and what to do.

    Scripts and the command line print the message alone, without a traceback.
    """
