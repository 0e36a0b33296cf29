# SPDX-License-Identifier: Apache-2.0
"""The module behind ``torch.spyre``; every name of ``torch_spyre._C`` is in it too."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from torch_spyre import _C

Device = int | str | torch.device | None

UNSUPPORTED_DTYPES = [
    torch.float64,
    torch.complex32,
    torch.complex64,
    torch.complex128,
]


def _index(device: Device = None) -> int:
    """Index of a spyre device; None is the current one.

    Raises ValueError for another device type, IndexError for an index that
    does not exist.
    """
    if device is None:
        return _C.current_device()
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != "spyre":
            raise ValueError(f"expected a spyre device, found {device}")
        index = _C.current_device() if device.index is None else device.index
    else:
        index = int(device)
    count = _C.device_count()
    if not 0 <= index < count:
        raise IndexError(
            f"spyre device index {index} is out of range: there "
            f"{'is 1 device' if count == 1 else f'are {count} devices'}"
        )
    return index


# --- devices -----------------------------------------------------------------


def is_available() -> bool:
    """Whether there is a device; never raises."""
    try:
        return _C.device_count() > 0
    except RuntimeError:
        return False


def is_initialized() -> bool:
    """Whether this process has used a device."""
    return _C.is_initialized()


def init() -> None:
    """Make the current device ready; the first use of one does so by itself.

    Raises RuntimeError naming a wrong environment variable, or in a process
    forked off one that has used a device.
    """
    _C.start_runtime()


_lazy_init = init


def device_count() -> int:
    """Number of cards: AIU_WORLD_SIZE and SPYRE_DEVICES, by default 1."""
    return _C.device_count()


def current_device() -> int:
    """Index of this thread's current device."""
    return _C.current_device()


def set_device(device: Device) -> None:
    """Make a device this thread's current one."""
    _C.set_device(_index(device))


class device:
    """Context manager that changes the current device."""

    def __init__(self, device: Device) -> None:
        self._index = _index(device)
        self._previous = -1

    def __enter__(self) -> None:
        self._previous = _C.current_device()
        _C.set_device(self._index)

    def __exit__(self, *exception: object) -> None:
        _C.set_device(self._previous)


class device_of(device):
    """Context manager that makes a tensor's or storage's device current, if it has
    a spyre one.
    """

    def __init__(self, obj: torch.Tensor | torch.UntypedStorage) -> None:
        on_spyre = obj.device.type == "spyre"
        super().__init__(obj.device if on_spyre else None)


def get_device_capability(device: Device = None) -> dict[str, Any]:
    """What a device can do, as ``torch.accelerator.get_device_capability`` says."""
    return torch.accelerator.get_device_capability(
        torch.device("spyre", _index(device))
    )


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 tensors exist; the device holds them as DL16."""
    return True


def get_device_name(device: Device = None) -> str:
    """Name of a device."""
    _index(device)
    return "IBM Spyre (device model)"


@dataclass(frozen=True)
class DeviceProperties:
    """What a card is; sizes in bytes."""

    name: str
    total_memory: int
    multi_processor_count: int
    lx_memory_per_core: int


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Name, memory and cores of a device."""
    index = _index(device)
    return DeviceProperties(
        get_device_name(index), _C.mem_get_info(index)[1], 32, 2 * 1024 * 1024
    )


def synchronize(device: Device = None) -> None:
    """Wait for all work of a device; raises the error of work that failed."""
    _C.synchronize(_index(device))


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Dtypes that autocast may choose."""
    return [torch.float16, torch.bfloat16]


def _is_in_bad_fork() -> bool:
    return _C.is_in_bad_fork()


def _is_compiled() -> bool:
    return True


# --- streams and events --------------------------------------------------------


class Stream(torch.Stream):
    """A queue of work on one device: 32 of low and 32 of high priority, round robin.

    ``priority`` 0 is low, any other high. ``synchronize()`` raises the error of work
    that failed; until then the stream drops what it is given.
    """

    def __new__(cls, device: Device = None, priority: int = 0, **kwargs: Any) -> Stream:
        if "stream_id" in kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        return super().__new__(
            cls, torch.device("spyre", _index(device)), priority=priority, **kwargs
        )

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority."""
        return 0, -1

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Record an event, by default a new one, behind the stream's work."""
        if event is None:
            event = Event(device=self.device)
        event.record(self)
        return event

    def __repr__(self) -> str:
        return f"<torch.spyre.Stream device={self.device} id={self.id}>"

    @property
    def id(self) -> int:
        """0 for the default stream, 1 to 32 of low, 33 to 64 of high priority."""
        return self.stream_id

    @property
    def priority(self) -> int:
        """0 or -1, as for CUDA."""
        return -1 if self.stream_id > 32 else 0


