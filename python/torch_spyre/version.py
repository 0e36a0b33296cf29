# SPDX-License-Identifier: Apache-2.0
"""The version, where users of torch-spyre look for it."""

from torch_spyre import __version__

__all__ = ["__version__"]
