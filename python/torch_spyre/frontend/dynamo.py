# SPDX-License-Identifier: Apache-2.0
"""What Dynamo, Inductor and others learn about spyre once they are imported.

Which compiler ``torch.compile`` uses without a backend, or with ``inductor``: graphs
that touch spyre tensors come to this package, all others go to Inductor as they would
without it. And the device's functions, by its DeviceInterface; and that there is such
a device, where a library has a list of them.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree

#: What torch-spyre sets (docs/spec/drop-in.md, "torch_spyre").
_CACHE_SIZE_LIMIT = 1024


def _is_on_spyre(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.device.type == "spyre"
    return isinstance(value, torch.device) and value.type == "spyre"


def touches_spyre(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> bool:
    """Whether an input, a result, an attribute or a device argument is on spyre."""
    if any(_is_on_spyre(value) for value in example_inputs):
        return True
    tensors = [*gm.parameters(), *gm.buffers()]
    if any(_is_on_spyre(value) for value in tensors):
        return True
    for node in gm.graph.nodes:
        values = [node.meta.get("example_value"), node.meta.get("val")]
        leaves = _pytree.tree_leaves([values, node.args, node.kwargs])
        if any(_is_on_spyre(leaf) for leaf in leaves):
            return True
        device = node.kwargs.get("device")
        if isinstance(device, str) and device.partition(":")[0] == "spyre":
            return True
    return False


def _is_graph_on_spyre(model: Any, example_inputs: Sequence[Any]) -> bool:
    is_graph = isinstance(model, torch.fx.GraphModule)
    return is_graph and touches_spyre(model, example_inputs)


def _compile_on_spyre(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any], options: dict[str, Any]
) -> Callable[..., Any]:
    from torch_spyre.compile_backend import spyre

    return spyre(gm, example_inputs, options=options)


_warned: set[str] = set()


def _warn_of_ignored(names: Iterable[str]) -> None:
    """One warning for options of Inductor; none for what a mode sets."""
    from torch._inductor import list_mode_options

    modes = {name for options in list_mode_options().values() for name in options}
    ignored = {name.replace("-", "_") for name in names} - modes
    _warn_once("options of Inductor without effect on spyre", ignored)


def _warn_once(what: str, names: Iterable[str]) -> None:
    """Warns of those names that no such warning had yet."""
    new = sorted({name for name in names if f"{what}: {name}" not in _warned})
    _warned.update(f"{what}: {name}" for name in new)
    if new:
        warnings.warn(f"{what}: {', '.join(new)}", stacklevel=3)


def _wrap_inductor() -> None:
    """Lets the compiler of ``torch.compile`` without a backend, or with ``inductor``,
    take our options, and be ours for graphs on spyre.

    ``torch.compile`` makes an object of this class before it knows any graph. The class
    refuses what is no option of Inductor's; this one keeps our options apart.
    """
    original = torch._TorchCompileInductorWrapper

    class InductorOrSpyre(original):  # type: ignore[misc, valid-type]
        #: Whether it has compiled a graph on spyre.
        has_met_spyre = False

        def apply_options(self, options: dict[str, Any] | None) -> None:
            from torch_spyre import _C

            own = {row["name"] for row in _C.compile_options()}
            given = options or {}
            kept = {name: value for name, value in given.items() if name in own}
            self.own_options = {**getattr(self, "own_options", {}), **kept}
            super().apply_options({n: v for n, v in given.items() if n not in own})

        def __eq__(self, other: object) -> bool:
            return super().__eq__(other) and self.own_options == getattr(
                other, "own_options", {}
            )

        def __call__(
            self, model_: Any, inputs_: Any, *, config_patches: Any = None
        ) -> Any:
            if _is_graph_on_spyre(model_, inputs_):
                self.has_met_spyre = True
                _warn_of_ignored({*self.config, *(config_patches or ())})
                return _compile_on_spyre(model_, inputs_, self.own_options)
            # Next to graphs on spyre, small ones of the host are nothing to warn of.
            if not self.has_met_spyre:
                what = "options of spyre without effect on graphs of other devices"
                _warn_once(what, self.own_options)
            return super().__call__(model_, inputs_, config_patches=config_patches)

        def get_compiler_config(self) -> dict[str, Any]:
            # The original's value, without its import of the whole of Inductor.
            from torch._inductor import config

            with config.patch(self.config):
                return config.get_config_copy()

    torch._TorchCompileInductorWrapper = InductorOrSpyre


def _route_inductor(compile_fx: ModuleType) -> None:
    """Graphs on spyre that are given to Inductor's function come to this package."""
    from torch._inductor.virtualized import V

    inductor = compile_fx.compile_fx

    @wraps(inductor)
    def route(
        model_: Any, example_inputs_: Sequence[Any], *args: Any, **kwargs: Any
    ) -> Any:
        if _is_graph_on_spyre(model_, example_inputs_):
            if V.aot_compilation:
                raise RuntimeError(
                    "AOTInductor makes no packages for spyre: torch.export.save() "
                    "keeps the program, and torch.compile(torch.export.load(file)."
                    'module(), backend="spyre") compiles it'
                )
            _warn_of_ignored(kwargs.get("config_patches") or ())
            return _compile_on_spyre(model_, example_inputs_, {})
        return inductor(model_, example_inputs_, *args, **kwargs)

    compile_fx.compile_fx = route


