# SPDX-License-Identifier: Apache-2.0
"""The first eager call of an operator of a kind: import and compile it.

``torch_spyre._C`` takes calls apart, keeps the programs and runs them; here an
operator becomes a graph of its own. The ATen table is asked first; what it
lacks is decomposed as for compiled graphs. In-place and ``out=`` variants run
the functional operator and store its results in their arguments.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._ops import OpOverload

from torch_spyre import _C, extensions
from torch_spyre.aten_table import table_operators
from torch_spyre.decompositions.results import RESULTS
from torch_spyre.decompositions.strides import arranged
from torch_spyre.decompositions.table import (
    OWN,
    decomposition_of,
    decompositions,
    goes_before_row,
    named_decompositions,
)
from torch_spyre.errors import ExtensionError, Unsupported
from torch_spyre.frontend import cache
from torch_spyre.frontend.eager_calls import (
    LIKE_SELF,
    Call,
    Shapes,
    WholeNumber,
    by_places,
    call_of,
    check_updated,
    check_written,
    constant_of,
    count_sizes,
    differ_in_size,
    fresh,
    has_say,
    in_lists,
    leaves,
    resize_written,
    undisturbed,
    with_sizes,
)
from torch_spyre.frontend.host_numbers import is_spyre
from torch_spyre.frontend.importer import (
    Constant,
    Importer,
    InputKind,
    RefusedNode,
    StorageSpec,
    is_on_device,
    trace_of,
    wanted_results,
)
from torch_spyre.frontend.operands import Operands
from torch_spyre.frontend.refused_dtypes import check_dtypes
from torch_spyre.frontend.refused_numbers import check_numbers

#: Answer to _C: an argument was resized, look the call up again.
RETRY = True


def _own(op: OpOverload) -> Callable | None:
    """What runs in place of an operator as it is."""
    given = extensions.decompositions().get(op)
    if given is not None:
        return by_places(op, given)
    return OWN.get(op) or named_decompositions().get(op)


_log = logging.getLogger("spyre.execution")
_refusals: Counter[tuple[str, str]] = Counter()
_size_refusals: Counter[tuple[str, str]] = Counter()


@dataclass
class Programs:
    """How many an operator has got in this process, from disk ones included."""

    one_size: int = 0
    many_sizes: int = 0


_programs: defaultdict[str, Programs] = defaultdict(Programs)


def programs() -> dict[str, Programs]:
    """Operator -> its programs."""
    return {name: replace(found) for name, found in _programs.items()}


def refusals() -> dict[tuple[str, str], int]:
    """(operator, reason) -> kinds of calls that got no program."""
    return dict(_refusals)


def size_refusals() -> dict[tuple[str, str], int]:
    """(operator, reason) -> times that calls of several sizes got no program for all,
    and so have one for each size.
    """
    return dict(_size_refusals)


def forget() -> None:
    """Everything known of operators: what they become has changed."""
    call_of.cache_clear()
    _C._forget_eager_programs()


def is_candidate(qualified: str, overload: str) -> bool:
    """Whether calls of an operator may have programs."""
    namespace, name = qualified.split("::")
    return call_of(namespace, name, overload) is not None


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
    moves the addresses accordingly. A ``generic`` program takes the floating and whole
    numbers of the call as arguments: -1 minus the number's index stands for the tensor.
    """
    namespace, name = qualified.split("::")
    call = call_of(namespace, name, overload)
    assert call is not None
    try:
        with undisturbed():
            program = _compile(call, arguments, shifts, generic)
        what = "a program for any numbers" if generic else "a program"
        _log.debug("%s%s runs as %s", call.name, Shapes(arguments), what)
        if program is not RETRY:
            _programs[call.name].one_size += 1
        return program
    except _C.UnsupportedOp as error:
        reason = str(error)
    except _C.SpyreError as error:
        reason = f"compiler: {error}"
    if generic:
        return None
    _refusals[call.name, reason.split("\n")[0]] += 1
    _log.info("%s%s has no program: %s", call.name, Shapes(arguments), reason)
    return None


