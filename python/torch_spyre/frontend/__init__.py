# SPDX-License-Identifier: Apache-2.0
"""From PyTorch's graphs and calls to compiled programs."""

import importlib


def __getattr__(name: str) -> object:
    # What it counts is for users, who may not have called an operator yet.
    if name == "eager":
        return importlib.import_module(f"{__name__}.eager")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
