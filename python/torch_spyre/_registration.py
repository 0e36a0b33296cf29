# SPDX-License-Identifier: Apache-2.0
"""What ``import torch`` does to make ``spyre`` a device of PyTorch."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

import torch

from torch_spyre import _C, device, logging_config
from torch_spyre.decompositions import fused, recurrent_layers, results
from torch_spyre.device import patches
from torch_spyre.device.streams import Stream
from torch_spyre.frontend import dynamo
from torch_spyre.ops import host_kernels, library


def _untraced(function: Any) -> Any:
    """A function that _C calls, hidden from Dynamo if there is one.

    Dynamo follows an eager call of a compiled function's remainder into it.
    """
    # Another thread may be importing it.
    disable = getattr(sys.modules.get("torch._dynamo"), "disable", None)
    return function if disable is None else disable(function)


def _is_candidate(qualified: str, overload: str) -> bool:
    # Not needed by `import torch`, and slow to import.
    from torch_spyre.frontend import eager

    return _untraced(eager.is_candidate)(qualified, overload)


def _compile_call(*call: Any) -> Any:
    from torch_spyre.frontend import eager

    return _untraced(eager.compile_call)(*call)


def _compile_sized(*call: Any) -> Any:
    from torch_spyre.frontend import eager

    return _untraced(eager.compile_sized)(*call)


def _exchange_stream(stream: torch.Stream) -> torch.Stream:
    """Makes a stream this thread's current one; returns the one before."""
    previous = device.current_stream(torch.Stream.device.__get__(stream))
    device.set_stream(stream)
    return previous


def _copy_tensor(
    source: torch.Tensor, destination: torch.Tensor, non_blocking: bool = False
) -> torch.Tensor:
    """Copies a tensor into another one, between any two devices; returns that."""
    return destination.copy_(source, non_blocking=non_blocking)


def _to_with_layout(tensor: torch.Tensor, layout: _C.SpyreTensorLayout) -> torch.Tensor:
    """The tensor on its card, or on the current one, stored in a layout."""
    device = tensor.device if tensor.device.type == "spyre" else "spyre"
    return tensor.to(device, device_layout=layout)


def _get_stream_from_pool(device: Any = None, priority: int = 0) -> torch.Stream:
    """A stream of a card's pool; priority 0 is low, any other high."""
    return Stream(device, priority)


def _complete_bindings() -> None:
    """The names of torch_spyre._C that need Python classes."""
    _C.get_stream_from_pool = _get_stream_from_pool
    _C.current_stream = device.current_stream
    _C.default_stream = device.default_stream
    _C.set_current_stream = _exchange_stream
    _C.copy_tensor = _copy_tensor
    _C.to_with_layout = _to_with_layout
    _C._SpyreStreamBase = Stream
    _C.createSpyreCCLBackend = _create_collectives


def _create_collectives(*arguments: Any) -> Any:
    """A process group of ``spyreccl``, from what torch.distributed gives a backend."""
    from torch_spyre.distributed import SpyreCCL

    return SpyreCCL(*arguments)


def _register_collectives() -> None:
    if not torch.distributed.is_available():
        return
    backends = torch.distributed.Backend
    if "spyreccl" not in backends.backend_list:
        backends.register_backend("spyreccl", _create_collectives, devices=["spyre"])


#: Of the card's own libraries, which print a lot otherwise.
_QUIET = {
    "TORCH_SENDNN_LOG": "CRITICAL",
    "DT_DEEPRT_VERBOSE": "-1",
    "DTLOG_LEVEL": "error",
}


def _quiet_libraries() -> None:
    """Programs that use the card's own libraries rely on this, as of torch-spyre."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)


def _finish(process: int) -> None:
    """Wait for what must not outlive the interpreter."""
    # PyTorch's threads stay with the process that a copy was forked off.
    if os.getpid() == process:
        _C._await_backward_threads()
    device.synchronize_all()


def register() -> None:
    """Name the device, give tensors and modules their methods, patch torch."""
    _quiet_libraries()
    logging_config.initialize()
    torch.utils.rename_privateuse1_backend("spyre")
    torch._register_device_module("spyre", device)
    torch.utils.generate_methods_for_privateuse1_backend(
        for_storage=True, unsupported_dtype=device.UNSUPPORTED_DTYPES
    )
    fused.register()
    host_kernels.register()
    library.register()
    recurrent_layers.register()
    results.register()
    patches.install()
    dynamo.install()
    _C._set_eager_compiler(_is_candidate, _compile_call, _compile_sized)
    _register_collectives()
    _complete_bindings()
    atexit.register(_finish, os.getpid())
