# SPDX-License-Identifier: Apache-2.0
"""What AOTAutograd's cache on disk keeps of a graph that this package compiles.

AOTAutograd traces a graph operator by operator, which takes longer than all that
follows if the programs are on disk already. PyTorch keeps what it has traced, and what
is needed to call it, in a cache of its own (``TORCHINDUCTOR_CACHE_DIR``) for compilers
whose result is an ``OutputCode``. That is the FX graph here, which is compiled when it
runs, as always; its programs are in the cache of programs.

The key covers Dynamo's graph, the inputs, PyTorch, and what else the traced graph
depends on. A file whose content is not what its name is a hash of is deleted, and the
graph traced anew.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import io
import itertools
import logging
import pickle
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd import autograd_cache
from torch._functorch._aot_autograd.functional_utils import ViewMetaSequence
from torch._inductor.output_code import OutputCode
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.utils._python_dispatch import (
    _disable_current_modes,
    is_traceable_wrapper_subclass,
)

from torch_spyre import _C, extensions
from torch_spyre.decompositions import recurrent_layers, table
from torch_spyre.frontend.leftovers import KEPT_META
from torch_spyre.frontend.stages import function_of

#: Operators that change with PyTorch or with this package only.
_OWN_NAMESPACES = frozenset(["aten", "prim", "prims", "spyre"])
#: Modules of functions in traced graphs, such as ``operator.getitem``.
_FUNCTION_MODULES = ("_operator", "math", "builtins")
#: Where Python functions that ``torch.library`` puts in place of operators change what
#: is traced; those for devices run later, those for meta tensors are PyTorch's.
_TRACED_KEYS = ("Autograd", "Composite", "Functionalize", "Python")
#: Views whose records PyTorch 2.13 cannot write: what they give to pickle refers to
#: sizes that are freed by then (ATen/FunctionalizeFallbackKernel.h).
_VIEWS_WITHOUT_SIZES = frozenset(["_unsafe_view_ViewMeta", "resize__ViewMeta"])
#: The attribute of Dynamo's graph with what PyTorch's key lacks.
_SEAL = "_spyre_seal"

_log = logging.getLogger("spyre.inductor")
_counter = itertools.count()


def _next_name(kind: str) -> str:
    """The name of the next graph of this process."""
    return f"{kind}{next(_counter)}"


class _NotKept(Exception):
    """A graph that is not kept, for the reason given."""


class TracedGraph(OutputCode):
    """A compiled graph that PyTorch can keep on disk."""

    def __init__(self, gm: GraphModule, options: dict[str, Any], kind: str) -> None:
        super().__init__()
        self._boxed_call = True
        self._options, self._kind = options, kind
        self._content = b""
        self._function: Any = function_of(gm, options, _next_name(kind))

    def __call__(self, inputs: Any) -> list[Any]:
        """Runs on a list of inputs, which it empties."""
        assert self._function is not None
        return self._function(inputs)

    def prepare_for_serialization(self) -> None:
        """Makes this copy, of which PyTorch writes the attributes, one on disk."""
        if self._function is None:
            return
        try:
            self._content = _dump(self._function.gm)
        except _NotKept as error:
            raise autograd_cache.BypassAOTAutogradCache(str(error)) from error
        self._function = None

    def post_compile(
        self, example_inputs: Any, constants: Any, graph_kwargs: Any
    ) -> None:
        """Makes what was read from disk callable."""
        if self._function is not None:
            return
        self._function = function_of(
            _load(self._content), self._options, _next_name(self._kind)
        )
        self._content = b""

    def set_triton_bundle(self, triton_bundle: Any) -> None:
        """There is no such thing here."""


# ------------------------------------------------------------------------------
# The key


@functools.cache
def _source_hash() -> str:
    """Of this package's Python files, which decide what operators become."""
    root = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(str(path.relative_to(root)).encode() + b"\0")
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


@functools.cache
def _empty_graph() -> Any:
    """Of a new context of MLIR, which takes a millisecond."""
    return _C.GraphBuilder()


