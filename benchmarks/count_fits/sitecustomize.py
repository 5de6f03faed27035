"""Let every Python process that has this folder on its path note the trees that LightGBM grows.

A line of json a process, appended to the file that the environment variable FITS names: trees by
documents, features and leaves.
"""

import atexit
import json
import os
import sys
from collections import Counter
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from pathlib import Path

trees: Counter[str] = Counter()


def count(basic):
    update = basic.Booster.update

    def counted(booster, *arguments, **keys):
        data = booster.train_set
        trees[f"{data.num_data()} {data.num_feature()} {booster.params['num_leaves']}"] += 1
        return update(booster, *arguments, **keys)

    basic.Booster.update = counted


class WhenImported(MetaPathFinder):
    """Loads lightgbm.basic as ever, then has its trees counted."""

    def find_spec(self, name, path, target=None):
        if name != "lightgbm.basic":
            return None
        spec = PathFinder.find_spec(name, path)
        load = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (load(module), count(module))
        return spec


@atexit.register
def write():
    if trees:
        with Path(os.environ["FITS"]).open("a") as file:
            print(json.dumps(trees), file=file)


sys.meta_path.insert(0, WhenImported())
