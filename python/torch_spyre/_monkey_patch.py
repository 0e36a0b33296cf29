# SPDX-License-Identifier: Apache-2.0
"""What is changed in torch itself, by the name that users of torch-spyre import."""

from __future__ import annotations

from torch_spyre.device import patches


def _patch_tensor_for_spyre() -> None:
    """Put the changes in place; ``import torch`` has done so, and twice is once."""
    patches.install()
