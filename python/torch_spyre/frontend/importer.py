# SPDX-License-Identifier: Apache-2.0
"""From an FX graph of ATen operators to ``spyre_graph``.

One :class:`Importer` imports one compiled part of a graph: a run of FX nodes
that the compiler's ATen table takes. It keeps one program argument per storage
and makes every aliasing operator an explicit view of its storage.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from torch_spyre import _C, extensions
from torch_spyre.aten_table import table_operators
from torch_spyre.frontend.hints import HintReader, names_of
from torch_spyre.frontend.host_numbers import is_spyre
from torch_spyre.frontend.lowering import LoweringContext

aten = torch.ops.aten

#: Results of these are views of their first argument although the schema does
#: not say so: functionalisation leaves them where nothing else holds the input.
_VIEWS_OF_FRESH = {aten._unsafe_view.default, aten.lift.default, aten.alias.default}

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<text>\S+)')


@functools.cache
def is_view(target: Any) -> bool:
    """Whether an operator's result aliases its first argument without writing."""
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if target in _VIEWS_OF_FRESH:
        return True
    returns = target._schema.returns
    return bool(returns) and all(
        r.alias_info is not None and not r.alias_info.is_write for r in returns
    )


def has_row(target: Any) -> bool:
    """Whether a call can be imported, if its operands are what its row takes."""
    return (
        target is aten.copy_.default
        or is_view(target)
        or str(target) in table_operators()
    )


class RefusedNode(_C.UnsupportedOp):
    """The compiler's ATen table has no row for a node, or its row refuses it."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(reason)
        self.node = node


def at_line(error: _C.SpyreError) -> _C.SpyreError:
    """What a program for many sizes was refused for, with the user's line if one node
    was.
    """
    if not isinstance(error, RefusedNode):
        return error
    file, line = next(iter(location_of(error.node)), ("<graph>", 0, ""))[:2]
    return _C.UnsupportedOp(
        f"{file}:{line}: error: {error.node.target} has no program for many sizes: "
        f"{error}"
    )


def location_of(node: Node) -> list[tuple[str, int, str]]:
    """The user's stack at a node, innermost frame first."""
    return list(_frames_of(node.meta.get("stack_trace") or ""))


def trace_of(frames: list[tuple[str, int, str]]) -> str:
    """What ``location_of`` reads as these frames."""
    return "".join(
        f'File "{file}", line {line}, in {text}\n'
        for file, line, text in reversed(frames)
    )


@functools.lru_cache(maxsize=256)
def _frames_of(stack_trace: str) -> tuple[tuple[str, int, str], ...]:
    """Read once for layers that are alike: their nodes come from the same lines."""
    found = [
        (match["file"], int(match["line"]), match["text"])
        for match in _FRAME.finditer(stack_trace)
    ]
    return tuple(reversed(found))


class TensorSpec(NamedTuple):
    """How a tensor lies on its storage; sizes, strides, offset in elements."""

    dtype: torch.dtype
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @staticmethod
    def of(tensor: torch.Tensor, shift: int = 0) -> TensorSpec:
        """How a tensor lies, ``shift`` elements nearer to the storage's start."""
        return TensorSpec(
            tensor.dtype,
            tuple(int(s) for s in tensor.shape),
            tuple(int(s) for s in tensor.stride()),
            int(tensor.storage_offset()) - shift,
        )


@dataclass(frozen=True)
class StorageSpec:
    """A storage that a compiled part reads or writes: its home and layout."""

    dtype: torch.dtype
    home_sizes: tuple[int, ...]
    home_strides: tuple[int, ...]
    layout: _C.SpyreTensorLayout
    #: Names and sizes of the parts of each home dimension, for hints.
    dim_names: tuple[tuple[tuple[str, int], ...], ...] = ()
    #: Where ``layout`` is one of a storage with room: a dimension, and how many rows
    #: of that the program uses (``GraphBuilder.add_argument()``).
    room: tuple[int, Any] | None = None


