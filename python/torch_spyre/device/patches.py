# SPDX-License-Identifier: Apache-2.0
"""What has to change in torch itself.

``Tensor.to``, ``torch.empty`` and ``nn.Module.to`` learn about device layouts;
tensors get ``device_tensor_layout()``; printing a spyre tensor prints its
values from the host, because torch formats numbers in float64.

What replaces a function of torch has its name, and is what modes and classes with
``__torch_function__`` are asked about, as they would be without this package.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn

import torch
from torch._prims_common import make_contiguous_strides_for
from torch.nn.parameter import UninitializedTensorMixin, is_lazy
from torch.overrides import handle_torch_function, has_torch_function
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from torch_spyre import _C
from torch_spyre.device import script_files
from torch_spyre.device.devices import _index
from torch_spyre.errors import ConversionWarning

_tensor_to = torch.Tensor.to
_module_to = torch.nn.Module.to
_empty = torch.empty
_tensor_str = torch._tensor_str._tensor_str
_add_suffixes = torch._tensor_str._add_suffixes
_dlpack_device = torch.Tensor.__dlpack_device__
_unscale = torch.amp.GradScaler.unscale_
_tensor_double = torch.Tensor.double
_check_trace = torch.jit._trace._check_trace

# Ids of the parameters that a running nn.Module.to stores with dimension
# order [1, 0].
_linear_weights: ContextVar[frozenset[int]] = ContextVar(
    "_linear_weights", default=frozenset()
)


def linear_weights(module: torch.nn.Module) -> frozenset[int]:
    """Ids of the weights of ``nn.Linear``, which ``nn.Module.to`` stores for matmul.

    Those that a module of another kind shares stay as they are: ``nn.Embedding``
    selects rows of its weight, and would copy the whole of it first. Quantized weights,
    which wrap other tensors, move these by themselves. Lazy ones have no sizes yet.
    """
    parts = list(module.modules())
    shared = {
        id(parameter)
        for part in parts
        if not isinstance(part, torch.nn.Linear)
        for parameter in part.parameters(recurse=False)
    }
    # Not the attribute: where the weight is parametrized, that computes it, and may
    # change the state of what does (spectral_norm iterates each time).
    weights = [
        part._parameters.get("weight")
        for part in parts
        if isinstance(part, torch.nn.Linear)
    ]
    return frozenset(
        id(weight)
        for weight in weights
        if weight is not None
        and not is_lazy(weight)
        and not is_traceable_wrapper_subclass(weight)
        and weight.dim() == 2
        and id(weight) not in shared
    )


def layout_of_linear_weight(
    sizes: Sequence[int], dtype: torch.dtype
) -> _C.SpyreTensorLayout:
    """The layout of a weight [out, in] whose sticks run along out.

    A matmul reads its second factor along the columns of the result, so it takes the
    transposed weight in place.
    """
    return _C.SpyreTensorLayout(
        [int(s) for s in sizes], make_contiguous_strides_for(sizes), dtype, [1, 0]
    )


def _counts_each(
    layout: _C.SpyreTensorLayout, like: torch.Tensor, strides: list[int]
) -> bool:
    """Whether single steps of each dimension of `like` are a device dimension's."""
    pairs = zip(layout.device_size, layout.stride_map, strict=True)
    steps = {step for count, step in pairs if count != 1}
    return all(
        stride in steps
        for size, stride in zip(like.shape, strides, strict=True)
        if size != 1
    )


def _empty_for(
    like: torch.Tensor,
    dtype: torch.dtype,
    device: torch.device,
    layout: _C.SpyreTensorLayout,
) -> torch.Tensor:
    """A tensor of the sizes of `like` in `layout`.

    The layout's stride map counts elements of a contiguous tensor, or, where
    it does not fit one, of a tensor with the strides of `like`. Where it fits
    both, it is for the one whose dimensions it counts by themselves.
    """
    sizes, own = list(like.shape), list(like.stride())
    first, second = list(make_contiguous_strides_for(sizes)), own
    if not _counts_each(layout, like, first) and _counts_each(layout, like, own):
        first, second = own, first
    try:
        return _C.empty_with_layout(sizes, first, dtype, layout, device)
    except _C.SpyreError:
        if like.is_contiguous():
            raise
        return _C.empty_with_layout(sizes, second, dtype, layout, device)


