# SPDX-License-Identifier: Apache-2.0
"""TORCH_LOGS and torch_spyre.logging_config: what is logged, and when."""

import logging
import os
import subprocess
import sys

import pytest
import torch
from torch_spyre import logging_config

PROGRAM = """
import torch
x = torch.ones(3, 5, dtype=torch.float16).to("spyre")
x + x
torch.compile(lambda a: torch.sort(a * 2)[0], backend="spyre")(x)
"""


def run(tmp_path, **variables):
    keep = {k: v for k, v in os.environ.items() if not k.startswith("SPYRE_")}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env={
            **keep,
            "SPYRE_CACHE_DIR": str(tmp_path),
            "TORCH_SPYRE_DOWNCAST_WARN": "0",
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=300,
    )


def logged(tmp_path, **variables):
    result = run(tmp_path, **variables)
    assert result.returncode == 0, result.stderr
    return result.stderr


def test_torch_logs(tmp_path):
    text = logged(tmp_path / "a", TORCH_LOGS="+spyre")
    for expected in (
        "aten.add.Tensor(float16[3, 5], float16[3, 5]) runs as a program",
        "aten.sort.default: the compiler has no such operator",
        "graph0: 3 operators, 1 programs, 2 steps outside them",
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


def test_legacy_variables(tmp_path):
    log = tmp_path / "log.txt"
    text = logged(tmp_path / "a", SPYRE_INDUCTOR_LOG="1", SPYRE_LOG_FILE=str(log))
    assert "graph0: 3 operators" in text
    assert "runs as a program" not in text
    assert "graph0: 3 operators" in log.read_text()
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
        logging_config.enable("spyre.execution")
        x * x
        logging_config.disable("spyre.execution")
        x / x
    finally:
        logging_config.set_log_file(None)
        logging_config.set_log_level("spyre.execution", logging.NOTSET)
    text = log.read_text()
    assert "aten.mul.Tensor(float16[7, 13], float16[7, 13])" in text
    assert "aten.div" not in text
    with pytest.raises(ValueError, match="expected a component of"):
        logging_config.enable("spyre.nothing")
    with pytest.raises(ValueError, match="Unknown level"):
        logging_config.set_log_level("spyre", "LOUD")


def test_runtime_is_heard_when_it_is_asked_for(caplog):
    x = torch.ones(5, 3, dtype=torch.float16).to("spyre")
    x + x
    with caplog.at_level(logging.DEBUG, "torch_spyre.runtime"):
        x + x
    x + x
    messages = [r.getMessage() for r in caplog.records if "launch of" in r.getMessage()]
    assert len(messages) == 1
    assert messages[0].startswith("spyre:0 stream 0: launch of ")
    assert messages[0].endswith(" with 2 arguments")