@dataclass(frozen=True)
class InputKind:
    """All that a program depends on in its inputs."""

    storages: tuple[StorageSpec, ...]
    #: The storage of each input; they are numbered in the order of the inputs.
    owner: tuple[int, ...]
    specs: tuple[TensorSpec, ...]

    @staticmethod
    def of(
        inputs: Sequence[torch.Tensor], shifts: Sequence[int], is_named: bool = True
    ) -> InputKind:
        """The kind of inputs moved by ``shifts``, as ``TensorSpec.of()`` moves them.

        Names of dimensions are for hints; without these they are nothing to a program.
        """
        numbers: dict[int, int] = {}
        storages = []
        owner = []
        for tensor in inputs:
            identity, _, sizes, strides, layout, dtype = _C.tensor_info(tensor)
            if identity not in numbers:
                numbers[identity] = len(storages)
                names = names_of(identity) if is_named else ()
                storages.append(
                    StorageSpec(dtype, tuple(sizes), tuple(strides), layout, names)
                )
            owner.append(numbers[identity])
        specs = (TensorSpec.of(t, s) for t, s in zip(inputs, shifts, strict=True))
        return InputKind(tuple(storages), tuple(owner), tuple(specs))

    @property
    def first(self) -> list[int]:
        """The first input of each storage."""
        return [self.owner.index(number) for number in range(len(self.storages))]

    def of_first(self, count: int) -> InputKind:
        """The kind of so many inputs from the first on."""
        owner = self.owner[:count]
        used = max(owner, default=-1) + 1
        return InputKind(self.storages[:used], owner, self.specs[:count])


