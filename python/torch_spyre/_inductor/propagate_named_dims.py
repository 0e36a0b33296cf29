# SPDX-License-Identifier: Apache-2.0
"""Named dimensions, by the names that users of torch-spyre import."""

from __future__ import annotations

from torch_spyre.frontend.hints import declare_tensor_dim, name_tensor_dims, reset

__all__ = ["declare_tensor_dim", "name_tensor_dims", "reset"]