def _seal_of(gm: GraphModule, options: dict[str, Any]) -> str:
    """What the traced graph depends on and PyTorch's key lacks.

    Raises _NotKept if it depends on functions of the user, of which nothing says
    whether they are still the same, or if PyTorch keeps nothing.
    """
    if not (
        autograd_cache.should_use_local_autograd_cache()
        or autograd_cache.should_use_remote_autograd_cache()
    ):
        raise _NotKept("PyTorch's cache is off")
    if extensions.are_there() or table.are_enabled():
        raise _NotKept("operators have decompositions or lowerings of the user's")
    # Of some 2,000 kernels of PyTorch and its libraries, nearly all are others.
    for name in torch.library._impls:
        if not name.startswith("aten/") or name in recurrent_layers.REGISTERED:
            continue
        _, operator, key = name.split("/")
        if key.startswith(_TRACED_KEYS):
            raise _NotKept(f"aten.{operator} has a kernel of the user's for {key}")
    found = hashlib.sha256()
    found.update(_source_hash().encode())
    # The compiler, whose rows decide what is taken apart, and the options.
    found.update(_C.get_cache_key(_empty_graph(), options).encode())
    for module in gm.modules():
        if not isinstance(module, GraphModule):
            continue
        for node in module.graph.nodes:
            _check_traceable(module, node)
            kept = [node.meta.get(name) for name in KEPT_META]
            found.update(repr((node.op, *kept)).encode())
    return found.hexdigest()


def _check_traceable(gm: GraphModule, node: Node) -> None:
    """Raises _NotKept for a node whose meaning its text does not say."""
    target = node.target
    if isinstance(target, (OpOverload, OpOverloadPacket)):
        name = str(target)
        namespace = getattr(target, "namespace", None) or name.split(".")[0]
        if namespace not in _OWN_NAMESPACES:
            raise _NotKept(f"{name} is defined by the user or another library")
    elif node.op == "get_attr":
        value: Any = gm
        for part in str(target).split("."):
            value = getattr(value, part, None)
        if isinstance(value, torch.Tensor):
            raise _NotKept(f"the graph has a tensor, {target}, of its own")
    value = node.meta.get("example_value")
    is_wide = isinstance(value, torch.Tensor) and value.dtype is torch.float64
    if isinstance(value, torch.SymFloat) or (is_wide and value.dim() == 0):
        # AOTAutograd may write what it is in this call into the graph, with a guard
        # that is not kept with it.
        raise _NotKept(f"{node.name} is a number that changes from call to call")


class _Details(autograd_cache.AOTAutogradCacheDetails):
    """What the key of a graph of ours is a hash of.

    PyTorch's own details and the rest of what the graph depends on, without those of
    Inductor, whose code generators need not be imported for this.
    """

    def __init__(self, gm: GraphModule, inputs: Sequence[Any], config: Any) -> None:
        self.traced_by = getattr(gm, _SEAL)
        super().__init__(gm, inputs, config, {})

    def _init_fx_graph_hash_details(
        self, gm: GraphModule, example_inputs: Sequence[Any], fx_config: Any
    ) -> None:
        autograd_cache.FxGraphCache._check_can_cache(gm, example_inputs, fx_config)
        if any(is_traceable_wrapper_subclass(value) for value in example_inputs):
            raise autograd_cache.BypassAOTAutogradCache(
                "inputs are of a class that says itself what operators do"
            )
        self.gm = gm
        self.example_inputs = example_inputs
        self.default_dtype = torch.get_default_dtype()
        self.default_device = str(torch.get_default_device())
        self.current_card = _C.current_device()
        self.attention_kinds = (
            torch.backends.cuda.flash_sdp_enabled(),
            torch.backends.cuda.mem_efficient_sdp_enabled(),
            torch.backends.cuda.math_sdp_enabled(),
        )
        self.torch_version = (torch.__version__, torch.version.git_version)
        self.cache_key_tag = torch.compiler.config.cache_key_tag


