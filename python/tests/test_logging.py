# SPDX-License-Identifier: Apache-2.0
"""TORCH_LOGS and torch_spyre.logging_config: what is logged, and when."""

import logging
import os
import subprocess
import sys

import pytest
import torch
from interpreters import run_python
from torch_spyre import logging_config
from torch_spyre._inductor import logging_utils

PROGRAM = """
import warnings
warnings.simplefilter("ignore")
import torch
x = torch.ones(3, 5, dtype=torch.float16).to("spyre")
x + x
torch.compile(lambda a: torch.igamma(a * 2, a), backend="spyre")(x)
"""


OURS = [name for name in os.environ if "SPYRE" in name]


def run(tmp_path, **variables):
    common = {"SPYRE_CACHE_DIR": str(tmp_path), "TORCH_SPYRE_DOWNCAST_WARN": "0"}
    return run_python(
        PROGRAM, without=OURS, ends_at_once=True, **{**common, **variables}
    )


def logged(tmp_path, **variables):
    result = run(tmp_path, **variables)
    assert result.returncode == 0, result.stderr
    return result.stderr


def test_torch_logs(tmp_path):
    text = logged(tmp_path / "a", TORCH_LOGS="+spyre")
    for expected in (
        "aten.add.Tensor(float16[3, 5], float16[3, 5]) runs as a program",
        "aten.igamma.default: the compiler has no such operator",
        "graph0: 2 operators, 1 programs, 1 steps outside them",
    ):
        assert text.count(expected) == 1, text
    assert text.count("convert-spyre-graph-to-ktir") == text.count("compiled ") == 2
    assert text.count("spyre:0 is put to use") == 1
    assert text.count("spyre:0 stream 0: launch of ") == 2
    assert text.count(" of 1 kernels change a layout") == 2
    assert text.count("func.func @main") == 2
    runtime = logged(tmp_path / "d", TORCH_LOGS="+spyre.runtime")
    assert runtime.count("spyre:0 stream 0: launch of ") == 2
    assert "compiled" not in runtime
    info = logged(tmp_path / "b", TORCH_LOGS="spyre.inductor")
    assert "compiled" in info and "graph0" in info
    assert "convert-spyre-graph-to-ktir" not in info and "aten.add" not in info
    assert logged(tmp_path / "c", TORCH_LOGS="-spyre") == ""
    assert "[INFO] [spyre.inductor] graph0: 2 operators, 1 programs" in info
    assert "[DEBUG] [spyre.execution] aten.add.Tensor(" in text


def test_levels_behind_a_colon(tmp_path):
    info = logged(tmp_path / "a", TORCH_LOGS="spyre.inductor:INFO")
    assert "graph0" in info and "convert-spyre-graph-to-ktir" not in info
    text = logged(
        tmp_path / "b", TORCH_LOGS="spyre:DEBUG, -spyre.inductor,spyre.runtime:error"
    )
    assert "aten.add.Tensor" in text and "graph0" not in text
    assert "launch of" not in text
    both = logged(tmp_path / "c", TORCH_LOGS="spyre.execution:10,recompiles,dynamo")
    assert "aten.add.Tensor" in both and "torch/_dynamo" in both
    for settings, expected in (
        ("spyre:LOUD", "environment variable TORCH_LOGS: 'spyre:LOUD': expected a"),
        ("spyre.inductor:DEBUG,nothing_like_it", "Invalid log settings"),
        ("spyre.inductor:", "Invalid log settings"),
    ):
        result = run(tmp_path / "d", TORCH_LOGS=settings)
        assert result.returncode == 1 and expected in result.stderr, settings


