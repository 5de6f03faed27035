"""The commands of ``python -m ultrbench``: a module each, from arguments to a stage function."""