class Event(torch.Event):
    """A point in a stream; elapsed_time() is in milliseconds of the device's clock."""

    def __new__(cls, enable_timing: bool = True, **kwargs: Any) -> Event:
        index = _index(kwargs.pop("device", None))
        return super().__new__(
            cls, torch.device("spyre", index), enable_timing=enable_timing, **kwargs
        )

    def elapsed_time(self, end: torch.Event) -> float:
        """Milliseconds of the device's clock until another event was reached."""
        return self._elapsed(end, 0)

    def host_elapsed_time(self, end: torch.Event) -> float:
        """Milliseconds of the host's clock until another event was reached."""
        return self._elapsed(end, 1)

    def _elapsed(self, end: torch.Event, clock: int) -> float:
        if not isinstance(end, torch.Event) or end.device != self.device:
            raise ValueError(f"expected an event of {self.device}, found {end}")
        start, stop = (_C.event_seconds(e.event_id)[clock] for e in (self, end))
        return 1e3 * (stop - start)


def stream(stream: torch.Stream | None) -> AbstractContextManager[Any]:
    """Context manager that makes a stream current; None changes nothing."""
    return nullcontext() if stream is None else stream


def _stream_of(stream_id: int, index: int) -> Stream:
    return Stream(
        stream_id=stream_id,
        device_index=index,
        device_type=torch._C._autograd.DeviceType.PrivateUse1.value,
    )


def current_stream(device: Device = None) -> Stream:
    """The current stream of a device in the calling thread."""
    index = _index(device)
    found = torch.accelerator.current_stream(torch.device("spyre", index))
    return _stream_of(found.stream_id, index)


def default_stream(device: Device = None) -> Stream:
    """The stream that is current unless another was set."""
    return _stream_of(0, _index(device))


def set_stream(stream: torch.Stream) -> None:
    """Make a stream this thread's current one."""
    torch.accelerator.set_stream(stream)


# --- random numbers ------------------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seed the current device."""
    _C.manual_seed(int(seed) & 0xFFFF_FFFF_FFFF_FFFF)


def manual_seed_all(seed: int) -> None:
    """Seed every device. Called by torch.manual_seed."""
    if is_available():
        _C.manual_seed_all(int(seed) & 0xFFFF_FFFF_FFFF_FFFF)


def seed() -> int:
    """Seed the current device nondeterministically; the seed."""
    value = int.from_bytes(os.urandom(8), "little")
    manual_seed(value)
    return value


def seed_all() -> int:
    """Seed every device with one nondeterministic number; the seed."""
    value = int.from_bytes(os.urandom(8), "little")
    manual_seed_all(value)
    return value


def initial_seed(device: Device = None) -> int:
    """Seed of a device's generator."""
    return _C.initial_seed(_index(device))


def get_rng_state(device: Device = "spyre") -> torch.Tensor:
    """Random state: 16 bytes, seed then offset, as a CPU uint8 tensor."""
    return _C.get_rng_state(_index(device))


def set_rng_state(new_state: torch.Tensor, device: Device = "spyre") -> None:
    """Restore what get_rng_state() gave."""
    _C.set_rng_state(new_state, _index(device))


def get_rng_state_all() -> list[torch.Tensor]:
    """Random states of all devices."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state_all(new_states: list[torch.Tensor]) -> None:
    """Restore what get_rng_state_all() gave."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


# --- memory --------------------------------------------------------------------


def memory_stats(device: Device = None) -> dict[str, int]:
    """Counters of device memory, in bytes and blocks."""
    return _C.memory_stats(_index(device))


