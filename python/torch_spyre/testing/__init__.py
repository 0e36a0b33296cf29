# SPDX-License-Identifier: Apache-2.0
"""Test frameworks of the field, and reports of what a model needs of the device.

The commands ``spyre-model-ops``, ``spyre-upstream-tests`` and ``spyre-enablement``;
``record`` writes the descriptors of a model's operators from Python. They need what the
extra ``tests`` of the package names: ``pip install expecttest pytest pyyaml``.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    # Descriptors need PyYAML, which the package alone does not install.
    if name == "record":
        from torch_spyre.testing.recorder import record

        return record
    if name == "InputError":
        from torch_spyre.testing.located import InputError

        return InputError
    raise AttributeError(f"module 'torch_spyre.testing' has no attribute {name!r}")


__all__ = ["InputError", "record"]
