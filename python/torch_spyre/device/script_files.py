# SPDX-License-Identifier: Apache-2.0
"""Files of TorchScript, whose modules go to the device as they are loaded.

``torch.jit.trace`` keeps each floating-point number of a module as a float64 tensor
without dimensions. PyTorch's loader moves all tensors of a file, which the device has
no dtype for. Such numbers stay on the host: operators take them there.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from torch_spyre import _C
from torch_spyre.device.devices import UNSUPPORTED_DTYPES

_load = torch.jit.load


@functools.wraps(_load)
def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
    """torch.jit.load, which takes files with numbers of float64 to the device."""
    start = f.tell() if hasattr(f, "seek") else None
    try:
        return _load(f, map_location, *args, **kwargs)
    except _C.UnsupportedDtypeError:
        if map_location is None:
            # The file itself says where its tensors go.
            raise
        if start is not None:
            f.seek(start)
    module = _load(f, "cpu", *args, **kwargs)
    device = torch.device(map_location)
    for part in module.modules():
        _move_constants(part, device)
    return module.to(device)


def _move_constants(module: torch.jit.ScriptModule, device: torch.device) -> None:
    """Moves the tensors that are constants of a module's own methods."""
    for name in module._c._method_names():
        graph = module._c._get_method(name).graph
        for node in graph.findAllNodes("prim::Constant"):
            if not node.hasAttribute("value") or node.kindOf("value") != "t":
                continue
            value = node.t("value")
            if value.dim() > 0 or value.dtype not in UNSUPPORTED_DTYPES:
                node.t_("value", value.to(device))


def install() -> None:
    """Puts the function where PyTorch has its own. Idempotent."""
    torch.jit.load = torch.jit._serialization.load = load