def compile_sized(
    qualified: str,
    overload: str,
    arguments: list[Any],
    numbers: list[int],
    earlier: list[list[int]],
    generic: bool,
) -> Any:
    """The program of a call and of others of its form, as ``_C._set_eager_compiler``
    wants it.

    ``numbers`` are what _C leaves out of a form: per tensor its sizes, strides and
    offset, and where it is the first one on its storage, the sizes and strides of the
    home; then the SizeNumbers. ``earlier`` are those of earlier calls. Returns what
    ``compile_call()`` does, what each number is in the program, which ones are the
    symbols, and what is at least 0 in its calls; None if the calls have too little in
    common, False if such a program is refused.
    """
    from torch_spyre.frontend import eager_sizes

    namespace, name = qualified.split("::")
    call = call_of(namespace, name, overload)
    assert call is not None
    try:
        with undisturbed():
            tensors = list(leaves(arguments))
            count = count_sizes(arguments)
            operands = eager_sizes.operands_of(tensors, numbers, earlier, count)
            if operands is None:
                return None
            arguments = with_sizes(arguments, iter(operands.integers))
            metas = _infer(call, arguments, operands)
            if call.written:
                outs = [arguments[i] for i in call.written]
                check_written(call, arguments, metas)
                if any(differ_in_size(o, m) for o, m in zip(outs, metas, strict=True)):
                    return None  # compile_call() resizes them
                _check_sizes(arguments, call, operands, metas)
            program = _compile_for(call, arguments, operands, metas, generic)
            if not operands.is_settled:
                raise _C.UnsupportedOp(
                    "what it becomes on the device depends on the sizes of the call"
                )
        _log.debug("%s%s runs as one for many sizes", call.name, Shapes(arguments))
        _programs[call.name].many_sizes += 1
        return *program, operands.form, operands.places, operands.conditions
    except ExtensionError:
        raise
    except (Unsupported, _C.SpyreError) as error:
        # If the call itself is wrong, so is it with the sizes that it has.
        reason = str(error).split("\n")[0]
    _size_refusals[call.name, reason] += 1
    _log.info("%s%s has a program per size: %s", call.name, Shapes(arguments), reason)
    return False


def _written_places(call: Call, arguments: list[Any]) -> Iterator[tuple[int, int, int]]:
    """Of what is written: the argument's index, its tensor's, and its result's."""
    position = 0
    for index, argument in enumerate(arguments):
        if index in call.written:
            yield index, position, call.written.index(index)
        position += sum(1 for _ in leaves([argument]))


def _check_sizes(
    arguments: list[Any], call: Call, operands: Operands, metas: list[torch.Tensor]
) -> None:
    """What is written is as large as the result at all sizes of a program."""
    for index, tensor, result in _written_places(call, arguments):
        if not operands.agree(tensor, metas[result]):
            reason = f"argument {index} is not always as large as its result"
            raise _C.UnsupportedOp(reason)


class _Declined(_C.UnsupportedOp):
    """A decomposition returned NotImplemented."""


def _compile(call: Call, arguments: list[Any], shifts: list[int], generic: bool) -> Any:
    tensors = list(leaves(arguments))
    operands = Operands(tensors, InputKind.of(tensors, shifts, is_named=False))
    metas = _infer(call, arguments, operands)
    if call.written:
        outs = [arguments[i] for i in call.written]
        check_written(call, arguments, metas)
        if not call.is_out:
            check_updated(outs, metas)
        elif resize_written(outs, metas):
            return RETRY
    return _compile_for(call, arguments, operands, metas, generic)


def _compile_for(
    call: Call,
    arguments: list[Any],
    operands: Operands,
    metas: list[Any],
    generic: bool,
) -> Any:
    """The program of a call whose results are as inferred."""
    if generic and extensions.lowering_of(str(call.functional)) is not None:
        raise _C.UnsupportedOp(
            "lowerings of users see numbers, not what stands for one"
        )
    if generic and call.functional in extensions.decompositions():
        raise _C.UnsupportedOp("a decomposition of a user goes before its row")
    if not generic and goes_before_row(call.functional):
        try:
            table = decompositions()
            imported = _import_decomposed(call, arguments, operands, table, metas)
            return _finish(call, arguments, *imported)
        except _Declined:
            if str(call.functional) not in table_operators():
                raise
    try:
        if str(call.functional) not in table_operators():
            raise _C.UnsupportedOp(
                f"the compiler's table of operators has no row for {call.functional}"
            )
        imported = _import_row(call, arguments, operands, metas, generic)
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
        decomposition = decomposition_of(target)
        if decomposition is not None:
            table[target] = decomposition
        try:
            imported = _import_decomposed(call, arguments, operands, table, metas)
            return _finish(call, arguments, *imported)
        except RefusedNode as error:
            target = error.node.target
            if target in table or decomposition_of(target) is None:
                raise


def _infer(call: Call, arguments: list[Any], operands: Operands) -> list[Any]:
    """Results of the functional operator on tensors without values."""
    try:
        with operands.inference():
            metas = _infer_results(call, arguments, operands)
    except (ExtensionError, Unsupported):
        raise
    except Exception as error:
        # The CPU says what is wrong with the call, or knows how to run it.
        raise _C.UnsupportedOp(
            f"PyTorch cannot say the shapes of its results: {error}"
        ) from error
    check_dtypes(call.functional, arguments, metas)
    check_numbers(call, arguments, metas)
    return metas