def _register_interface(device_interface: ModuleType) -> None:
    from torch_spyre.device.interface import make_interface

    interface = make_interface(device_interface.DeviceInterface)
    device_interface.register_interface_for_device("spyre", interface)
    for index in range(torch.spyre.device_count() if torch.spyre.is_available() else 0):
        device_interface.register_interface_for_device(f"spyre:{index}", interface)


def _skip_own_frames(trace_rules: ModuleType) -> None:
    """Frames of this package run as they are, whoever calls them.

    After a graph break Dynamo looks at every frame that runs: also those that an eager
    operator's first call comes to, each of another kind. What a traced function calls
    (``spyre_hint``) is still traced with it.
    """
    trace_rules.add("torch_spyre")
    trace_rules.BUILTIN_INLINE_WHEN_CALLED.add(str(Path(__file__).parents[1]) + os.sep)


def _allow_many_sizes(config: ModuleType) -> None:
    """Programs are made per size; at Dynamo's limit of 8 it would stop compiling."""
    config.cache_size_limit = max(config.cache_size_limit, _CACHE_SIZE_LIMIT)


def _refresh_programs(utils: ModuleType) -> None:
    from torch_spyre.frontend.cache import wrap_fresh_cache

    wrap_fresh_cache(utils)


def _keep_programs(torch_cache: ModuleType) -> None:
    from torch_spyre.frontend.cache import register_artifact

    register_artifact(torch_cache)


def _save_tracing_time(convert_frame: ModuleType) -> None:
    from torch_spyre.frontend.tracing_time import wrap_compile

    wrap_compile(convert_frame)


def _draw_again(utils: ModuleType) -> None:
    """Lets backward graphs that recompute random operators draw the same numbers."""
    utils.register_graphsafe_rng_device_type("spyre")


def _allow_flex_attention(flex_attention: ModuleType) -> None:
    """PyTorch's function has a list of devices, and its operator runs on any."""
    flex_attention._validate_device = _on_spyre(
        lambda query, key, value: None, flex_attention._validate_device
    )


def _register_backends_once(registry: ModuleType) -> None:
    """Threads that compile first at once all register the backend that they load."""
    lock = threading.Lock()
    register = registry.register_backend

    @wraps(register)
    def register_backend(
        compiler_fn: Any = None, name: str | None = None, tags: Sequence[str] = ()
    ) -> Any:
        with lock:
            if name and registry._COMPILER_FNS.get(name, register) is compiler_fn:
                return compiler_fn
            return register(compiler_fn, name, tags)

    registry.register_backend = register_backend


def _open_for_spyre(safetensors: ModuleType) -> None:
    from torch_spyre.device import safetensors_files

    safetensors_files.install(safetensors)


def _correct_losses(decompositions: ModuleType) -> None:
    """PyTorch takes these apart before it asks for decompositions."""
    from torch_spyre.decompositions import losses

    key = torch._C.DispatchKey.Autograd
    for op, function in losses.DECOMPOSITIONS.items():
        if key in op.py_kernels:
            op.py_kernels[key] = _on_spyre(function, op.py_kernels[key])
            op._dispatch_cache.clear()


