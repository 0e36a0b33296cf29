# SPDX-License-Identifier: Apache-2.0
"""Errors that several packages raise."""

from __future__ import annotations


class Unsupported(RuntimeError):
    """What the backend cannot do."""

    def __init__(self, thing: object) -> None:
        super().__init__(f"Spyre backend does not support: {thing}")


class ExtensionError(RuntimeError):
    """Something is wrong with what a user has added (``torch_spyre.extend``)."""


class ConversionWarning(UserWarning):
    """A tensor of the device is converted to another dtype there.

    Torch-spyre goes through the CPU then, and warns. Nothing is wrong with it here, so
    that the warning is ignored unless a filter asks for it.
    """


__all__ = ["ConversionWarning", "ExtensionError", "Unsupported"]
