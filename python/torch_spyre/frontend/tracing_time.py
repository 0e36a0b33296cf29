# SPDX-License-Identifier: Apache-2.0
"""What Dynamo does for nobody while it traces for this package, left out.

Of the time to the first token of a model that is compiled already, most is Dynamo's
tracing. Some of that would go into looks for garbage among all objects of the process,
into texts of messages that no logger writes, and into texts and answers that are those
of the last time. For other backends Dynamo does what it does without this package.
"""

from __future__ import annotations

import gc
import logging
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import ModuleType
from typing import Any

from torch_spyre.frontend.frames import with_room_for_frames

#: So many collections of young objects (of 700 more by default than were freed, each)
#: may pass without a look at old ones: a first graph of 22 layers has about 400.
_YOUNG_COLLECTIONS = 1000
#: At how many of them in this process old objects are looked at again.
_next_look: int | None = None
#: Whether objects were frozen when a graph was compiled. To count them is to see each.
_user_freezes = False
#: Whether they are, for a compilation around this one or in another thread.
_has_frozen = False
#: Where the function is that Dynamo compares others with.
_LOCAL_MAP = "torch.distributed.tensor.experimental._func_map"


def wrap_compile(convert_frame: ModuleType) -> None:
    """Lets Dynamo's function that compiles a frame take less time for this backend."""
    original: Callable[..., Any] = convert_frame._compile

    @wraps(original)
    def _compile(
        code: Any,
        globals: Any,
        locals: Any,
        builtins: Any,
        closure: Any,
        compiler_fn: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        with ExitStack() as stack:
            if _is_own(compiler_fn):
                stack.enter_context(_existing_objects_kept())
                stack.enter_context(_unread_messages_left_out())
                stack.enter_context(_lines_of_stacks_made_once())
                stack.enter_context(_verbosity_at_hand())
                stack.enter_context(_modules_not_imported_to_compare())
                stack.enter_context(_random_states_left_out())
                stack.enter_context(_guards_timed_with_warm_caches())
            return with_room_for_frames(
                original,
                code,
                globals,
                locals,
                builtins,
                closure,
                compiler_fn,
                *args,
                **kwargs,
            )

    convert_frame._compile = _compile


def _is_own(compiler_fn: Any) -> bool:
    """Whether it is the backend ``spyre``, as ``torch.compile`` wraps it."""
    own = sys.modules.get("torch_spyre.compile_backend")
    if own is None:
        return False
    from torch._dynamo.eval_frame import innermost_backend

    backend = innermost_backend(compiler_fn)
    return getattr(backend, "compiler_fn", backend) is own.spyre


@contextmanager
def _existing_objects_kept() -> Iterator[None]:
    """Python's garbage collector only looks at objects that are made inside.

    A trace makes so many that it would look several times at all objects there are.
    Where one compilation follows another, some look at all: traces leave garbage.
    """
    global _next_look, _user_freezes, _has_frozen
    done = gc.get_stats()[0]["collections"]
    is_due = _next_look is not None and done >= _next_look
    if is_due or _next_look is None:
        _next_look = done + _YOUNG_COLLECTIONS
    # What is frozen already is the user's, and could not be told from ours afterwards.
    if not _has_frozen:
        _user_freezes = _user_freezes or gc.get_freeze_count() > 0
    if is_due or _has_frozen or _user_freezes:
        yield
        return
    gc.freeze()
    _has_frozen = True
    try:
        yield
    finally:
        _has_frozen = False
        gc.unfreeze()


@contextmanager
def _unread_messages_left_out() -> Iterator[None]:
    """Dynamo does not make messages for loggers and for ``TORCH_TRACE`` if unread."""
    from torch._dynamo import config, output_graph, side_effects, symbolic_convert

    with ExitStack() as stack:
        loggers = (
            output_graph.trace_call_log,
            symbolic_convert.trace_call_log,
            symbolic_convert.trace_source_log,
        )
        if not any(logger.isEnabledFor(logging.DEBUG) for logger in loggers):
            # Names the function of a line: reads and tokenizes the whole file.
            stack.callback(
                setattr, symbolic_convert, "get_funcname", symbolic_convert.get_funcname
            )
            symbolic_convert.get_funcname = lambda filename, line: None
        is_read = side_effects.side_effects_log.isEnabledFor(logging.DEBUG)
        if config.side_effect_replay_policy == "info" and not (is_read or _is_traced()):
            stack.enter_context(config.patch(side_effect_replay_policy="silent"))
        yield


def _is_traced() -> bool:
    """Whether structured messages are written (``TORCH_TRACE``).

    PyTorch's own handler goes when the first message comes, if it has no folder.
    """
    from torch._logging._internal import LazyTraceHandler, trace_log

    return any(
        not isinstance(handler, LazyTraceHandler) or handler.root_dir is not None
        for handler in trace_log.handlers
    )


@contextmanager
def _lines_of_stacks_made_once() -> Iterator[None]:
    """Dynamo makes the text of a frame once, not for each node made while it is there.

    Each node's ``stack_trace`` has the frames of all functions around it.
    """
    from torch._dynamo.output_graph import SubgraphTracer

    original = SubgraphTracer._maybe_preserve_original_meta
    texts: dict[tuple[Any, ...], str] = {}

    def preserve_original_meta(self: Any, tx: Any, node: Any) -> None:
        original(self, tx, node)
        # Dynamo makes the text only if it is not there; the output has none.
        if node.op != "output" and "stack_trace" not in node.meta:
            stack_trace = _stack_trace(tx, texts)
            if stack_trace is not None:
                node.meta["stack_trace"] = stack_trace

    SubgraphTracer._maybe_preserve_original_meta = preserve_original_meta
    try:
        yield
    finally:
        SubgraphTracer._maybe_preserve_original_meta = original


def _stack_trace(tx: Any, texts: dict[tuple[Any, ...], str]) -> str | None:
    """What Dynamo would attach to a node that is made now.

    None if functions call themselves: of many frames alike it would write some.
    """
    from torch.fx.experimental.symbolic_shapes import uninteresting_files

    left_out = uninteresting_files()
    found: list[str] = []
    last: tuple[Any, ...] | None = None
    while tx is not None:
        code, positions = tx.f_code, tx.current_instruction.positions
        frame = (code.co_filename, tx.lineno, code.co_name)
        columns = (positions.col_offset, positions.end_col_offset) if positions else ()
        key = (*frame, *columns)
        text = texts.get(key)
        if text is None:
            text = ""
            if not tx.is_co_filename_from_nn_modules() and frame[0] not in left_out:
                summary = traceback.StackSummary.from_list([tx.frame_summary()])
                text = "".join(summary.format())
            texts[key] = text
        if text:
            if frame == last:
                return None
            last = frame
            found.append(text)
        tx = getattr(tx, "parent", None)
    return "".join(reversed(found))


@contextmanager
def _verbosity_at_hand() -> Iterator[None]:
    """Dynamo asks before each instruction whether to be verbose, in 1 us.

    An attribute of the module itself is found before those that the module computes.
    """
    from torch._dynamo import config

    vars(config)["verbose"] = config.verbose
    try:
        yield
    finally:
        vars(config).pop("verbose", None)


@contextmanager
def _modules_not_imported_to_compare() -> Iterator[None]:
    """Dynamo imports no module to ask whether a function is one that is in there.

    The functions that it asks for are those that the model has, so that a module that
    nobody has imported has none of them. This one has much of ``torch.distributed``.
    """
    from torch._dynamo.variables.higher_order_ops import (
        LocalMapWrappedHigherOrderVariable,
    )

    original = vars(LocalMapWrappedHigherOrderVariable)["should_wrap_in_hop"]

    def should_wrap_in_hop(cls: Any, value: Any) -> bool:
        return _LOCAL_MAP in sys.modules and original.__func__(cls, value)

    LocalMapWrappedHigherOrderVariable.should_wrap_in_hop = classmethod(
        should_wrap_in_hop
    )
    try:
        yield
    finally:
        LocalMapWrappedHigherOrderVariable.should_wrap_in_hop = original


@contextmanager
def _random_states_left_out() -> Iterator[None]:
    """AOTAutograd makes no states of random numbers that no graph has.

    Before and after each graph it would make six empty tensors, traced like the graph's
    own. It reads them if ``functionalize_rng_ops`` is set.
    """
    from torch._decomp.decompositions_for_rng import PhiloxStateTracker
    from torch._functorch import config

    if config.functionalize_rng_ops:
        yield
        return
    original = vars(PhiloxStateTracker)["reset"]
    PhiloxStateTracker.reset = classmethod(lambda cls: None)
    try:
        yield
    finally:
        PhiloxStateTracker.reset = original


@contextmanager
def _guards_timed_with_warm_caches() -> Iterator[None]:
    """Dynamo empties the processor's caches only if somebody reads what it measures.

    That is how long the guards of a graph take, for a message and for its metrics.
    Emptying the caches before takes 20 ms of each graph.
    """
    from torch._dynamo import guards

    if guards.guards_log.isEnabledFor(logging.DEBUG) or _is_traced():
        yield
        return
    original = guards.profile_guard_manager

    def profile_guard_manager(root: Any, locals: Any, count: int) -> float:
        started = time.perf_counter()
        for _ in range(count):
            root.check(locals)
        return (time.perf_counter() - started) / count * 1e6

    guards.profile_guard_manager = profile_guard_manager
    try:
        yield
    finally:
        guards.profile_guard_manager = original