def _delete_damaged(key: str) -> None:
    """Deletes files of a key whose names are not hashes of their contents."""
    folder = Path(autograd_cache.AOTAutogradCache._get_tmp_dir_for_key(key))
    try:
        for path in folder.glob("[!.]*"):
            if autograd_cache.sha256_hash(path.read_bytes()) != path.name:
                _log.warning("tracing anew: cache file %s is damaged", path)
                path.unlink()
    except OSError as error:
        # Another process may have deleted it, or PyTorch says what is wrong.
        _log.info("cache folder %s: %s", folder, error)


def _wrap_key() -> None:
    """Lets PyTorch ask here for the keys of graphs that are compiled here."""
    original = autograd_cache.autograd_cache_key

    @functools.wraps(original)
    def autograd_cache_key(
        mod: Any, example_inputs: Sequence[Any], config: Any, *args: Any
    ) -> tuple[str, list[str]]:
        gm = getattr(mod, "gm", mod)
        if not hasattr(gm, _SEAL):
            return original(mod, example_inputs, config, *args)
        with autograd_cache.sanitize_gm_for_cache(gm):
            autograd_cache.check_cacheable(gm)
            pickler = autograd_cache.AOTAutogradCachePickler(gm)
            key = "spyre" + pickler.get_hash(_Details(gm, example_inputs, config))
        _delete_damaged(key)
        return key, []

    autograd_cache.autograd_cache_key = autograd_cache_key


_wrap_key()


@contextmanager
def kept_by_pytorch(gm: GraphModule, options: dict[str, Any]) -> Iterator[bool]:
    """Whether what is traced of a graph inside may be kept."""
    try:
        seal = _seal_of(gm, options)
    except _NotKept as error:
        _log.debug("what is traced of a graph is not kept: %s", error)
        yield False
        return
    setattr(gm, _SEAL, seal)
    try:
        # An entry holds the graphs themselves, so it is made when both are there.
        with functorch_config.patch(
            bundled_autograd_cache=True, force_non_lazy_backward_lowering=True
        ):
            yield True
    finally:
        delattr(gm, _SEAL)


def _wrap_views() -> None:
    """Keeps None for views of a result that PyTorch would write with wrong sizes.

    A result is then made from its own sizes and strides, as it is where sizes vary.
    """
    original = ViewMetaSequence.__reduce_ex__

    def __reduce_ex__(self: ViewMetaSequence, protocol: Any) -> Any:
        if any(type(view).__name__ in _VIEWS_WITHOUT_SIZES for view in self.sequence):
            return type(None), ()
        return original(self, protocol)

    ViewMetaSequence.__reduce_ex__ = __reduce_ex__  # type: ignore[method-assign,assignment]


_wrap_views()


# ------------------------------------------------------------------------------
# Graphs as bytes


class _Pickler(pickle.Pickler):
    """Writes nodes one by one; refers to those before, and to operators, by name."""

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, Node):
            return ("node", value.name)
        if isinstance(value, OpOverload):
            return ("operator", str(value))
        if isinstance(value, torch.Tensor):
            return ("tensor", *_description(value))
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise _NotKept("sizes of the graph are symbols")
        if isinstance(value, (HigherOrderOperator, OpOverloadPacket, GraphModule)):
            raise _NotKept(f"the graph has {value}")
        return None


def _description(value: torch.Tensor) -> tuple[Any, ...]:
    """All that the compiler reads of a fake tensor."""
    if not isinstance(value, FakeTensor) or value.layout != torch.strided:
        raise _NotKept(f"the graph has a value that is a {type(value).__name__}")
    if value.is_conj() or value.is_neg():
        raise _NotKept("the graph has a value that is conjugated or negated lazily")
    spec = (*value.shape, *value.stride(), value.storage_offset())
    if not all(isinstance(number, int) for number in spec):
        raise _NotKept("sizes of the graph are symbols")
    return (
        value.dtype,
        tuple(value.shape),
        value.stride(),
        value.storage_offset(),
        str(value.device),
    )


