# SPDX-License-Identifier: Apache-2.0
import logging
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

# Who reads freed or undefined memory sees infinities, NaN in fp32.
os.environ["SPYRE_POISON_FREED"] = "1"
# Every pass is checked, not only the finished plan.
os.environ["SPYRE_VERIFY_EACH_PASS"] = "1"

# The extension is imported where a test has it already: most of the time of a file
# that calls the tools alone would go into `import torch`.

CHECK_SUPERDSC = os.environ.get("SPYRE_CHECK_SUPERDSC")

#: test_upstream_suites.py runs them.
collect_ignore = ["upstream"]

#: Files of which a few graphs are always taken through SuperDSC, too.
SAMPLED = {
    "test_compile_graphs",
    "test_compile_inputs",
    "test_compile_tiling",
    "test_hints",
    "test_integer_products",
    "test_models",
    "test_ops_contractions",
    "test_ops_movement",
    "test_ops_pointwise",
    "test_ops_reductions",
    "test_scaled_matmul",
}
SAMPLES = 8

#: Functions of Dynamo that write them.
CONFIGURATION_TEXTS = (
    "_get_dynamo_config_for_logging",
    "_scrubbed_inductor_config_for_logging",
    "_compiler_config_for_logging",
    "_functorch_config_for_logging",
)


def pytest_configure(config):
    if not CHECK_SUPERDSC:
        return
    from superdsc_check import SuperDSCChecker

    limit = os.environ.get("SPYRE_CHECK_SUPERDSC_LIMIT")
    config.superdsc = SuperDSCChecker(
        Path(CHECK_SUPERDSC), int(limit) if limit else None
    )
    config.superdsc.install()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    yield
    checker = getattr(item.config, "superdsc", None)
    if checker is not None:
        checker.check_pending()


def pytest_sessionfinish(session):
    checker = getattr(session.config, "superdsc", None)
    if checker is not None and not checker.report()[1]:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter, config):
    checker = getattr(config, "superdsc", None)
    if checker is not None:
        terminalreporter.write_line(checker.report()[0])


@pytest.fixture(autouse=True, scope="module")
def _superdsc_samples(request, tmp_path_factory):
    name = request.module.__name__
    if CHECK_SUPERDSC or name not in SAMPLED:
        yield
        return
    from superdsc_check import SuperDSCChecker

    checker = SuperDSCChecker(tmp_path_factory.mktemp("superdsc") / name, SAMPLES)
    checker.install()
    yield
    checker.uninstall()
    checker.check_pending()
    text, same = checker.report()
    assert same, text
    # What the main job runs is left out nowhere.
    assert name != "test_models" or "0 left out" in text, text


@pytest.fixture(autouse=True, scope="module")
def _compilations_are_not_observed():
    """PyTorch leaves out what costs a test that compiles a quarter of its time.

    For its metrics Dynamo writes down all of PyTorch's configurations. What
    TORCH_TRACE asks for, every graph among it, is written when anyone listens: pytest
    does, to each logger that keeps its records to itself.
    """
    if "torch" in sys.modules:
        import torch
        from torch._dynamo import utils

        for name in CONFIGURATION_TEXTS:
            setattr(utils, name, lambda: None)
        # Python collects what compilations leave when there is more of it.
        torch._dynamo.config.run_gc_after_compile = False
        trace = logging.getLogger("torch.__trace")
        for handler in list(trace.handlers):
            if type(handler).__module__ == "_pytest.logging":
                trace.removeHandler(handler)
        trace.propagate = True


@pytest.fixture(autouse=True, scope="session")
def _empty_program_cache():
    """Tests neither use nor leave programs, or traced graphs, in the user's caches."""
    names = ("SPYRE_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    before = {name: os.environ.get(name) for name in names}
    with tempfile.TemporaryDirectory(prefix="spyre-tests-") as folder:
        for name in names:
            os.environ[name] = os.path.join(folder, name)
        yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


def _variables() -> dict[str, str]:
    return {name: os.environ[name] for name in os.environ if "SPYRE" in name}


@contextmanager
def _same_variables(of):
    """Fails what leaves one of our variables of the environment changed.

    Later tests of the process would run with it, those of other files, too.
    """
    before = _variables()
    yield
    after = _variables()
    changed = [
        f"{name} from {before.get(name)!r} to {after.get(name)!r}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    for name in {*before, *after}:
        if name in before:
            os.environ[name] = before[name]
        else:
            del os.environ[name]
    if changed:
        pytest.fail(
            f"{of} leaves variables of the environment changed: {', '.join(changed)}",
            pytrace=False,
        )


@pytest.fixture(autouse=True, scope="module")
def _module_leaves_variables(request):
    with _same_variables(request.node.nodeid):
        yield


# Fixtures of this file begin before those of others, and end after them.
@pytest.fixture(autouse=True)
def _test_leaves_variables(request):
    with _same_variables(request.node.nodeid):
        yield


def _refusals() -> dict:
    """What the compiler refused in this process, if it is loaded at all."""
    refusals = sys.modules.get("torch_spyre.frontend.refusals")
    return refusals.refusals() if refusals else {}


@pytest.fixture(autouse=True)
def _fresh_reports(request):
    """Each test sees its own fallbacks, their warnings, and names of dimensions.

    A graph that gets no program fails the test, unless it says so (``refuse``): the
    operators would run one by one, and nothing would show what went wrong.
    """
    if "torch" in sys.modules:
        import torch_spyre.compile_backend
        from torch_spyre.frontend import hints

        torch_spyre.reset_fallback_report()
        hints.reset()
    before = _refusals()
    yield
    if "refuse" not in request.fixturenames:
        assert _refusals() == before


@pytest.fixture
def no_fallback():
    """Fails the test if an operator ran on the CPU."""
    import torch_spyre

    yield
    assert torch_spyre.fallback_report() == {}


@pytest.fixture
def without_gradients():
    import torch

    with torch.no_grad():
        yield


@pytest.fixture
def no_generated_cpp():
    """Inductor calls the CPU's operators, instead of having C++ compiled for 8 s."""
    from torch._inductor import config

    with config.patch(fallback_by_default=True):
        yield


@pytest.fixture
def no_traced_cache():
    """For many small graphs: their keys and copies in PyTorch's cache take an eighth
    of the time. Other files keep theirs, as users do.
    """
    from torch._functorch import config

    with config.patch(enable_autograd_cache=False):
        yield


@pytest.fixture
def listen(caplog):
    """A context in which the records of a logger, at a level, are kept.

    The loggers here do not propagate to the root, whose records caplog has by itself.
    """

    @contextmanager
    def listening(logger, level=logging.NOTSET):
        before = logger.level
        logger.addHandler(caplog.handler)
        if level:
            logger.setLevel(level)
        try:
            yield caplog.records
        finally:
            logger.removeHandler(caplog.handler)
            logger.setLevel(before)

    return listening