# No nested function, for the reason of ``in_lists``.
def _stand_for(
    value: Any, call: Call, operands: Operands, tensors: Iterator[int]
) -> Any:
    """What an argument is while results are inferred; ``tensors`` counts tensors."""
    if isinstance(value, list):
        return [_stand_for(v, call, operands, tensors) for v in value]
    if is_spyre(value):
        return operands.inferred(next(tensors))
    # PyTorch lets a number meet tensors of any device, but for masked_fill's meta
    # function.
    is_number = isinstance(value, torch.Tensor) and value.dim() == 0
    if is_number and call.functional is torch.ops.aten.masked_fill.Tensor:
        return torch.empty_like(value, device=operands.results_on)
    return value


def _infer_results(call: Call, arguments: list[Any], operands: Operands) -> list[Any]:
    position = iter(range(len(operands.tensors)))
    every = [_stand_for(a, call, operands, position) for a in arguments]
    metas = [every[i] for i in call.inputs]
    values = [arguments[i] for i in call.inputs]
    if call.written and call.functional in LIKE_SELF:
        return metas[:1]
    try:
        results = call.invoke(
            metas,
            _stored_dtype(call, arguments),
            operands.results_on,
            RESULTS.get(call.functional),
        )
    except NotImplementedError:
        # PyTorch has no meta function (the overrideable convolutions, GRU).
        own = _own(call.functional)
        if own is None:
            raise
        results = own(*metas)
    return wanted_results(call.functional, values, results)


def _stored_dtype(call: Call, arguments: list[Any]) -> torch.dtype | None:
    return arguments[call.written[0]].dtype if call.is_factory else None


def _start(operands: Operands) -> tuple[Importer, list[int]]:
    """An importer with the storages; the one of each tensor."""
    importer, kind = operands.importer(), operands.kind
    storages = [
        importer.add_storage(i, f"x{i}", spec) for i, spec in enumerate(kind.storages)
    ]
    return importer, [storages[i] for i in kind.owner]


def _import_row(
    call: Call,
    arguments: list[Any],
    operands: Operands,
    metas: list[Any],
    generic: bool,
) -> tuple[Importer, list[int], list[int], Any]:
    """The operator by its own row of the ATen table."""
    importer, homes = _start(operands)
    kind = operands.kind
    used = kind.first
    numbers = 0
    views = [
        importer.add_tensor(home, spec, [])
        for home, spec in zip(homes, kind.specs, strict=True)
    ]
    position = iter(views)
    # Rows of bfloat16 have to know numbers that the device's 16 bits lack: these are in
    # programs, and in the keys of _C.
    dtypes = {getattr(t, "dtype", None) for t in (*operands.tensors, *metas)}

    def operand(value: Any) -> Any:
        nonlocal numbers
        if is_spyre(value):
            return _C.ValueId(next(position))
        is_number = isinstance(value, torch.Tensor)
        if is_number and has_say(value, operands.tensors):
            spec = (value.dtype, [], [])
            name, location = "aten.scalar_tensor.default", [call.location]
            return _C.ValueId(
                importer.builder.op(name, [value.item()], {}, [spec], location)[0]
            )
        is_whole = isinstance(value, WholeNumber) or hasattr(value, "is_whole_number")
        if is_number:
            value = value.item()
        if generic and (isinstance(value, float) or is_whole):
            numbers += 1
            if torch.bfloat16 in dtypes and _C._is_beyond_device(value):
                return value if is_number else NotImplemented
            dtype = operands.tensors[0].dtype if is_whole else torch.float32
            layout = _C.SpyreTensorLayout([], dtype)
            spec = StorageSpec(dtype, (), (), layout)
            used.append(-numbers)
            return _C.ValueId(importer.add_storage(-numbers, f"number{numbers}", spec))
        if isinstance(value, torch.SymInt):
            return importer.number_of(value)
        return value if is_number else NotImplemented

    positional, keywords = [], {}
    parameters = call.functional._schema.arguments[: len(call.inputs)]
    for parameter, index in zip(parameters, call.inputs, strict=True):
        if parameter.kwarg_only:
            keywords[parameter.name] = arguments[index]
        else:
            positional.append(arguments[index])
    ids = importer.add_call(
        str(call.functional), positional, keywords, metas, operand, [call.location]
    )
    results = [
        _C.ValueId(i) if is_on_device(m) else m for i, m in zip(ids, metas, strict=True)
    ]
    if isinstance(call.functional._schema.returns[0].type, torch.ListType):
        results = [results]
    return importer, used, views, results