def _to_layout(
    self: torch.Tensor, layout: _C.SpyreTensorLayout, *args: Any, **kwargs: Any
) -> torch.Tensor:
    if not isinstance(layout, _C.SpyreTensorLayout):
        raise TypeError(
            f"device_layout must be a SpyreTensorLayout, found {type(layout).__name__}"
        )
    copy = kwargs.pop("copy", False)
    other = next((a for a in args if isinstance(a, torch.Tensor)), None)
    if other is None:
        other = kwargs.pop("other", None)
    else:
        args = tuple(a for a in args if a is not other)
    if other is not None:
        device, dtype = other.device, other.dtype
    else:
        device, dtype, _, memory_format = torch._C._nn._parse_to(*args, **kwargs)
        if memory_format not in (None, torch.preserve_format):
            raise ValueError("device_layout and memory_format cannot be used together")
    device = device or self.device
    dtype = dtype or self.dtype
    if device.type != "spyre":
        raise ValueError(f"device_layout needs a spyre device, found {device}")
    if device.index is None:
        device = torch.device("spyre", _C.current_device())
    if (
        not copy
        and self.device == device
        and self.dtype == dtype
        and _C.get_spyre_tensor_layout(self) == layout
    ):
        return self
    return _empty_for(self, dtype, device, layout).copy_(self)


