# SPDX-License-Identifier: Apache-2.0
"""The first eager call of an operator of a kind: import and compile it.

``torch_spyre._C`` takes calls apart, keeps the programs and runs them; here an
operator becomes a graph of its own. The ATen table is asked first; what it
lacks is decomposed as for compiled graphs. In-place and ``out=`` variants run
the functional operator and store its results in their arguments.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_map

from torch_spyre import _C, extensions
from torch_spyre.aten_table import table_operators
from torch_spyre.decompositions.quantized import RESULTS
from torch_spyre.decompositions.table import (
    OWN,
    all_decompositions,
    decompositions,
    named_decompositions,
)
from torch_spyre.errors import ExtensionError, Unsupported
from torch_spyre.frontend import cache
from torch_spyre.frontend.host_numbers import is_spyre
from torch_spyre.frontend.importer import (
    Constant,
    Importer,
    InputKind,
    RefusedNode,
    StorageSpec,
    is_on_device,
    is_view,
    wanted_results,
)

#: Answer to _C: an argument was resized, look the call up again.
RETRY = True


def _own(op: OpOverload) -> Callable | None:
    """What runs in place of an operator as it is."""
    given = extensions.decompositions().get(op)
    return given or OWN.get(op) or named_decompositions().get(op)


_log = logging.getLogger("spyre.execution")
_refusals: Counter[tuple[str, str]] = Counter()


def refusals() -> dict[tuple[str, str], int]:
    """(operator, reason) -> kinds of calls that got no program."""
    return dict(_refusals)


@dataclass(frozen=True)
class _Call:
    """How an overload is run: as which functional one, on which arguments."""

    name: str
    functional: OpOverload
    #: Positions of the functional overload's arguments, and of the written ones.
    inputs: tuple[int, ...]
    written: tuple[int, ...]
    #: The functional overload makes a tensor of a dtype and device, where the
    #: other one stores in a tensor that has them.
    is_factory: bool = False

    def invoke(
        self,
        arguments: list[Any],
        dtype: torch.dtype | None,
        device: Any,
        function: Callable | None = None,
    ) -> Any:
        """Runs the functional overload, as on meta or fake tensors, or ``function``."""
        schema = self.functional._schema.arguments
        positional, keywords = [], {}
        if self.is_factory:
            keywords = {"dtype": dtype, "device": device}
        for parameter, value in zip(schema, arguments, strict=not self.is_factory):
            if parameter.kwarg_only:
                keywords[parameter.name] = value
            else:
                positional.append(value)
        return (function or self.functional)(*positional, **keywords)


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


#: Results have sizes, strides and dtype of the first argument.
_LIKE_SELF = {
    torch.ops.aten.copy.default,
    torch.ops.aten.fill.Scalar,
    torch.ops.aten.fill.Tensor,
    torch.ops.aten.zero.default,
}
_FACTORY = ["dtype", "layout", "device", "pin_memory"]


def _find_functional(
    op: OpOverload,
) -> tuple[OpOverload, tuple[int, ...], bool] | None:
    """The overload without side effects, where its arguments are, is_factory."""
    arguments = op._schema.arguments
    name = op._schema.name.split("::")[1]
    is_out = any(a.is_out for a in arguments)
    if not is_out:
        if not name.endswith("_"):
            return None
        name = name[:-1]
    inputs = tuple(i for i, a in enumerate(arguments) if not a.is_out)
    wanted = [(arguments[i].name, str(arguments[i].type)) for i in inputs]
    packet = getattr(getattr(torch.ops, op.namespace), name, None)
    if packet is None:
        return None
    for overload in packet.overloads():
        candidate = getattr(packet, overload)
        schema = candidate._schema
        if any(_is_written(a) for a in schema.arguments) or is_view(candidate):
            continue
        found = [(a.name, str(a.type)) for a in schema.arguments]
        if found == wanted:
            return candidate, inputs, False
        if found[:-4] == wanted and [name for name, _ in found[-4:]] == _FACTORY:
            return candidate, inputs, True
    return None


@functools.cache
def _call_of(namespace: str, name: str, overload: str) -> _Call | None:
    op = getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
    schema = op._schema
    written = tuple(i for i, a in enumerate(schema.arguments) if _is_written(a))
    functional, inputs, is_factory = op, tuple(range(len(schema.arguments))), False
    if written:
        found = _find_functional(op)
        if found is None:
            return None
        functional, inputs, is_factory = found
    if is_view(functional):
        return None
    # A random operator's decomposition would draw the same numbers every time.
    random = torch.Tag.nondeterministic_seeded in functional.tags
    known = str(functional) in table_operators() or (
        not random
        and str(functional) not in extensions.names("fallback")
        and torch.Tag.data_dependent_output not in functional.tags
        and (functional in all_decompositions() or functional._can_decompose())
    )
    return _Call(str(op), functional, inputs, written, is_factory) if known else None


def forget() -> None:
    """Everything known of operators: what they become has changed."""
    _call_of.cache_clear()
    _C._forget_eager_programs()


def is_candidate(qualified: str, overload: str) -> bool:
    """Whether calls of an operator may have programs."""
    namespace, name = qualified.split("::")
    return _call_of(namespace, name, overload) is not None


def _leaves(values: Any) -> Iterator[torch.Tensor]:
    """The spyre tensors of a call, in the order that _C counts them."""
    for value in values:
        if isinstance(value, list):
            yield from _leaves(value)
        elif is_spyre(value):
            yield value


@contextmanager
def _undisturbed() -> Iterator[None]:
    """PyTorch without the modes of the code that called the operator."""
    from torch.utils._python_dispatch import _disable_current_modes

    with torch._C.DisableTorchFunction(), _disable_current_modes(), torch.no_grad():
        yield


def compile_call(
    qualified: str,
    overload: str,
    arguments: list[Any],
    shifts: list[int],
    generic: bool,
) -> Any:
    """The program of a call, as ``_C._set_eager_compiler`` wants it.

    (graph, tensor of the call per program argument, values, results); None if
    there is none; RETRY if an ``out=`` argument got another size. ``shifts`` says by
    how many elements the program sees each tensor nearer to its storage's start; _C
    moves the addresses accordingly. A ``generic`` program takes the floating numbers
    of the call as arguments: -1 minus the number's index stands for the tensor.
    """
    namespace, name = qualified.split("::")
    call = _call_of(namespace, name, overload)
    assert call is not None
    try:
        with _undisturbed():
            program = _compile(call, arguments, shifts, generic)
        what = "a program for any numbers" if generic else "a program"
        _log.debug("%s%s runs as %s", call.name, _Shapes(arguments), what)
        return program
    except _C.UnsupportedOp as error:
        reason = str(error)
    except _C.SpyreError as error:
        reason = f"compiler: {error}"
    if generic:
        return None
    _refusals[call.name, reason.split("\n")[0]] += 1
    _log.info("%s%s has no program: %s", call.name, _Shapes(arguments), reason)
    return None


class _Declined(_C.UnsupportedOp):
    """A decomposition returned NotImplemented."""


@dataclass(frozen=True)
class _Shapes:
    """Prints dtypes and sizes of the tensors of a call, if it is printed at all."""

    arguments: list[Any]

    def __str__(self) -> str:
        shapes = [
            f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}"
            for t in _leaves(self.arguments)
        ]
        return f"({', '.join(shapes)})"


def _compile(
    call: _Call, arguments: list[Any], shifts: list[int], generic: bool
) -> Any:
    tensors = list(_leaves(arguments))
    try:
        metas = _infer(call, arguments)
    except (ExtensionError, Unsupported):
        raise
    except Exception as error:
        # The CPU says what is wrong with the call, or knows how to run it.
        raise _C.UnsupportedOp(
            f"PyTorch cannot say the shapes of its results: {error}"
        ) from error
    if call.written:
        outs = [arguments[i] for i in call.written]
        _check_written(outs, metas)
        if _resize(outs, metas):
            return RETRY
    kind = InputKind.of(tensors, shifts, is_named=False)
    if generic and extensions.lowering_of(str(call.functional)) is not None:
        raise _C.UnsupportedOp(
            "lowerings of users see numbers, not what stands for one"
        )
    if call.functional in extensions.decompositions():
        if generic:
            raise _C.UnsupportedOp("a decomposition of a user goes before its row")
        try:
            table = decompositions()
            imported = _import_decomposed(call, arguments, tensors, kind, table)
            return _finish(call, arguments, *imported)
        except _Declined:
            if str(call.functional) not in table_operators():
                raise
    try:
        if str(call.functional) not in table_operators():
            raise _C.UnsupportedOp(
                f"the compiler's table of operators has no row for {call.functional}"
            )
        imported = _import_row(call, arguments, kind, metas, generic)
        return _finish(call, arguments, *imported)
    except _C.UnsupportedOp:
        if generic:
            raise
    table = dict(decompositions())
    target = call.functional
    while True:
        # What was refused is taken apart one by one. The next import is of another
        # program: PyTorch traces the call anew with one decomposition more, which takes
        # apart every node of the operator and shares no node with the last trace. (A
        # generic program, and the one by the row, have other operands and operations.)
        decomposition = all_decompositions().get(target)
        if decomposition is not None:
            table[target] = decomposition
        try:
            imported = _import_decomposed(call, arguments, tensors, kind, table)
            return _finish(call, arguments, *imported)
        except RefusedNode as error:
            target = error.node.target
            if target in table or target not in all_decompositions():
                raise


def _stand_in(tensor: torch.Tensor, device: Any) -> torch.Tensor:
    """A tensor without values, which may be seen as all that is behind another one.

    It begins its storage, wherever the other one lies: programs serve views that lie
    elsewhere (``compile_call()``). A view of nothing may lie behind all of its storage.
    """
    behind = tensor.untyped_storage().nbytes() // tensor.element_size()
    behind = max(behind - tensor.storage_offset(), 0)
    storage = torch.empty(behind, dtype=tensor.dtype, device=device)
    return storage.as_strided(tensor.shape, tensor.stride())


def _infer(call: _Call, arguments: list[Any]) -> list[Any]:
    """Results of the functional operator on meta tensors."""

    def to_meta(value: Any) -> Any:
        # PyTorch lets a number meet tensors of any device, but for masked_fill's meta
        # function.
        is_number = isinstance(value, torch.Tensor) and value.dim() == 0
        if not is_spyre(value) and not (
            is_number and call.functional is torch.ops.aten.masked_fill.Tensor
        ):
            return value
        return _stand_in(value, "meta")

    values = [arguments[i] for i in call.inputs]
    if call.written and call.functional in _LIKE_SELF:
        return [to_meta(values[0])]
    metas = tree_map(to_meta, values)
    try:
        results = call.invoke(
            metas,
            _stored_dtype(call, arguments),
            "meta",
            RESULTS.get(call.functional),
        )
    except (NotImplementedError, AttributeError):
        # PyTorch has no meta function (the overrideable convolutions, GRU), or one
        # that trips over absent biases (LSTM).
        own = _own(call.functional)
        if own is None:
            raise
        results = own(*metas)
    return wanted_results(call.functional, values, results)


def _stored_dtype(call: _Call, arguments: list[Any]) -> torch.dtype | None:
    return arguments[call.written[0]].dtype if call.is_factory else None


def _check_written(outs: list[torch.Tensor], metas: list[torch.Tensor]) -> None:
    if len(outs) != len(metas) or not all(isinstance(m, torch.Tensor) for m in metas):
        raise _C.UnsupportedOp(
            f"it stores into {len(outs)} arguments, but has {len(metas)} results"
        )
    for out, meta in zip(outs, metas, strict=True):
        if not isinstance(out, torch.Tensor):
            raise _C.UnsupportedOp("it stores into a list of tensors")
        if not torch.can_cast(meta.dtype, out.dtype):
            raise _C.UnsupportedOp(f"{meta.dtype} cannot be stored as {out.dtype}")


def _resize(outs: list[torch.Tensor], metas: list[torch.Tensor]) -> bool:
    """Gives out= tensors the sizes of the results; whether any had others."""
    changed = False
    for out, meta in zip(outs, metas, strict=True):
        if out.shape == meta.shape:
            continue
        changed = True
        if out.numel() != 0:
            warnings.warn(
                "An output with one or more elements was resized since it had shape "
                f"{list(out.shape)}, which does not match the required output shape "
                f"{list(meta.shape)}. This behavior is deprecated, and in a future "
                "PyTorch release outputs will not be resized unless they have zero "
                "elements.",
                stacklevel=2,
            )
        out.resize_(meta.shape)
        if out.stride() != meta.stride() and meta.is_non_overlapping_and_dense():
            out.as_strided_(meta.shape, meta.stride())
    return changed


def _start(kind: InputKind) -> tuple[Importer, list[int]]:
    """An importer with the storages; the one of each tensor."""
    importer = Importer()
    storages = [
        importer.add_storage(i, f"x{i}", spec) for i, spec in enumerate(kind.storages)
    ]
    return importer, [storages[i] for i in kind.owner]


def _import_row(
    call: _Call, arguments: list[Any], kind: InputKind, metas: list[Any], generic: bool
) -> tuple[Importer, list[int], list[int], Any]:
    """The operator by its own row of the ATen table."""
    importer, homes = _start(kind)
    used = kind.first
    numbers = 0
    views = [
        importer.add_tensor(home, spec, [])
        for home, spec in zip(homes, kind.specs, strict=True)
    ]
    position = iter(views)

    def operand(value: Any) -> Any:
        nonlocal numbers
        if is_spyre(value):
            return _C.ValueId(next(position))
        is_number = isinstance(value, torch.Tensor)
        if is_number:
            value = value.item()
        if generic and isinstance(value, float):
            numbers += 1
            layout = _C.SpyreTensorLayout([], torch.float32)
            spec = StorageSpec(torch.float32, (), (), layout)
            used.append(-numbers)
            return _C.ValueId(importer.add_storage(-numbers, f"number{numbers}", spec))
        return value if is_number else NotImplemented

    positional, keywords = [], {}
    parameters = call.functional._schema.arguments[: len(call.inputs)]
    for parameter, index in zip(parameters, call.inputs, strict=True):
        if parameter.kwarg_only:
            keywords[parameter.name] = arguments[index]
        else:
            positional.append(arguments[index])
    location = [("<eager>", 0, call.name)]
    ids = importer.add_call(
        str(call.functional), positional, keywords, metas, operand, location
    )
    results = [
        _C.ValueId(i) if is_on_device(m) else m for i, m in zip(ids, metas, strict=True)
    ]
    if isinstance(call.functional._schema.returns[0].type, torch.ListType):
        results = [results]
    return importer, used, views, results


def _import_decomposed(
    call: _Call,
    arguments: list[Any],
    tensors: list[torch.Tensor],
    kind: InputKind,
    table: dict[Any, Callable],
) -> tuple[Importer, list[int], list[int], Any]:
    """The operator as a graph of simpler ones."""
    graph, fakes = _trace(call, arguments, tensors, table)
    importer, homes = _start(kind)
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    inputs = zip(placeholders, homes, kind.specs, fakes, strict=True)
    for node, home, spec, fake in inputs:
        importer.add_input(node, home, spec, fake)
    views = [importer.values[n] for n in placeholders]
    output: Any = None
    for node in graph.nodes:
        if node.op == "call_function":
            importer.add_node(node, node.meta["val"])
        elif node.op == "get_attr":
            importer.values[node] = Constant(_constant(graph.owning_module, node))
        elif node.op == "output":
            output = node.args[0]

    def result(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return [result(v) for v in value]
        if not isinstance(value, torch.fx.Node):
            return value
        found = importer.values[value]
        return _C.ValueId(found) if isinstance(found, int) else found.value

    results = result(output)
    return importer, kind.first, views, results if _is_tuple(call) else [results]


def _is_tuple(call: _Call) -> bool:
    """Whether Python sees the results of the functional operator as a tuple."""
    return len(call.functional._schema.returns) != 1


def _constant(module: Any, node: torch.fx.Node) -> Any:
    value = getattr(module, node.target)
    if not isinstance(value, torch.Tensor) or value.dim() != 0:
        raise _C.UnsupportedOp(
            "its decomposition uses a constant tensor that has dimensions"
        )
    return value.item()


def _trace(
    call: _Call,
    arguments: list[Any],
    tensors: list[torch.Tensor],
    table: dict[Any, Callable],
) -> tuple[torch.fx.Graph, list[torch.Tensor]]:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch._subclasses.functional_tensor import dispatch_functionalize
    from torch.fx.experimental.proxy_tensor import make_fx

    position = iter(range(len(tensors)))
    own = _own(call.functional)

    def number(value: Any) -> Any:
        if isinstance(value, list):
            return [number(v) for v in value]
        if is_spyre(value):
            return _Slot(next(position))
        if isinstance(value, torch.Tensor) and own is not None:
            return value.item()
        return value

    slots = [number(a) for a in arguments]

    def function(*values: torch.Tensor) -> Any:
        def fill(value: Any) -> Any:
            if isinstance(value, list):
                return [fill(v) for v in value]
            if isinstance(value, _Slot):
                return values[value.index]
            return value

        inputs = [fill(slots[i]) for i in call.inputs]
        if own is not None:
            results = own(*inputs)
            if results is NotImplemented:
                raise _Declined("its decomposition does not support these arguments")
            return results
        return call.invoke(inputs, _stored_dtype(call, arguments), "spyre")

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        with mode:
            fakes = [_stand_in(t, t.device) for t in tensors]
            traced = make_fx(
                dispatch_functionalize(function), decomposition_table=table
            )(*fakes)
    except (ExtensionError, Unsupported, _Declined):
        raise
    except Exception as error:
        raise _C.UnsupportedOp(f"cannot be decomposed: {error}") from error
    traced.graph.eliminate_dead_code()
    return traced.graph, fakes


@dataclass(frozen=True)
class _Slot:
    index: int


def _finish(
    call: _Call,
    arguments: list[Any],
    importer: Importer,
    used: list[int],
    views: list[int],
    results: list[Any],
) -> Any:
    """Stores or returns the results, compiles, and says how to run it."""
    builder = importer.builder
    wanted: list[int] = []

    def spec(value: Any) -> Any:
        if isinstance(value, list):
            return [spec(v) for v in value]
        if value is None:
            return None
        if isinstance(value, _C.ValueId):
            wanted.append(value.id)
            return len(wanted) - 1
        if isinstance(value, int):
            return ("integer", value)
        raise _C.UnsupportedOp("a result is neither a tensor nor an integer")

    specs: list[Any] = []
    if call.written:
        position = 0
        for index, argument in enumerate(arguments):
            if index in call.written:
                target = views[position]
                builder.mutate(target, results[call.written.index(index)].id, [])
            position += sum(1 for _ in _leaves([argument]))
    else:
        specs = spec(results)
    infos = builder.set_outputs(wanted)
    if any(info.root < 0 for info in infos):
        raise _C.UnsupportedOp("a result shares the storage of an argument")
    graph = cache.load_or_compile(builder, {})
    return graph, used, list(infos), specs
