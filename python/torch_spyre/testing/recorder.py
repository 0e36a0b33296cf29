# SPDX-License-Identifier: Apache-2.0
"""Records the operators that a program calls as descriptors.

What is seen is what the program writes: ``torch.nn.functional.softmax``, not the
operators that it is made of.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import runpy
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode, resolve_name

from torch_spyre.testing import operators
from torch_spyre.testing.located import nearest

#: Operators whose operands have to be positive, where no values are known.
_POSITIVE = ("sqrt", "rsqrt", "log", "log2", "log1p", "pow", "reciprocal", "div")
#: Beyond it, values of masks (the least of a dtype) are no range to draw from.
_WIDEST = 8
#: What moves or describes tensors, and what descriptors cannot say: of no interest.
_NOT_RECORDED = {
    "cpu", "cuda", "spyre", "detach", "size", "stride", "dim", "numel", "item",
    "is_floating_point", "is_complex", "data_ptr", "copy_", "requires_grad_",
    "uniform_", "normal_", "fill_", "zero_", "trunc_normal_", "get_device",
}  # fmt: skip
_SHORT = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}


class _Unsayable(Exception):
    """An argument that no descriptor can hold."""


def _dtype_name(dtype: torch.dtype) -> str:
    return _SHORT.get(dtype, str(dtype).removeprefix("torch."))


def _flow(value: Any) -> str:
    """A value in YAML's flow style, which JSON is, but for plain words."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(v) for v in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    if isinstance(value, float):
        text = repr(value)
        # YAML 1.1 takes 1e-05 for text.
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    if isinstance(value, str) and value.isidentifier() and value.islower():
        return value if value not in _YAML_WORDS else json.dumps(value)
    return json.dumps(value)