def _names_device(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether arguments of Tensor.to have a device, or a tensor that has one."""
    first = args[0] if args else None
    is_device = first is not None and not isinstance(first, torch.dtype)
    return is_device or "device" in kwargs or "tensor" in kwargs


def to(
    self: torch.Tensor,
    *args: Any,
    device_layout: _C.SpyreTensorLayout | None = None,
    **kwargs: Any,
) -> torch.Tensor:
    relevant = (self, *args)
    if has_torch_function(relevant):
        if device_layout is not None:
            kwargs["device_layout"] = device_layout
        return handle_torch_function(to, relevant, self, *args, **kwargs)
    if device_layout is not None:
        return _to_layout(self, device_layout, *args, **kwargs)
    weights = _linear_weights.get()
    if weights and id(self) in weights:
        device, dtype, _, _ = torch._C._nn._parse_to(*args, **kwargs)
        dtype = dtype or self.dtype
        if self.device.type != "spyre" and self.device.type != "meta":
            layout = layout_of_linear_weight(self.shape, dtype)
            return _to_layout(self, layout, device, dtype)
    result = _tensor_to(self, *args, **kwargs)
    is_converted = result.dtype != self.dtype and self.device.type == "spyre"
    if is_converted and result.device.type == "spyre" and _names_device(args, kwargs):
        warnings.warn(
            f"D2D dtype conversion from {self.dtype} to {result.dtype}: a program "
            "of the device does it",
            ConversionWarning,
            stacklevel=2,
        )
    return result


@functools.wraps(_module_to)
def module_to(self: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
    device = torch._C._nn._parse_to(*args, **kwargs)[0]
    if device is None or device.type != "spyre":
        return _module_to(self, *args, **kwargs)
    token = _linear_weights.set(linear_weights(self))
    try:
        return _module_to(self, *args, **kwargs)
    finally:
        _linear_weights.reset(token)


def module_spyre(self: torch.nn.Module, device: Any = None) -> torch.nn.Module:
    """Move all parameters and buffers to a spyre device."""
    return self.to(torch.device("spyre", _index(device)))


def _check_contiguous(memory_format: torch.memory_format | None) -> None:
    """Raises what users of torch-spyre expect for other formats than contiguous."""
    if memory_format not in (None, torch.contiguous_format, torch.preserve_format):
        raise RuntimeError(
            "Spyre backend only supports contiguous memory format in torch.empty, "
            f"found {memory_format}; convert with x.to(memory_format=...)"
        )


def empty(
    *size: Any, device_layout: _C.SpyreTensorLayout | None = None, **kwargs: Any
) -> torch.Tensor:
    relevant = (kwargs.get("out"),)
    if has_torch_function(relevant):
        if device_layout is not None:
            kwargs["device_layout"] = device_layout
            # A default device is for tensors without a layout.
            kwargs["device"] = kwargs.get("device") or "spyre"
        return handle_torch_function(empty, relevant, *size, **kwargs)
    if device_layout is None:
        result = _empty(*size, **kwargs)
        # Operators make tensors of any format, and PyTorch infers theirs with this.
        is_fake = isinstance(result, torch._subclasses.FakeTensor)
        if result.device.type == "spyre" and not is_fake:
            _check_contiguous(kwargs.get("memory_format"))
        return result
    if "size" in kwargs:
        size = (kwargs.pop("size"),)
    if len(size) == 1 and isinstance(size[0], Sequence):
        size = tuple(size[0])
    dtype = kwargs.pop("dtype", None) or torch.get_default_dtype()
    device = kwargs.pop("device", None)
    device = torch.device("spyre" if device is None else device)
    if device.type != "spyre":
        raise ValueError(f"device_layout needs a spyre device, found {device}")
    requires_grad = kwargs.pop("requires_grad", False)
    _check_contiguous(kwargs.pop("memory_format", None))
    if kwargs.get("pin_memory") is False:
        del kwargs["pin_memory"]
    if kwargs.get("layout") is torch.strided:
        del kwargs["layout"]
    if kwargs:
        raise TypeError(
            f"torch.empty with device_layout does not take {', '.join(sorted(kwargs))}"
        )
    sizes = [int(s) for s in size]
    result = _C.empty_with_layout(
        sizes, make_contiguous_strides_for(sizes), dtype, device_layout, device
    )
    return result.requires_grad_(requires_grad)


def device_tensor_layout(self: torch.Tensor) -> _C.SpyreTensorLayout | None:
    """The device layout of the tensor's storage; None off the device."""
    if self.device.type != "spyre" or not torch._C._has_storage(self):
        return None
    if isinstance(self, torch._subclasses.FakeTensor):
        return None
    return _C.get_spyre_tensor_layout(self)


@functools.wraps(_tensor_str)
def tensor_str(self: torch.Tensor, indent: int) -> str:
    """torch._tensor_str._tensor_str with the values of a spyre tensor from the host."""
    if self.device.type == "spyre" and not isinstance(
        self, torch._subclasses.FakeTensor
    ):
        self = self.detach().cpu()
    return _tensor_str(self, indent)


@functools.wraps(_add_suffixes)
def add_suffixes(
    text: str, suffixes: list[str], indent: int, force_newline: bool
) -> str:
    """torch._tensor_str._add_suffixes, a spyre device last: behind the CPU's text."""
    own = [suffix for suffix in suffixes if suffix.startswith("device='spyre:")]
    rest = [suffix for suffix in suffixes if suffix not in own]
    result = _add_suffixes(text, rest, indent, force_newline)
    return "".join([result[:-1], *(f", {suffix}" for suffix in own), result[-1:]])


@functools.wraps(_unscale)
def unscale_(self: Any, optimizer: torch.optim.Optimizer) -> None:
    """torch.amp.GradScaler.unscale_, which inverts the scale in float64: on the CPU."""
    scale = self._scale
    if scale is None or scale.device.type != "spyre":
        return _unscale(self, optimizer)
    self._scale = scale.cpu()
    try:
        _unscale(self, optimizer)
    finally:
        self._scale = scale


def _double(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Tensor.double, of a spyre tensor on the CPU."""
    is_ours = self.device.type == "spyre"
    return _tensor_double(self.cpu() if is_ours else self, *args, **kwargs)


@functools.wraps(_check_trace)
def check_trace(*args: Any, **kwargs: Any) -> None:
    """torch.jit._trace._check_trace, which compares in float64: on the CPU."""
    from unittest import mock

    # A mode for functions of torch would change the graph that is traced again.
    with mock.patch.object(torch.Tensor, "double", _double):
        _check_trace(*args, **kwargs)


@functools.wraps(_dlpack_device)
def dlpack_device(self: torch.Tensor) -> tuple[Any, int]:
    """torch.Tensor.__dlpack_device__, which only knows the device's first name."""
    if has_torch_function((self,)) or self.device.type != "spyre":
        return _dlpack_device(self)
    from torch.utils.dlpack import DLDeviceType

    return DLDeviceType.kDLExtDev, self.device.index


def _refuse_to_send() -> NoReturn:
    raise RuntimeError(
        "a spyre tensor cannot be sent to another process, because the cards "
        "that a process simulates are its own: send tensor.cpu() instead"
    )


class _NotSent:
    """Stands for a tensor that was not sent; whoever asks it for anything, raises."""

    def __getattr__(self, name: str) -> NoReturn:
        _refuse_to_send()


def _refuse_to_receive() -> _NotSent:
    """Raises where a tensor that cannot be sent is received.

    Not in the thread of a DataLoader that pins memory: it ends at what it cannot
    receive, and the error says no more than that. It hands on errors of pinning.
    """
    if "_pin_memory_loop" in threading.current_thread().name:
        return _NotSent()
    _refuse_to_send()


def _local(reduce: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """How a tensor or storage is sent to another process, refused for spyre's.

    The thread that sends what is put into a queue only prints its errors, and who
    waits for the next item would wait for ever, as a DataLoader does: there, the
    receiver gets the error.
    """

    @functools.wraps(reduce)
    def checked(value: Any) -> Any:
        if value.device.type != "spyre":
            return reduce(value)
        if threading.current_thread().name != "QueueFeederThread":
            _refuse_to_send()
        return _refuse_to_receive, ()

    return checked


def _refuse_sharing() -> None:
    from multiprocessing.reduction import ForkingPickler

    from torch.multiprocessing import reductions

    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, _local(reductions.reduce_tensor))
    ForkingPickler.register(torch.UntypedStorage, _local(reductions.reduce_storage))


def _pass_for(original: Any, replacement: Any, module: str, qualified: str) -> None:
    """Names a replacement of a function in C++ for it; the signature stays ours."""
    replacement.__doc__ = original.__doc__
    replacement.__name__ = original.__name__
    replacement.__module__, replacement.__qualname__ = module, qualified


def install() -> None:
    """Put the replacements in place. Idempotent: others may wrap them in turn."""
    if getattr(torch.Tensor, "_spyre_tensor_patched", False):
        return
    # Torch-spyre's marks, which its users look for.
    torch.Tensor._spyre_tensor_patched = True
    module_to._spyre_patched = True
    _refuse_sharing()
    warnings.simplefilter("ignore", ConversionWarning)
    # Behind the filters that users have set before this, as with python -W.
    warnings.simplefilter("once", _C.FallbackWarning, append=True)
    _pass_for(_tensor_to, to, "torch", "Tensor.to")
    torch.Tensor.to = to
    # Where lazy modules know it by identity.
    UninitializedTensorMixin._allowed_methods.append(to)
    torch.Tensor.__dlpack_device__ = dlpack_device
    torch.Tensor.device_tensor_layout = device_tensor_layout
    torch.nn.Module.to = module_to
    torch.nn.Module.spyre = module_spyre
    torch._tensor_str._tensor_str = tensor_str
    torch._tensor_str._add_suffixes = add_suffixes
    torch.amp.GradScaler.unscale_ = unscale_
    torch.jit._trace._check_trace = check_trace
    script_files.install()

    _pass_for(_empty, empty, "torch", "empty")
    torch.empty = empty
    # Places that know torch.empty by identity.
    from torch.utils._device import _device_constructors

    _device_constructors().add(_empty)
    torch.jit._builtins._register_builtin(empty, "aten::empty")
