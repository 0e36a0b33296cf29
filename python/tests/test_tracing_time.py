# SPDX-License-Identifier: Apache-2.0
"""What Dynamo leaves out while it traces for this package, and when it does not."""

import gc
import logging
import re
import resource
import subprocess
import sys
import traceback
from contextlib import nullcontext

import pytest
import torch
from torch._decomp.decompositions_for_rng import PhiloxState, PhiloxStateTracker
from torch._dynamo import (
    config,
    funcname_cache,
    guards,
    side_effects,
    symbolic_convert,
)
from torch._functorch import config as functorch_config
from torch_spyre import compile_backend
from torch_spyre.frontend import tracing_time
from torch_spyre.frontend.frames import with_room_for_frames


@pytest.fixture(autouse=True)
def _fresh():
    # scripts/run_tests.py has frozen what its processes share.
    gc.unfreeze()
    torch._dynamo.reset()
    funcname_cache.clearcache()
    tracing_time._next_look = None
    tracing_time._user_freezes = False
    yield
    torch._dynamo.reset()
    torch._logging.set_logs()
    assert config.side_effect_replay_policy == "info"
    assert symbolic_convert.get_funcname is funcname_cache.get_funcname
    assert "verbose" not in vars(config)


class Counter:
    def __init__(self):
        self.calls = 0

    def step(self, x):
        self.calls += 1
        return x * 2 + self.calls


def run(backend, device="spyre"):
    counter = Counter()
    x = torch.ones(5, dtype=torch.float16, device=device)
    result = torch.compile(counter.step, backend=backend)(x)
    assert counter.calls == 1 and result.tolist() == [3.0] * 5


def watch_frozen(monkeypatch):
    """Whether objects were frozen when this backend compiled, and in others."""
    seen = []
    kept_by_pytorch = compile_backend.kept_by_pytorch

    def watched(gm, options):
        seen.append(gc.get_freeze_count() > 0)
        return kept_by_pytorch(gm, options)

    monkeypatch.setattr(compile_backend, "kept_by_pytorch", watched)

    def other(gm, inputs):
        seen.append(gc.get_freeze_count() > 0)
        return gm

    return seen, other


# ------------------------------------------------------------------------------
# Python's garbage collector


def test_old_objects_are_not_collected_while_this_backend_traces(monkeypatch):
    seen, other = watch_frozen(monkeypatch)
    run("spyre")
    assert seen == [True] and gc.get_freeze_count() == 0
    torch._dynamo.reset()
    run(lambda gm, inputs: other(gm, inputs), "cpu")
    run("eager")
    assert seen == [True, False] and gc.get_freeze_count() == 0


def test_old_objects_are_collected_in_some_of_many_compilations(monkeypatch):
    """Each leaves garbage to the next."""
    seen, _ = watch_frozen(monkeypatch)
    for _ in range(4):
        if len(seen) == 2:
            monkeypatch.setattr(tracing_time, "_next_look", 0)
        torch._dynamo.reset()
        run("spyre")
    assert seen == [True, True, False, True]


def test_objects_are_thawed_after_errors():
    def breaks(x):
        torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(breaks, backend="spyre", fullgraph=True)(torch.ones(3))
    assert gc.get_freeze_count() == 0


def test_compilations_inside_one_another_are_no_freeze_of_the_user():
    for _ in range(2):
        with tracing_time._existing_objects_kept():
            with tracing_time._existing_objects_kept():
                assert gc.get_freeze_count() > 0
            assert gc.get_freeze_count() > 0
        assert gc.get_freeze_count() == 0


def test_what_the_user_froze_stays_frozen():
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        run("spyre")
        # Some of them may have been freed.
        assert 0.9 * count < gc.get_freeze_count() <= count
    finally:
        gc.unfreeze()


def test_what_the_user_froze_is_counted_once(monkeypatch):
    """Python walks through all of them, in 39 ms or more in a process of tests."""
    counts = []
    count = gc.get_freeze_count
    gc.freeze()
    try:
        with monkeypatch.context() as patches:
            patches.setattr(gc, "get_freeze_count", lambda: counts.append(1) or count())
            for _ in range(3):
                torch._dynamo.reset()
                run("spyre")
        assert len(counts) == 1 and gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


# ------------------------------------------------------------------------------
# Messages


def nobody_traces(monkeypatch):
    # PyTorch's own handler, which waits for the first message to see if it is to write.
    handlers = [torch._logging._internal.LazyTraceHandler(None)]
    monkeypatch.setattr(torch._logging._internal.trace_log, "handlers", handlers)


def test_messages_that_nobody_reads_are_not_made(monkeypatch):
    made = []
    add_file = funcname_cache._add_file
    describe = side_effects.SideEffects._format_side_effect_message
    monkeypatch.setattr(
        funcname_cache, "_add_file", lambda name: made.append(name) or add_file(name)
    )
    monkeypatch.setattr(
        side_effects.SideEffects,
        "_format_side_effect_message",
        lambda self, var: made.append(var) or describe(self, var),
    )
    nobody_traces(monkeypatch)
    run("spyre")
    assert made == []
    torch._dynamo.reset()
    run("eager")
    assert len(made) == 2


