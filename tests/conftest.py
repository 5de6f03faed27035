"""Settings of all tests."""

from hypothesis import settings

# The same examples at every run; `pytest --hypothesis-profile=random` draws others.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile("repeatable")