class Importer:
    """Builds the ``spyre_graph`` of one compiled part.

    ``values`` maps FX nodes to value ids of the builder; a node with several
    results maps to a list.
    """

    def __init__(self) -> None:
        self.builder = _C.GraphBuilder()
        self.values: dict[Node, Any] = {}
        #: By how much the offsets of views of a node's storage are moved: a
        #: graph input may lie elsewhere in its storage than when traced, and a
        #: computed value begins its storage, whatever its fake tensor says. A
        #: node with several results has one for each.
        self.offset_delta: dict[Node, Any] = {}
        #: Of a computed value that PyTorch's metadata gives gaps, and its views.
        self.gaps: dict[Node, _Gaps] = {}
        #: Host numbers, which are fp32 here whatever their tensor's dtype.
        self.numbers: set[Node] = set()
        #: Dtype and sizes of the builder's values.
        self.kinds: dict[int, tuple[torch.dtype, tuple[int, ...]]] = {}
        self._arguments: dict[int, int] = {}
        self._hints = HintReader()

    def spec_of(self, tensor: torch.Tensor) -> TensorSpec:
        """How a fake tensor lies."""
        return TensorSpec.of(tensor)

    def number_of(self, value: Any) -> Any:
        """What stands for a number of the host."""
        return value

    def gaps_of(self, result: torch.Tensor) -> _Gaps | None:
        """The gaps that PyTorch's metadata gives a computed value."""
        return _Gaps.of(result)

    def _result_spec(self, result: Any) -> tuple | None:
        if not is_on_device(result):
            return None
        spec = self.spec_of(result)
        strides = list(spec.strides)
        gaps = self.gaps_of(result)
        if gaps is not None:
            strides = [gaps.strides.get(s, s) for s in strides]
        return (spec.dtype, list(spec.sizes), strides)

    def _begins_storage(self, result: Any) -> int:
        """The offset delta of a computed value.

        PyTorch's metadata gives some (``select_scatter``) the offset of an operand.
        """
        if not isinstance(result, torch.Tensor):
            return 0
        return -self.spec_of(result).offset

    def add_storage(self, key: int, name: str, spec: StorageSpec) -> int:
        """Adds a program argument (once per ``key``); returns its value."""
        if key not in self._arguments:
            self._arguments[key] = self.builder.add_argument(
                name,
                spec.dtype,
                list(spec.home_sizes),
                list(spec.home_strides),
                spec.layout,
                spec.room,
            )
            if spec.dim_names:
                self.builder.set_dim_names(
                    self._arguments[key], [list(dim) for dim in spec.dim_names]
                )
        return self._arguments[key]

    def argument(self, key: int) -> int:
        """The value of the program argument that was added with this key."""
        return self._arguments[key]

    def add_tensor(
        self, argument: int, spec: TensorSpec, location: list[tuple[str, int, str]]
    ) -> int:
        """A tensor on the storage ``argument``; returns its value."""
        value = self.builder.view(
            argument, list(spec.sizes), list(spec.strides), spec.offset, location
        )
        self.kinds[value] = (spec.dtype, spec.sizes)
        return value

    def add_input(
        self, node: Node, argument: int, actual: TensorSpec, traced: Any
    ) -> None:
        """Binds ``node`` to a tensor on the storage ``argument``.

        ``traced`` is the fake tensor that downstream view metadata refers to.
        """
        self.values[node] = self.add_tensor(argument, actual, location_of(node))
        spec = self.spec_of(traced)
        self.offset_delta[node] = actual.offset - spec.offset
        if self.gaps_of(traced) is not None:
            strides = spec.strides
            if strides != actual.strides:
                # Another part computed it, and left no gaps.
                self.offset_delta[node] = -spec.offset
                pairs = (
                    (there, here)
                    for there, here, size in zip(
                        strides, actual.strides, actual.sizes, strict=True
                    )
                    if size > 1
                )
                self.gaps[node] = _Gaps(dict(pairs), actual.offset)

    def add_call(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        results: Sequence[Any],
        operand: Callable[[Any], Any],
        location: list[tuple[str, int, str]],
        hints: Sequence[Any] = (),
    ) -> list[int]:
        """Imports a call by its row; returns the values of its results.

        ``results`` are the fake results. ``operand`` gives what stands for a tensor
        to the builder, and NotImplemented for any other argument. Raises
        ``_C.UnsupportedOp`` and changes nothing if the table lacks it.
        """
        specs = [self._result_spec(r) for r in results]
        given = [_convert(a, operand) for a in args]
        named = {k: _convert(v, operand) for k, v in kwargs.items()}
        lowering = extensions.lowering_of(name)
        if lowering is not None:
            context = LoweringContext(
                lowering, self.builder, self.kinds, location, list(hints)
            )
            ids = context.lower(given, named, specs)
        else:
            ids = self.builder.op(name, given, named, specs, location, list(hints))
        for value, spec in zip(ids, specs, strict=True):
            if spec is not None:
                self.kinds[value] = (spec[0], tuple(spec[1]))
        return ids

    def _operand(self, value: Any) -> Any:
        if isinstance(value, _Cast):
            return _C.ValueId(value.id)
        if isinstance(value, Node):
            bound = self.values[value]
            return _C.ValueId(bound) if isinstance(bound, int) else bound.value
        return NotImplemented

    def add_node(self, node: Node, meta: Any) -> None:
        """Imports one call; ``meta`` is its fake result (or a tuple of them).

        Raises :class:`RefusedNode` and changes nothing if the table lacks it.
        """
        try:
            self._add_node(node, meta)
        except _C.UnsupportedOp as error:
            raise RefusedNode(node, str(error)) from error

    def _add_node(self, node: Node, meta: Any) -> None:
        target = node.target
        location = location_of(node)
        hints = self._hints.read(node)
        if target is operator.getitem:
            source, index = node.args
            self.values[node] = self.values[source][index]
            self.offset_delta[node] = self.offset_delta[source][index]
            if source in self.gaps:
                self.gaps[node] = self.gaps[source]
            return
        if is_view(target):
            self._add_view(node, meta, location)
            return
        if target is aten.copy_.default:
            destination, value = node.args[0], node.args[1]
            self.builder.mutate(self.values[destination], self.values[value], location)
            self.values[node] = self.values[destination]
            self.offset_delta[node] = self.offset_delta[destination]
            return
        results = wanted_results(target, node.args, meta)
        try:
            ids = self._add_op(node, results, hints)
        except _C.UnsupportedOp:
            # Some rows want operands of the result's type.
            dtype = results[0].dtype if is_on_device(results[0]) else None
            if dtype is None or not dtype.is_floating_point:
                raise
            if self.numbers.isdisjoint(node.all_input_nodes):
                raise
            ids = self._add_op(node, results, hints, cast_numbers_to=dtype)
        if isinstance(meta, (tuple, list)):
            self.values[node] = [
                i if is_on_device(r) else Constant(r)
                for i, r in zip(ids, results, strict=True)
            ]
            self.offset_delta[node] = [self._begins_storage(r) for r in results]
        else:
            self.values[node] = ids[0]
            self.offset_delta[node] = self._begins_storage(meta)
            gaps = self.gaps_of(meta) if is_on_device(meta) else None
            if gaps is not None:
                self.gaps[node] = gaps

    def _add_op(
        self,
        node: Node,
        results: Sequence[Any],
        hints: list,
        cast_numbers_to: torch.dtype | None = None,
    ) -> list[int]:
        location = location_of(node)

        def cast(source: Node) -> Any:
            if cast_numbers_to is None or source not in self.numbers:
                return source
            return _Cast(
                self.builder.op(
                    "prims.convert_element_type.default",
                    [_C.ValueId(self.values[source]), str(cast_numbers_to)],
                    {},
                    [(cast_numbers_to, [], [])],
                    location,
                )[0]
            )

        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), cast)
        return self.add_call(
            str(node.target), args, kwargs, results, self._operand, location, hints
        )

    def _add_view(self, node: Node, meta: Any, location: list) -> None:
        base = node.args[0]
        if not isinstance(base, Node):
            raise _C.UnsupportedOp(f"{node.target}: its argument is not a tensor")
        delta = self.offset_delta[base]
        gaps = self.gaps.get(base)
        if gaps is not None:
            self.gaps[node] = gaps

        def add(result: torch.Tensor) -> int:
            if result.dtype != _dtype_of(base):
                raise _C.UnsupportedOp(
                    f"a view as {result.dtype} of a tensor of {_dtype_of(base)}"
                )
            spec = self.spec_of(result)
            strides, offset = list(spec.strides), spec.offset + delta
            if gaps is not None:
                strides = [
                    gaps.closed(t) if n > 1 else t
                    for n, t in zip(spec.sizes, strides, strict=True)
                ]
                offset = gaps.closed(offset) + gaps.offset
            value = self.builder.view(
                self.values[base], list(spec.sizes), strides, offset, location
            )
            self.kinds[value] = (spec.dtype, spec.sizes)
            return value

        if isinstance(meta, (tuple, list)):
            self.values[node] = [add(m) for m in meta]
            self.offset_delta[node] = [delta] * len(meta)
        else:
            self.values[node] = add(meta)
            self.offset_delta[node] = delta