WHEN_CACHES_ARE_EMPTIED = [
    ("spyre", False, False),
    ("spyre", True, True),
    ("eager", False, True),
]


def messages(caplog, backend, name):
    """Of one logger, without what differs between processes."""
    torch._dynamo.reset()
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger=name):
        logger = logging.getLogger(name)
        logger.addHandler(caplog.handler)
        try:
            run(backend)
        finally:
            logger.removeHandler(caplog.handler)
    found = [r.getMessage() for r in caplog.records if r.name == name]
    return [re.sub(r"0x[0-9a-f]+", "", message) for message in found]


@pytest.mark.parametrize("backend, logs, emptied", WHEN_CACHES_ARE_EMPTIED)
def test_caches_are_emptied_where_the_time_of_guards_is_read(
    monkeypatch, backend, logs, emptied
):
    flushed = []
    profile = guards.profile_guard_manager
    monkeypatch.setattr(
        guards,
        "profile_guard_manager",
        lambda *args: flushed.append(args) or profile(*args),
    )
    torch._logging.set_logs(guards=logs)
    nobody_traces(monkeypatch)
    torch._dynamo.utils.clear_compilation_metrics()
    run(backend)
    assert bool(flushed) == emptied
    (metrics,) = torch._dynamo.utils.get_compilation_metrics()
    assert metrics.guard_latency_us is not None


@pytest.mark.parametrize(
    "artifact, module, expected",
    [
        ("trace_call", "output_graph", "(Counter.step)"),
        ("trace_source", "symbolic_convert", "(Counter.step)"),
        ("side_effects", "side_effects", "Mutating object of type Counter"),
    ],
)
def test_messages_that_are_read_are_complete(caplog, artifact, module, expected):
    torch._logging.set_logs(**{artifact: True})
    name = f"torch._dynamo.{module}.__{artifact}"
    # From one line, as the messages have the stack.
    own, other = (messages(caplog, backend, name) for backend in ("spyre", "eager"))
    assert own == other
    assert expected in "\n".join(own)


TRACED = """
import torch
class Counter:
    calls = 0
    def step(self, x):
        self.calls += 1
        return x + 1
torch.compile(Counter().step, backend="spyre")(torch.ones(3, device="spyre"))
"""


def test_torch_trace_has_side_effects(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_TRACE", str(tmp_path))
    script = tmp_path / "user.py"
    script.write_text(TRACED)
    subprocess.run([sys.executable, str(script)], check=True)
    (log,) = tmp_path.glob("*.log")
    assert "dynamo_side_effects" in log.read_text()


# ------------------------------------------------------------------------------
# Stack traces of nodes


def doubled(x, times):
    for _ in range(times):
        x = x * 2
    return x


def at_every_depth(x, depth):
    x = x + 1
    return x if depth == 0 else at_every_depth(x, depth - 1)


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.GELU())
        self.norm = torch.nn.LayerNorm(5)

    def forward(self, x):
        # Of modules of torch.nn, frames are left out.
        return self.norm(self.layers(x)) + self.layers(x) * sum(
            x[i].sum() for i in range(3)
        )


def traces_of(monkeypatch, function, backend):
    """The stack traces of nodes of Dynamo's graphs."""
    graphs = []

    def other(gm, inputs):
        graphs.append(gm)
        return gm

    kept_by_pytorch = compile_backend.kept_by_pytorch

    def own(gm, options):
        graphs.append(gm)
        return kept_by_pytorch(gm, options)

    torch._dynamo.reset()
    with monkeypatch.context() as patches:
        patches.setattr(compile_backend, "kept_by_pytorch", own)
        x = torch.ones(5, 5, dtype=torch.float16, device="spyre")
        torch.compile(function, backend=backend or other)(x)
    nodes = [node for gm in graphs for node in gm.graph.nodes]
    return [(node.name, node.meta.get("stack_trace")) for node in nodes]


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4, 6])
def test_stack_traces_of_functions_are_those_of_dynamo(monkeypatch, depth):
    def function(x):
        return doubled(x, 2) + at_every_depth(x, depth) + doubled(x, 1)

    # From one line, as they have it.
    expected, found = (
        traces_of(monkeypatch, function, backend) for backend in (None, "spyre")
    )
    assert found == expected
    assert found[-1] == ("output", None)
    assert "in doubled" in found[-2][1] or "in function" in found[-2][1]


def test_stack_traces_of_modules_are_those_of_dynamo(monkeypatch):
    model = Layers().half().to("spyre")
    expected, found = (
        traces_of(monkeypatch, model, backend) for backend in (None, "spyre")
    )
    assert found == expected and "in forward" in found[-2][1]


