# SPDX-License-Identifier: Apache-2.0
"""Edits a file of decisions.

Usage: edit_decisions.py IN OUT PATH=JSON... A path is keys and positions with dots
between them, from the first function on; `ops.exp` is the first operation of that
name. An empty JSON takes the entry out.
"""

import json
import sys


def find(value, key):
    if isinstance(value, dict):
        return key
    if key.isdigit():
        return int(key)
    return next(i for i, op in enumerate(value) if op["op"] == f"spyre_graph.{key}")


def main() -> None:
    source, target, *edits = sys.argv[1:]
    with open(source) as file:
        decisions = json.load(file)
    for edit in edits:
        path, text = edit.split("=", 1)
        *keys, last = path.split(".")
        value = decisions["functions"][0]
        for key in keys:
            value = value[find(value, key)]
        if text:
            value[find(value, last)] = json.loads(text)
        else:
            del value[find(value, last)]
    with open(target, "w") as file:
        json.dump(decisions, file)


if __name__ == "__main__":
    main()