SHOW = """
import torch
from torch_spyre import logging_config as config
names = ("spyre", "spyre.inductor", "spyre.inductor.lowering", "spyre.other.name")
print([(int(config.get_log_level(n)), config.get_config_source(n)) for n in names])
"""


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, [(30, "default")] * 4),
        (
            {"TORCH_LOGS": "spyre.inductor:ERROR,+spyre.other"},
            [(30, "default")] + [(40, "TORCH_LOGS")] * 2 + [(10, "TORCH_LOGS")],
        ),
        (
            {"SPYRE_INDUCTOR_LOG": "1", "SPYRE_INDUCTOR_LOG_LEVEL": "debug"},
            [(30, "default")]
            + [(10, "legacy:SPYRE_INDUCTOR_LOG")] * 2
            + [(30, "default")],
        ),
        ({"TORCH_SPYRE_DEBUG": "1"}, [(10, "legacy:TORCH_SPYRE_DEBUG")] * 4),
        # TORCH_LOGS comes first, if it is about us.
        (
            {"TORCH_SPYRE_DEBUG": "1", "TORCH_LOGS": "spyre"},
            [(20, "TORCH_LOGS")] * 4,
        ),
        (
            {"TORCH_SPYRE_DEBUG": "1", "TORCH_LOGS": "inductor"},
            [(10, "legacy:TORCH_SPYRE_DEBUG")] * 4,
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_late", [False, True])
def test_where_levels_come_from(variables, expected, is_late):
    """Loaded with torch, or by hand after it, where torch knows no names of ours."""
    code = SHOW
    if is_late:
        if "TORCH_LOGS" in variables:
            pytest.skip("torch refuses names that it does not know when it is imported")
        variables = {**variables, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        code = "import torch, torch_spyre; torch_spyre._autoload()" + SHOW
    done = run_python(code, without=OURS, ends_at_once=True, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{expected}\n"


@pytest.mark.parametrize(
    "variables",
    [
        {"SPYRE_INDUCTOR_LOG": "1", "SPYRE_LOG_FILE": "log.txt"},
        {"TORCH_SPYRE_DEBUG": "1"},
    ],
    ids=str,
)
def test_former_variables_are_deprecated(variables, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", "import torch"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    for name in variables:
        assert f"DeprecationWarning: environment variable {name} is" in done.stderr


def test_legacy_variables(tmp_path):
    log = tmp_path / "log.txt"
    text = logged(tmp_path / "a", SPYRE_INDUCTOR_LOG="1", SPYRE_LOG_FILE=str(log))
    assert "graph0: 2 operators" in text
    assert "runs as a program" not in text
    assert "graph0: 2 operators" in log.read_text()
    for variables in (
        {"SPYRE_INDUCTOR_LOG": "perhaps"},
        {"SPYRE_INDUCTOR_LOG": "1", "SPYRE_INDUCTOR_LOG_LEVEL": "LOUD"},
        {"SPYRE_LOG_FILE": str(tmp_path / "no" / "folder")},
    ):
        result = run(tmp_path / "b", **variables)
        assert result.returncode != 0
        assert next(reversed(variables.values())) in result.stderr


def test_functions(tmp_path):
    assert "spyre.inductor.passes" in logging_config.list_components()
    log = tmp_path / "log.txt"
    logging_config.set_log_file(log)
    try:
        x = torch.ones(7, 13, dtype=torch.float16).to("spyre")
        logging_config.set_log_level("spyre.execution", "debug")
        x * x
        logging_config.disable("spyre.execution")
        x / x
    finally:
        logging_config.set_log_file(None)
        logging_config.set_log_level("spyre.execution", logging.NOTSET)
    text = log.read_text()
    assert "aten.mul.Tensor(float16[7, 13], float16[7, 13])" in text
    assert "aten.div" not in text
    for level in ("LOUD", None, True, 1.5):
        with pytest.raises(ValueError, match="expected a level"):
            logging_config.set_log_level("spyre", level)
    with pytest.raises(ValueError, match="expected a component's name"):
        logging_config.set_log_level(None, "INFO")


def test_nothing_is_traced_unasked():
    """Nor for pytest, which listens to whatever it finds: it takes a fifth as long."""
    x = torch.ones(5, 3, dtype=torch.float16).to("spyre")
    torch.compile(lambda a: a + 3, backend="spyre")(x)
    assert logging.getLogger("torch.__trace").handlers == []


@pytest.fixture
def restored():
    sources = dict(logging_config._sources)
    names = [*logging_config.COMPONENTS, "spyre.unheard"]
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging_config._sources.clear()
    logging_config._sources.update(sources)
    logging_config.set_log_file(None)


@pytest.mark.usefixtures("restored")
def test_levels_from_python():
    level = logging_config.LogLevel
    assert [(m.name, m.value) for m in level] == [
        *(("DEBUG", 10), ("INFO", 20), ("WARNING", 30), ("ERROR", 40)),
        *(("CRITICAL", 50), ("DISABLED", 60)),
    ]
    defaults = logging_config.DEFAULT_LOG_LEVELS
    assert len(defaults) == 9 and set(defaults.values()) == {level.WARNING}
    assert list(defaults) == logging_config.list_components()
    logging_config.enable("spyre.inductor")
    assert logging_config.get_log_level("spyre.inductor.passes") is level.INFO
    logging_config.disable("spyre.inductor.passes")
    logging_config.set_log_level("spyre.unheard", level.ERROR)
    assert logging_config.get_log_level("spyre.unheard.of") is level.ERROR
    logging_config.set_log_level("spyre.device", 35)
    effective = logging_config.get_effective_config()
    assert effective["spyre.inductor.codegen"] == "INFO"
    assert effective["spyre.inductor.passes"] == "DISABLED"
    assert effective["spyre.device"] == "Level 35"
    numbers = logging_config.get_config_for_cpp()
    assert numbers["spyre.inductor.passes"] == 60 and numbers["spyre.device"] == 35
    for name in ("spyre.inductor", "spyre.inductor.passes.one", "spyre.unheard"):
        assert logging_config.get_config_source(name) == "programmatic"
    assert logging_config.get_config_source("spyre.runtime") == "default"
    logging_config.configure_python_logging()
    assert logging_config.get_log_level("spyre.inductor.passes") is level.WARNING
    logging_config.initialize()


@pytest.mark.usefixtures("restored")
def test_the_log_file_is_known(tmp_path):
    log = tmp_path / "log.txt"
    nothing = {"log_file": None, "log_file_source": "default"}
    assert logging_config.get_output_config() == nothing
    logging_config.set_log_file(log)
    assert logging_config.get_log_file() == str(log)
    assert logging_config.get_output_config()["log_file_source"] == "programmatic"
    logging_config.set_log_file(None)
    assert logging_config.get_output_config() == nothing


@pytest.mark.usefixtures("restored")
def test_loggers_of_the_compiler(monkeypatch):
    logger = logging_utils.get_inductor_logger("mine")
    assert logger is logging.getLogger("spyre.inductor.mine")
    assert logger is logging_utils.get_logger("mine")
    for name in ("lowering", "codegen", "stickify", "passes"):
        own = getattr(logging_utils, f"{name}_log")
        assert own is logging.getLogger(f"spyre.inductor.{name}")
    assert not logging_utils.is_inductor_logging_enabled()
    assert not logging_utils._needs_reinit()
    monkeypatch.setenv("TORCH_LOGS", "spyre.inductor")
    assert logging_utils._needs_reinit()
    logging_utils.update_log_level()
    assert logging_utils.is_inductor_logging_enabled()
    assert not logging_utils._needs_reinit()
    monkeypatch.delenv("TORCH_LOGS")
    logging_utils.update_log_level()
    assert not logging_utils.is_inductor_logging_enabled()


def test_runtime_is_heard_when_it_is_asked_for(caplog):
    x = torch.ones(5, 3, dtype=torch.float16).to("spyre")
    x + x
    with caplog.at_level(logging.DEBUG, "spyre.runtime"):
        x + x
    x + x
    messages = [r.getMessage() for r in caplog.records if "launch of" in r.getMessage()]
    assert len(messages) == 1
    assert messages[0].startswith("spyre:0 stream 0: launch of ")
    assert messages[0].endswith(" with 2 arguments")


@pytest.mark.parametrize("varies", [False, True])
def test_warnings_of_the_compiler(listen, varies):
    x = torch.rand(4096, 64).half().to("spyre")
    if varies:
        torch._dynamo.mark_dynamic(x, 0, min=64, max=8192)
    largest = torch.compile(
        lambda t: t.argmax(0), backend="spyre", options={"mode": "reference"}
    )
    with listen(logging.getLogger("spyre.inductor"), "WARNING") as records:
        largest(x)
    assert sum("stays whole" in record.getMessage() for record in records) == 1
