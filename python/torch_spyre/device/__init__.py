# SPDX-License-Identifier: Apache-2.0
"""The module behind ``torch.spyre``; every name of ``torch_spyre._C`` is in it too."""

# ruff: noqa: F401
from __future__ import annotations

import sys
from typing import Any

import torch

from torch_spyre import _C
from torch_spyre.device.devices import (
    UNSUPPORTED_DTYPES,
    Device,
    DeviceProperties,
    _index,
    _is_compiled,
    _is_in_bad_fork,
    _lazy_init,
    current_device,
    device,
    device_count,
    device_of,
    get_amp_supported_dtype,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    synchronize,
    synchronize_all,
)
from torch_spyre.device.memory_use import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from torch_spyre.device.random import (
    _get_generator,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_spyre.device.streams import (
    Event,
    Stream,
    _stream_of,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

OutOfMemoryError = torch.OutOfMemoryError

_MEMORY_NAMES = frozenset(
    ["memory_snapshot", "memory_stats_as_nested_dict", "memory_summary"]
)
_INDUCTOR_NAMES = frozenset(
    ["Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen"]
)
#: Nothing in PyTorch asks for these; torch-spyre has them without a value.
GraphLowering = Lowering = Codegen = Compile = None


def __getattr__(name: str) -> Any:
    if name in ("memory", "profiler"):
        import importlib

        return importlib.import_module(f"torch_spyre.{name}")
    if name in _MEMORY_NAMES:
        from torch_spyre import memory

        return getattr(memory, name)
    if name == "_initialized":
        # PyTorch asks for this name before it keeps the state of random numbers.
        return is_initialized()
    if name == "default_generators":
        return tuple(_C._get_default_generator(i) for i in range(device_count()))
    if name in _INDUCTOR_NAMES:
        from torch_spyre._inductor import refuse

        return getattr(refuse, name)
    if name == "_impl":
        return sys.modules[__name__]
    # What belongs to every module, as __file__, is not another's.
    if name.startswith("__") or not hasattr(_C, name):
        raise AttributeError(f"module 'torch.spyre' has no attribute {name!r}")
    return getattr(_C, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_C)})


# Torch-spyre makes torch.spyre without a file, and its users ask for that.
del __file__