def _correct_upsampling(decompositions: ModuleType) -> None:
    """PyTorch takes it apart before it asks for decompositions, so that infinities
    become NaN, and samples by a factor that leaves the size as it is.
    """
    from torch_spyre.decompositions.resampling import upsample_linear

    original = decompositions._upsample_linear
    decompositions._upsample_linear = _on_spyre(upsample_linear, original)


def _correct_decompositions(decompositions: ModuleType) -> None:
    _correct_losses(decompositions)
    _correct_upsampling(decompositions)


def _on_spyre(function: Callable, original: Callable) -> Callable:
    """One of two functions, by the device of the first argument."""

    @wraps(original)
    def choose(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return (function if _is_on_spyre(x) else original)(x, *args, **kwargs)

    return choose


def _say_strides_of_convolutions(fake_impls: ModuleType) -> None:
    """PyTorch thinks that channels come last on some devices only."""
    op = torch.ops.aten.convolution.default
    original = fake_impls.op_implementations_dict[op]

    @wraps(original)
    def convolution(mode: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(mode, func, *args, **kwargs)
        if func is not op or not _is_on_spyre(result):
            return result
        from torch_spyre.decompositions.windows import format_of_result

        given = {**dict(zip(("input", "weight"), args, strict=False)), **kwargs}
        with mode:
            form = format_of_result(given["input"], given["weight"])
            return result.contiguous(memory_format=form)

    fake_impls.op_implementations_dict[op] = convolution


def _attend_to_jagged(ops: ModuleType) -> None:
    """PyTorch's attention of jagged tensors has kernels of CUDA, or strided ones."""
    attend = ops.jagged_scaled_dot_product_attention

    @wraps(attend)
    def jagged_attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        *args: Any,
        **kwargs: Any,
    ) -> torch.Tensor:
        # Without a ragged dimension of rows, its dense tensors are attended to.
        if query.device.type != "spyre" or getattr(query, "_ragged_idx", 1) == 1:
            return attend(query, key, value, *args, **kwargs)
        from torch_spyre.decompositions.jagged_attention import attention

        return attention(query, key, value, *args, **kwargs)

    ops.jagged_scaled_dot_product_attention = jagged_attention


_HOOKS: dict[str, Callable[[ModuleType], None]] = {
    "safetensors": _open_for_spyre,
    "torch._decomp.decompositions": _correct_decompositions,
    "torch._dynamo.backends.registry": _register_backends_once,
    "torch._dynamo.config": _allow_many_sizes,
    "torch._dynamo.convert_frame": _save_tracing_time,
    "torch._dynamo.device_interface": _register_interface,
    "torch._dynamo.trace_rules": _skip_own_frames,
    "torch._functorch._aot_autograd.utils": _draw_again,
    "torch._inductor.compile_fx": _route_inductor,
    "torch._inductor.utils": _refresh_programs,
    "torch._subclasses.fake_impls": _say_strides_of_convolutions,
    "torch.compiler._cache": _keep_programs,
    "torch.nested._internal.ops": _attend_to_jagged,
    "torch.nn.attention.flex_attention": _allow_flex_attention,
}


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls hooks once modules are imported, which ``import torch`` does not do.

    It stays among the finders: another thread that is importing goes through them, and
    would leave one out if those before it became fewer.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._awaited = set(names)

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._awaited:
            return None
        spec = self._find_by_others(fullname, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            # Others may look the module up, or run it aside, and never import it.
            if fullname in self._awaited and sys.modules.get(fullname) is module:
                _HOOKS[fullname](module)
                self._awaited.remove(fullname)

        spec.loader.exec_module = exec_module
        return spec

    def _find_by_others(
        self, fullname: str, path: Any, target: Any
    ) -> importlib.machinery.ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    return spec
        return None


def install() -> None:
    """Tell Dynamo, now or as soon as it is imported."""
    _wrap_inductor()
    awaited = [name for name in _HOOKS if name not in sys.modules]
    sys.meta_path.insert(0, _AfterImport(awaited))
    for name, hook in _HOOKS.items():
        if name not in awaited:
            hook(sys.modules[name])