def memory_allocated(device: Device = None) -> int:
    """Bytes of device memory in live tensors."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Device = None) -> int:
    """Largest memory_allocated() since the last reset."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Device = None) -> int:
    """Bytes up to the highest address in use since empty_cache()."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Device = None) -> int:
    """Largest memory_reserved() since the last reset."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Device = None) -> None:
    """Start new maxima."""
    _C._spyre_reset_peak_stats(_index(device))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Start counting allocations anew."""
    _C._spyre_reset_accumulated_stats(_index(device))


def empty_cache() -> None:
    """Give back the host memory behind free device memory."""
    synchronize_all()
    _C.empty_cache()


def synchronize_all() -> None:
    """Wait for all work of all devices that were used."""
    if is_initialized():
        _C.free_runtime()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """(free, total) bytes of device memory."""
    return _C.mem_get_info(_index(device))


# --- registration ----------------------------------------------------------------


OutOfMemoryError = torch.OutOfMemoryError

_MEMORY_NAMES = frozenset(
    ["memory_snapshot", "memory_stats_as_nested_dict", "memory_summary"]
)
_INDUCTOR_NAMES = frozenset(
    ["Scheduling", "PythonWrapperCodegen", "CppWrapperCodegen", "WrapperFxCodegen"]
)
#: torch-spyre has None for these; nothing in PyTorch asks for them.
_PLACEHOLDERS = frozenset(["GraphLowering", "Lowering", "Codegen", "Compile"])


def __getattr__(name: str) -> Any:
    if name in ("memory", "profiler"):
        import importlib

        return importlib.import_module(f"torch_spyre.{name}")
    if name in _MEMORY_NAMES:
        from torch_spyre import memory

        return getattr(memory, name)
    if name == "default_generators":
        return tuple(_C._get_default_generator(i) for i in range(device_count()))
    if name in _INDUCTOR_NAMES:
        from torch_spyre import _inductor

        return getattr(_inductor, name)
    if name == "_impl":
        return sys.modules[__name__]
    if name in _PLACEHOLDERS:
        raise AttributeError(
            f"torch.spyre.{name} does not exist: Inductor does not lower graphs for "
            "spyre, torch.compile(backend='spyre') compiles them"
        )
    try:
        return getattr(_C, name)
    except AttributeError:
        raise AttributeError(
            f"module 'torch.spyre' has no attribute {name!r}"
        ) from None


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_C)})


def _untraced(function: Any) -> Any:
    """A function that _C calls, hidden from Dynamo if there is one.

    Dynamo follows an eager call of a compiled function's remainder into it.
    """
    # Another thread may be importing it.
    disable = getattr(sys.modules.get("torch._dynamo"), "disable", None)
    return function if disable is None else disable(function)


def _is_candidate(qualified: str, overload: str) -> bool:
    # Not needed by `import torch`, and slow to import.
    from torch_spyre import _eager

    return _untraced(_eager.is_candidate)(qualified, overload)


def _compile_call(*call: Any) -> Any:
    from torch_spyre import _eager

    return _untraced(_eager.compile_call)(*call)


def _exchange_stream(stream: torch.Stream) -> torch.Stream:
    previous = current_stream(stream.device)
    set_stream(stream)
    return previous


def _copy_tensor(
    source: torch.Tensor, destination: torch.Tensor, non_blocking: bool = False
) -> torch.Tensor:
    return destination.copy_(source, non_blocking=non_blocking)


def _complete_bindings() -> None:
    """The names of torch_spyre._C that need Python classes."""
    _C.get_stream_from_pool = lambda device=None, priority=0: Stream(device, priority)
    _C.current_stream = current_stream
    _C.default_stream = default_stream
    _C.set_current_stream = _exchange_stream
    _C.copy_tensor = _copy_tensor
    _C._SpyreStreamBase = Stream
    _C.createSpyreCCLBackend = _create_collectives


def _create_collectives(*arguments: Any) -> Any:
    from torch_spyre.distributed import SpyreCCL

    return SpyreCCL(*arguments)


def _register_collectives() -> None:
    if not torch.distributed.is_available():
        return
    backends = torch.distributed.Backend
    if "spyreccl" not in backends.backend_list:
        backends.register_backend("spyreccl", _create_collectives, devices=["spyre"])


def register() -> None:
    """Name the device, give tensors and modules their methods, patch torch."""
    from torch_spyre import (
        _fused_ops,
        _histogram,
        _patches,
        _router,
        logging_config,
    )

    logging_config.register()
    torch.utils.rename_privateuse1_backend("spyre")
    torch._register_device_module("spyre", sys.modules[__name__])
    torch.utils.generate_methods_for_privateuse1_backend(
        for_storage=True, unsupported_dtype=UNSUPPORTED_DTYPES
    )
    _fused_ops.register()
    _histogram.register()
    _patches.install()
    _router.install()
    _C._set_eager_compiler(_is_candidate, _compile_call)
    _register_collectives()
    _complete_bindings()
    # Work must not outlive the interpreter.
    atexit.register(synchronize_all)