@dataclass(frozen=True)
class _Cast:
    """A value that stands for a node's in one call."""

    id: int


@dataclass(frozen=True)
class Constant:
    """What a node stands for that is no tensor of the device (None, a number)."""

    value: Any


def _convert(value: Any, operand: Callable[[Any], Any]) -> Any:
    """An argument of a call as the builder takes it."""
    found = operand(value)
    if found is not NotImplemented:
        return found
    if isinstance(value, (list, tuple)):
        return [_convert(v, operand) for v in value]
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value).removeprefix("torch.")
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, (torch.SymInt, torch.SymBool)):
        return int(value)
    if isinstance(value, torch.SymFloat):
        return float(value)
    return value


def _dtype_of(node: Node) -> torch.dtype:
    value = node.meta["val"]
    return value.dtype if isinstance(value, torch.Tensor) else value[0].dtype


@dataclass(frozen=True)
class _Gaps:
    """Strides of PyTorch's metadata, with gaps, and those that a value really has.

    Some results (``slice_scatter``) get the strides of an operand, whatever they are.
    """

    strides: dict[int, int]
    #: Where the value begins.
    offset: int = 0

    @staticmethod
    def of(result: torch.Tensor) -> _Gaps | None:
        """The gaps of a computed value, which has none here, by its metadata."""
        if result.is_contiguous():
            return None
        spec = TensorSpec.of(result)
        if 0 in spec.sizes:
            return None
        strides: dict[int, int] = {}
        reach, dense = 1, 1
        for stride, size in sorted(zip(spec.strides, spec.sizes, strict=True)):
            if size == 1:
                continue
            if stride < reach:
                return None  # elements on top of each other
            strides[stride] = dense
            reach, dense = stride * size, dense * size
        return None if reach == dense else _Gaps(strides)

    def closed(self, distance: int) -> int:
        """How far two elements are really apart."""
        result = 0
        for stride in sorted(self.strides, reverse=True):
            if stride > 0:
                result += distance // stride * self.strides[stride]
                distance %= stride
        if distance != 0:
            raise _C.UnsupportedOp(
                "a view of elements between those that were computed"
            )
        return result


def wanted_results(target: Any, arguments: Sequence[Any], results: Any) -> list:
    """A list; None for gradients that a call does not want, which meta functions give.

    ``arguments`` are those of the schema, of which the last may be missing.
    """
    if not isinstance(results, (tuple, list)):
        return [results]
    schema = getattr(target, "_schema", None)
    if schema is not None:
        for parameter, argument in zip(schema.arguments, arguments, strict=False):
            if parameter.name == "grad_input_mask":
                pairs = zip(results, argument, strict=True)
                return [result if is_wanted else None for result, is_wanted in pairs]
    return list(results)


def is_on_device(result: Any) -> bool:
    """Whether a fake result is on the device; those on meta stand for such.

    Eager calls ask PyTorch for results on meta. Other tensors, those of FX nodes too,
    are asked by ``is_spyre()``.
    """
    return is_spyre(result) or (isinstance(result, torch.Tensor) and result.is_meta)