def _import_decomposed(
    call: Call,
    arguments: list[Any],
    operands: Operands,
    table: dict[Any, Callable],
    metas: list[Any],
) -> tuple[Importer, list[int], list[int], Any]:
    """The operator as a graph of simpler ones."""
    graph, fakes, sizes = _trace(call, arguments, operands, table, metas)
    importer, homes = _start(operands)
    given = [n for n in graph.nodes if n.op == "placeholder"]
    placeholders = given[: len(fakes)]
    for node, size in zip(given[len(fakes) :], sizes, strict=True):
        importer.values[node] = Constant(importer.number_of(size))
    inputs = zip(placeholders, homes, operands.kind.specs, fakes, strict=True)
    for node, home, spec, fake in inputs:
        importer.add_input(node, home, spec, fake)
    views = [importer.values[n] for n in placeholders]
    output: Any = None
    for node in graph.nodes:
        value = node.meta.get("val")
        if node in importer.values:
            continue
        if isinstance(value, torch.SymFloat):
            if any(is_on_device(user.meta.get("val")) for user in node.users):
                importer.values[node] = importer.add_ratio(value)
                importer.numbers.add(node)
        elif isinstance(value, (torch.SymInt, torch.SymBool)):
            importer.values[node] = Constant(importer.number_of(value))
        elif node.op == "call_function":
            importer.add_node(node, node.meta["val"])
        elif node.op == "get_attr":
            importer.values[node] = Constant(constant_of(graph.owning_module, node))
        elif node.op == "output":
            output = node.args[0]

    results = _values_of(output, importer.values)
    return importer, operands.kind.first, views, results if call.is_tuple else [results]


def _values_of(value: Any, values: dict[torch.fx.Node, Any]) -> Any:
    if isinstance(value, (tuple, list)):
        return [_values_of(v, values) for v in value]
    if not isinstance(value, torch.fx.Node):
        return value
    found = values[value]
    return _C.ValueId(found) if isinstance(found, int) else found.value


def _trace(
    call: Call,
    arguments: list[Any],
    operands: Operands,
    table: dict[Any, Callable],
    metas: list[Any],
) -> tuple[torch.fx.Graph, list[torch.Tensor], list[torch.SymInt]]:
    """The graph, and its inputs: what stands for the tensors, and numbers."""
    from torch._subclasses.functional_tensor import dispatch_functionalize
    from torch.fx._lazy_graph_module import _use_lazy_graph_module
    from torch.fx.experimental.proxy_tensor import make_fx

    count = len(operands.tensors)
    position = iter(range(count))
    sizes: list[torch.SymInt] = []
    own = _own(call.functional)

    def number(value: Any) -> Any:
        if is_spyre(value):
            return _Slot(next(position))
        if isinstance(value, torch.SymInt):
            sizes.append(value)
            return _Slot(count + len(sizes) - 1)
        if isinstance(value, torch.Tensor) and own is not None:
            return value.item()
        return value

    slots = in_lists(number, arguments)

    def function(*values: Any) -> Any:
        def fill(value: Any) -> Any:
            return values[value.index] if isinstance(value, _Slot) else value

        inputs = [in_lists(fill, slots[i]) for i in call.inputs]
        if own is not None:
            results = own(*inputs)
            if results is NotImplemented:
                raise _Declined("its decomposition does not support these arguments")
        else:
            results = call.invoke(inputs, _stored_dtype(call, arguments), "spyre")
        if call.written:
            return results
        results = results if own is None else fresh(results, values)
        is_one = isinstance(results, torch.Tensor)
        return arranged(results, metas[0] if is_one else metas)

    try:
        # Nobody calls the graph, so no code is made of it.
        with operands.mode(), _use_lazy_graph_module(True):
            fakes = [operands.stand_in(i) for i in range(count)]
            traced = make_fx(
                dispatch_functionalize(function),
                decomposition_table=table,
                tracing_mode=operands.tracing_mode,
            )(*fakes, *sizes)
    except (ExtensionError, Unsupported, _Declined):
        raise
    except Exception as error:
        raise _C.UnsupportedOp(f"cannot be decomposed: {error}") from error
    traced.graph.eliminate_dead_code()
    trace = trace_of([call.location])
    for node in traced.graph.nodes:
        node.meta["stack_trace"] = trace
    return traced.graph, fakes, sizes


@dataclass(frozen=True)
class _Slot:
    index: int


def _finish(
    call: Call,
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
        if value is None:
            return None
        if isinstance(value, _C.ValueId):
            wanted.append(value.id)
            return len(wanted) - 1
        if isinstance(value, (int, torch.SymInt)):
            return ("integer", importer.number_of(value))
        raise _C.UnsupportedOp("a result is neither a tensor nor an integer")

    specs: list[Any] = []
    if call.written:
        for _, tensor, result in _written_places(call, arguments):
            builder.mutate(views[tensor], results[result].id, [])
    else:
        specs = in_lists(spec, results)
    infos = builder.set_outputs(wanted)
    if any(info.root < 0 for info in infos):
        raise _C.UnsupportedOp("a result shares the storage of an argument")
    graph = cache.load_or_compile(builder, {})
    return graph, used, list(infos), specs