def _dump(gm: GraphModule) -> bytes:
    stream = io.BytesIO()
    pickler = _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL)
    nodes = list(gm.graph.nodes)
    strings: dict[str, str] = {}
    try:
        pickler.dump((len(nodes), _constants(gm)))
        for node in nodes:
            if node.op not in ("placeholder", "get_attr", "call_function", "output"):
                raise _NotKept(f"the graph has a node {node.op}")
            meta = {
                name: node.meta[name]
                for name in ("val", *KEPT_META)
                if node.meta.get(name) is not None
            }
            trace = meta.get("stack_trace")
            if trace is not None:
                # Equal ones are written once.
                meta["stack_trace"] = strings.setdefault(trace, trace)
            target = _target_name(node)
            pickler.dump((node.op, node.name, target, node.args, node.kwargs, meta))
    except _NotKept:
        raise
    except Exception as error:
        # Of what users attach to nodes, some cannot be pickled.
        raise _NotKept(f"the graph cannot be written: {error}") from error
    return zlib.compress(stream.getvalue(), 1)


def _constants(gm: GraphModule) -> dict[str, tuple[Any, ...]]:
    """What makes each tensor that the graph has as an attribute."""
    found: dict[str, tuple[Any, ...]] = {}
    for node in gm.graph.find_nodes(op="get_attr"):
        value = getattr(gm, node.target, None)
        if type(value) is not torch.Tensor:
            raise _NotKept(f"the graph has {node.target}, which is no tensor")
        # What the device rounded cannot always be read and written back.
        if value.device.type != "cpu" and value.numel():
            raise _NotKept(f"the graph has {node.target}, a tensor with values")
        with _disable_current_modes():
            found[node.target] = (
                value.dtype,
                tuple(value.shape),
                str(value.device),
                value.tolist(),
            )
    return found


def _make_constant(
    dtype: torch.dtype, sizes: tuple[int, ...], device: str, values: Any
) -> torch.Tensor:
    with _disable_current_modes():
        return torch.tensor(values, dtype=dtype, device=device).reshape(sizes)


def _target_name(node: Node) -> Any:
    """A target as it is written; operators are written by the pickler."""
    target = node.target
    if isinstance(target, (str, OpOverload)):
        return target
    module = getattr(target, "__module__", None)
    name = getattr(target, "__name__", "")
    if (
        module in _FUNCTION_MODULES
        and getattr(importlib.import_module(module), name, None) is target
    ):
        return (module, name)
    raise _NotKept(f"the graph calls {target}")


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.nodes: dict[str, Node] = {}
        self._mode = FakeTensorMode()
        self._tensors: dict[tuple[Any, ...], torch.Tensor] = {}

    def persistent_load(self, pid: Any) -> Any:
        kind, *rest = pid
        if kind == "node":
            return self.nodes[rest[0]]
        if kind == "operator":
            return _operator(rest[0])
        # Nothing distinguishes tensors that lie alike.
        key = tuple(rest)
        if key not in self._tensors:
            self._tensors[key] = self._make(*rest)
        return self._tensors[key]

    def _make(
        self,
        dtype: torch.dtype,
        sizes: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int,
        device: str,
    ) -> torch.Tensor:
        with self._mode:
            if offset == 0:
                return torch.empty_strided(sizes, strides, dtype=dtype, device=device)
            reach = offset + 1
            if 0 not in sizes:
                pairs = zip(sizes, strides, strict=True)
                reach += sum((n - 1) * t for n, t in pairs)
            whole = torch.empty(reach, dtype=dtype, device=device)
            return whole.as_strided(sizes, strides, offset)


@functools.cache
def _operator(name: str) -> OpOverload:
    namespace, packet, overload = name.split(".")
    found = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    assert isinstance(found, OpOverload)
    return found


def _load(content: bytes) -> GraphModule:
    unpickler = _Unpickler(io.BytesIO(zlib.decompress(content)))
    count, constants = unpickler.load()
    root = torch.nn.Module()
    for name, constant in constants.items():
        setattr(root, name, _make_constant(*constant))
    graph = Graph()
    for _ in range(count):
        op, name, target, args, kwargs, meta = unpickler.load()
        if isinstance(target, tuple):
            target = getattr(importlib.import_module(target[0]), target[1])
        node = graph.create_node(op, target, args, kwargs, name)
        node.meta = meta
        unpickler.nodes[name] = node
    # Nothing calls it, so that Python code of it is made only if somebody prints it.
    return _LazyGraphModule(root, graph)