_YAML_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def _expression(value: Any) -> str:
    """An index as the text of a ``py`` input."""
    if isinstance(value, slice):
        parts = ", ".join(_expression(v) for v in (value.start, value.stop, value.step))
        return f"slice({parts})"
    if isinstance(value, (tuple, torch.Size)):
        inner = ", ".join(_expression(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return "[" + ", ".join(_expression(v) for v in value) + "]"
    if value is Ellipsis:
        return "Ellipsis"
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    raise _Unsayable(type(value).__name__)


@dataclass
class Recording:
    """The distinct calls so far: text of the case -> how often, and from where."""

    model: str
    #: Whether values were seen at all: the meta device has none.
    calls: dict[str, int] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    #: What cannot be recorded: operator and reason -> how often.
    left_out: Counter[str] = field(default_factory=Counter)

    def summary(self) -> str:
        """How much was recorded, and what was not."""
        text = f"{len(self.calls)} cases of {sum(self.calls.values())} calls"
        if self.left_out:
            text += "; not recorded: " + ", ".join(
                f"{n} x {name}" for name, n in sorted(self.left_out.items())
            )
        return text

    def text(self) -> str:
        """The YAML. Calls that only differ in values are one case."""
        lines = [
            f"# {len(self.calls)} operators of {sum(self.calls.values())} calls,",
            "# written by spyre-model-ops record.",
            *(f"# Not recorded: {n} x {w}" for w, n in sorted(self.left_out.items())),
            f"model: {_flow(self.model)}",
            "defaults: {dtype: fp16, seed: 7, rtol: 5.0e-3, atol: 5.0e-3}",
            "cases:",
        ]
        numbers: Counter[str] = Counter()
        for body, times in self.calls.items():
            op = body.split("\n", 1)[0]
            numbers[op] += 1
            lines.append(f"  - name: {op}.{numbers[op]}")
            lines.append(f"    op: {op}")
            lines += body.split("\n")[1:]
            where = self.places[body]
            note = f"{where}, {times} calls" if times > 1 else where
            lines.append(f"    description: {json.dumps(note)}")
        return "\n".join(lines) + "\n"

    def write(self, path: str | Path) -> None:
        """Writes the YAML. Raises ValueError if nothing was recorded."""
        if not self.calls:
            raise ValueError("no operator was called: there is nothing to write")
        Path(path).write_text(self.text(), encoding="utf-8")


class _Recorder(TorchFunctionMode):
    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.recording = recording
        self.stack: list[str] = []
        self.names: dict[int, str] = {}

    # --- which module calls ----------------------------------------------------

    def enter_module(self, module: nn.Module, _: Any) -> None:
        if not self.stack:
            self.names.update({id(m): n for n, m in module.named_modules()})
        self.stack.append(self.names.get(id(module), "") or type(module).__name__)

    def leave_module(self, *_: Any) -> None:
        if self.stack:
            self.stack.pop()

    # --- calls -----------------------------------------------------------------

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        body = reason = None
        name = _name_of(func)
        if name is not None:
            # Before the call: one in place changes its arguments.
            try:
                body = self._body(name, args, kwargs)
            except _Unsayable as error:
                reason = str(error)
        result = func(*args, **kwargs)
        if name is None or not _has_tensor(result):
            return result
        if body is None:
            self.recording.left_out[f"{name} ({reason})"] += 1
            return result
        calls = self.recording.calls
        calls[body] = calls.get(body, 0) + 1
        if body not in self.recording.places:
            self.recording.places[body] = self.stack[-1] if self.stack else "no module"
        return result

    def _body(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        """The lines of a case below its name; the first line is the operator."""
        inputs: list[str] = []
        attrs: dict[str, Any] = {}
        kwmap: dict[str, Any] = {}
        dtype = None
        values = list(args)
        if name == "torch.Tensor.to":
            # A dtype has no place among the inputs.
            values, kwargs = _named_conversion(values, kwargs)
        else:
            values, kwargs = _tensors_by_position(name, values, kwargs)
        args = values
        for position, value in enumerate(values):
            if isinstance(value, torch.Tensor):
                dtype = dtype or value.dtype
            inputs.append(self._input(name, position, value, args))
        for key, value in kwargs.items():
            if value is None and key in ("device", "dtype", "layout", "out"):
                continue
            if isinstance(value, torch.dtype):
                kwmap[key] = _dtype_name(value)
            elif key == "device":
                kwmap[key] = "cpu" if str(value) == "cpu" else "cuda:0"
            elif _has_tensor_in(value):
                raise _Unsayable(f"tensor as {key}")
            else:
                attrs[key] = _plain(value)
        is_bf16 = any(
            isinstance(a, torch.Tensor) and a.dtype == torch.bfloat16 for a in args
        )
        lines = [name, "    inputs:", *(f"      - {i}" for i in inputs)]
        if not inputs:
            lines[1] = "    inputs: []"
        if attrs:
            lines.append(f"    attrs: {_flow(attrs)}")
        if kwmap:
            lines.append(f"    kwmap: {_flow(kwmap)}")
        if is_bf16:
            lines.append("    marks: [bf16operation]")
        elif dtype == torch.float32:
            lines.append("    marks: [fp32operation]")
        return "\n".join(lines)

    def _input(self, name: str, position: int, value: Any, args: Sequence[Any]) -> str:
        if isinstance(value, torch.Tensor):
            return f"tensor: {_flow(_describe(name, position, value, args))}"
        if isinstance(value, (list, tuple)) and any(
            isinstance(v, torch.Tensor) for v in value
        ):
            if not all(isinstance(v, torch.Tensor) for v in value):
                raise _Unsayable("tensors among other values")
            if name in ("torch.getitem", "torch.setitem"):
                raise _Unsayable("an index of several tensors")
            items = [_describe(name, position, v, args) for v in value]
            return f"tensor_list: {_flow(items)}"
        if isinstance(value, (slice, tuple, list, torch.Size)) or value is Ellipsis:
            return f"py: {json.dumps(_expression(value))}"
        if isinstance(value, str):
            return f"value: {json.dumps(repr(value))}"
        return f"value: {_flow(_plain(value))}"


#: Parameters of functions that are called with tensors by keyword, with defaults.
_PARAMETERS: dict[str, tuple[tuple[str, Any], ...]] = {
    "scaled_dot_product_attention": (
        *(("query", None), ("key", None), ("value", None), ("attn_mask", None)),
    ),
    "layer_norm": (
        *(("input", None), ("normalized_shape", None), ("weight", None)),
        ("bias", None),
    ),
    "rms_norm": (("input", None), ("normalized_shape", None), ("weight", None)),
    "linear": (("input", None), ("weight", None), ("bias", None)),
    "conv1d": (("input", None), ("weight", None), ("bias", None)),
    "conv2d": (("input", None), ("weight", None), ("bias", None)),
    "where": (("condition", None), ("input", None), ("other", None)),
    "index_select": (("input", None), ("dim", 0), ("index", None)),
    "gather": (("input", None), ("dim", 0), ("index", None)),
    "scatter": (("input", None), ("dim", 0), ("index", None), ("src", None)),
    "clamp": (("input", None), ("min", None), ("max", None)),
    "embedding": (("input", None), ("weight", None)),
    "repeat_interleave": (("input", None), ("repeats", None)),
}


def _tensors_by_position(
    name: str, args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Tensors that are given by keyword, and what stands before them, by position."""
    order = _PARAMETERS.get(name.rpartition(".")[2], ())
    names = [n for n, _ in order]
    given = [names.index(k) for k in kwargs if k in names and _has_tensor_in(kwargs[k])]
    if not given or min(given) < len(args):
        return args, kwargs
    rest = dict(kwargs)
    filled = [rest.pop(n, default) for n, default in order[len(args) : max(given) + 1]]
    return [*args, *filled], rest


def _has_tensor_in(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_has_tensor_in(v) for v in value)
    return isinstance(value, torch.Tensor)


def _named_conversion(
    args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    kept, named = args[:1], dict(kwargs)
    named.pop("non_blocking", None)
    for value in args[1:]:
        if isinstance(value, torch.dtype):
            named["dtype"] = value
        elif isinstance(value, torch.Tensor):
            named["dtype"] = value.dtype
    # Where it runs is the runner's business.
    named.pop("device", None)
    if "dtype" not in named:
        raise _Unsayable("a move to a device")
    return kept, named


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise _Unsayable(type(value).__name__)


def _name_of(func: Any) -> str | None:
    """The name that descriptors have for a function, None for no computation."""
    try:
        name = resolve_name(func)
    except (AttributeError, TypeError):
        return None
    if not name:
        return None
    last = name.rpartition(".")[2]
    if last in ("__get__", "__set__") or last in _NOT_RECORDED:
        return None
    if last == "__getitem__":
        return "torch.getitem"
    if last == "__setitem__":
        return "torch.setitem"
    name = name.replace("torch.functional.", "torch.")
    return name if operators.find(name, {}) is not None else None


def _has_tensor(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_has_tensor(v) for v in value)
    # __setitem__ returns nothing.
    return value is None or isinstance(value, torch.Tensor)


def _describe(
    name: str, position: int, tensor: torch.Tensor, args: Sequence[Any]
) -> dict[str, Any]:
    shape = [int(n) for n in tensor.shape]
    result: dict[str, Any] = {"shape": shape}
    stride = [int(n) for n in tensor.stride()]
    result["stride"] = stride
    if tensor.storage_offset():
        result["storage_offset"] = int(tensor.storage_offset())
    if tensor.dtype != torch.float16:
        result["dtype"] = _dtype_name(tensor.dtype)
    low, high = _range(name, position, tensor, args)
    result["init"] = "rand" if tensor.dtype.is_floating_point else "randint"
    result["init_args"] = {"low": low, "high": high}
    return result


def _range(
    name: str, position: int, tensor: torch.Tensor, args: Sequence[Any]
) -> tuple[int, int]:
    """Whole numbers around the values, from guesses where there are no values."""
    if tensor.dtype == torch.bool:
        return 0, 2
    is_float = tensor.dtype.is_floating_point
    last = name.rpartition(".")[2].strip("_")
    if not is_float and (size := _indexed_size(last, position, args)) is not None:
        return 0, max(size, 1)
    if tensor.device.type == "meta" or not tensor.numel():
        if not is_float:
            return 0, 2
        return (1, 4) if last in _POSITIVE else (-1, 1)
    with torch._C.DisableTorchFunction():
        host = tensor.detach().cpu()
        host = host.double() if is_float else host
        least, most = float(host.min()), float(host.max())
    if not is_float:
        return int(least), int(most) + 1
    if not (math.isfinite(least) and math.isfinite(most)):
        return -1, 1
    low = max(math.floor(least), -_WIDEST)
    high = min(math.ceil(most), _WIDEST)
    return (low, high) if low < high else (low, low + 1)


def _indexed_size(last: str, position: int, args: Sequence[Any]) -> int | None:
    """How long the dimension is that an operand of whole numbers indexes."""
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    if last == "embedding" and position == 0 and len(tensors) > 1:
        return int(tensors[1].shape[0])
    if last in ("getitem", "setitem") and position == 1 and tensors[0].dim():
        return int(tensors[0].shape[0])
    is_index = last in ("index_select", "gather", "scatter", "scatter_add", "index_add")
    is_index = is_index or last in ("index_copy", "index_fill")
    by_dim = len(args) > 2 and isinstance(args[1], int) and tensors[0].dim()
    if is_index and position == 2 and by_dim:
        return int(tensors[0].shape[args[1]])
    if last == "one_hot" and len(args) > 1 and isinstance(args[1], int):
        return args[1] if args[1] > 0 else None
    return None


@contextlib.contextmanager
def record(model: str = "model") -> Iterator[Recording]:
    """Records what PyTorch functions the block calls.

    ``with record("mine") as r: module(x)``, then ``r.write("mine.yaml")``. Shapes,
    strides and dtypes are those of the calls, values are drawn from their range; on
    the meta device, which has none, from a guess.
    """
    recording = Recording(model)
    recorder = _Recorder(recording)
    hooks = [
        nn.modules.module.register_module_forward_pre_hook(recorder.enter_module),
        nn.modules.module.register_module_forward_hook(
            recorder.leave_module, always_call=True
        ),
    ]
    try:
        with recorder:
            yield recording
    finally:
        for hook in hooks:
            hook.remove()


# --- programs by name -----------------------------------------------------------


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Runs a script as ``python path arguments`` would."""
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such script")
    before = sys.argv
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            raise ValueError(f"{path}: it ended with status {error.code}") from error
    finally:
        sys.argv = before
        sys.path.pop(0)


def load_program(source: str, device: str = "cpu", dtype: str = "") -> tuple[Any, Any]:
    """(module, inputs) of ``module:function``, on a device. Raises ValueError."""
    module_name, colon, function_name = source.partition(":")
    if not colon:
        raise ValueError(f"{source}: expected module:function or a script, FILE.py")
    # A console script does not search the folder that it is called in.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        loaded = importlib.import_module(module_name)
    except ImportError as error:
        raise ValueError(f"{source}: {error}") from error
    function = getattr(loaded, function_name, None)
    if not callable(function):
        names = [n for n in vars(loaded) if callable(getattr(loaded, n))]
        hint = nearest(function_name, names)
        raise ValueError(f"{source}: no function {function_name}; {hint}")
    with torch.device("meta") if device == "meta" else contextlib.nullcontext():
        made = function()
    if not (
        isinstance(made, tuple)
        and len(made) == 2
        and isinstance(made[0], nn.Module)
        and isinstance(made[1], (tuple, dict))
    ):
        raise ValueError(
            f"{source}: expected (module, inputs) with inputs a tuple or a dict, "
            f"found {type(made).__name__}"
        )
    module, inputs = made
    if dtype:
        named = getattr(torch, dtype, None)
        if not isinstance(named, torch.dtype) or not named.is_floating_point:
            raise ValueError(
                f"--dtype {dtype}: expected a floating-point dtype, such as float16"
            )
        module = module.to(named)
    try:
        return module.to(device).eval(), move(inputs, device)
    except RuntimeError as error:
        raise ValueError(f"--device {device}: {error}") from error


def move(inputs: Any, device: str) -> Any:
    """Inputs, tensors among them on a device."""
    return torch.utils._pytree.tree_map(
        lambda v: v.to(device) if isinstance(v, torch.Tensor) else v, inputs
    )


def call(module: nn.Module, inputs: Any) -> Any:
    """Calls a module without gradients, a dict as its keyword arguments."""
    with torch.no_grad():
        return module(**inputs) if isinstance(inputs, dict) else module(*inputs)