def test_lines_of_stack_traces_are_made_once(monkeypatch):
    def lines(times, backend):
        made = []
        make = traceback.StackSummary.format_frame_summary

        def count(self, frame):
            if frame.name == "doubled":
                made.append(frame)
            return make(self, frame)

        with monkeypatch.context() as patches:
            patches.setattr(traceback.StackSummary, "format_frame_summary", count)
            traces_of(patches, lambda x: doubled(x, times), backend)
        return len(made)

    assert lines(4, None) < lines(20, None)
    assert lines(4, "spyre") == lines(20, "spyre") > 0


# ------------------------------------------------------------------------------
# What is looked up


def test_verbosity_is_computed_once(monkeypatch):
    asked = []
    compute = type(config).__getattr__

    def count(self, name):
        asked.append((self is config, name))
        return compute(self, name)

    monkeypatch.setattr(type(config), "__getattr__", count)
    run("spyre")
    assert asked.count((True, "verbose")) == 1
    run("eager")
    assert asked.count((True, "verbose")) > 10


@pytest.mark.parametrize("verbose", [False, True])
def test_verbosity_is_the_one_that_was_set(monkeypatch, verbose):
    queues = []
    step = symbolic_convert.InstructionTranslatorBase.step

    def watched(self):
        queues.append(self.latest_bytecode_queue)
        return step(self)

    monkeypatch.setattr(symbolic_convert.InstructionTranslatorBase, "step", watched)
    with config.patch(verbose=verbose):
        run("spyre")
        assert config.verbose == verbose
    assert all(bool(queue) == verbose for queue in queues) and queues


COMPARED = """
import sys
import torch
def function(x):
    return x + 1
torch.compile(lambda x: function(x) * 2, backend=sys.argv[1])(torch.ones(3))
print("torch.distributed.tensor.experimental._func_map" in sys.modules)
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="it is not asked for")
@pytest.mark.parametrize("backend, imported", [("spyre", "False"), ("eager", "True")])
def test_modules_are_not_imported_to_compare_functions(backend, imported):
    command = [sys.executable, "-c", COMPARED, backend]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.split() == [imported]


@pytest.mark.skipif(not torch.distributed.is_available(), reason="there is none")
def test_functions_of_imported_modules_are_recognized(monkeypatch):
    from torch._dynamo.variables.higher_order_ops import (
        LocalMapWrappedHigherOrderVariable as Variable,
    )
    from torch.distributed.tensor.experimental import _func_map

    seen = []
    kept_by_pytorch = compile_backend.kept_by_pytorch

    def watched(gm, options):
        for value in (_func_map._local_map_wrapped, run):
            seen.append(Variable.should_wrap_in_hop(value))
        return kept_by_pytorch(gm, options)

    monkeypatch.setattr(compile_backend, "kept_by_pytorch", watched)
    monkeypatch.setattr(Variable, "_enabled", True)
    before = vars(Variable)["should_wrap_in_hop"]
    run("spyre")
    assert seen == [True, False]
    assert vars(Variable)["should_wrap_in_hop"] is before


# ------------------------------------------------------------------------------
# States of random numbers


@pytest.mark.parametrize("functionalized", [False, True])
@pytest.mark.parametrize("backend", ["spyre", "aot_eager"])
def test_states_of_random_numbers_are_made_where_they_are_read(
    monkeypatch, backend, functionalized
):
    made = []
    reset = PhiloxState.reset
    monkeypatch.setattr(
        PhiloxState, "reset", lambda self: made.append(self) or reset(self)
    )
    tracker = vars(PhiloxStateTracker)["reset"]
    # PyTorch has these graphs for CUDA only, and says so after it made the states.
    fails = pytest.raises(torch._dynamo.exc.BackendCompilerFailed)
    with (
        functorch_config.patch(functionalize_rng_ops=functionalized),
        fails if functionalized else nullcontext(),
    ):
        run(backend, "cpu")
    assert (made == []) == (backend == "spyre" and not functionalized)
    assert vars(PhiloxStateTracker)["reset"] is tracker


def most_faults(depth: int, calls: int) -> int:
    """The most page faults of as many calls of a function, from any of so many depths."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        abs_of(1)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    return max(faults, most_faults(depth - 1, calls) if depth else 0)


def abs_of(x):
    return abs(x)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="frames are objects")
def test_calls_do_not_get_memory_for_frames_again_and_again():
    # Each depth is at the end of a piece of memory somewhere.
    assert most_faults(100, 400) >= 400
    assert with_room_for_frames(most_faults, 100, 400) < 100


@pytest.mark.skipif(sys.version_info < (3, 11), reason="frames are objects")
def test_dynamo_traces_with_room_for_frames():
    faults = []

    def backend(graph, inputs):
        faults.append(most_faults(100, 400))
        return graph.forward

    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(3))
    assert len(faults) == 1
    assert faults[0] < 100
