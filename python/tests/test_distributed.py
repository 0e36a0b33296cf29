# SPDX-License-Identifier: Apache-2.0
"""Collectives between simulated cards, one process each; training on them."""

import socket
from pathlib import Path

import pytest
from interpreters import run_script

CHECKS = Path(__file__).with_name("distributed_checks.py")


def run(check, size):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCH_SPYRE_DOWNCAST_WARN": "0",
    }
    done = run_script(CHECKS, check, size, ends_at_once=True, **environment)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("size", [2, 8])
def test_collectives(size):
    run("collectives", size)


@pytest.mark.parametrize("size", [2, 4])
def test_training(size):
    run("training", size)


def test_long_training():
    run("long_training", 4)


@pytest.mark.parametrize(
    ("check", "size"), [("shared", 2), ("shared", 3), ("apart", 2), ("forbidden", 2)]
)
def test_memory_of_ranks(check, size):
    run(check, size)


@pytest.mark.parametrize(
    ("check", "size"), [("death", 2), ("death", 3), ("death_between", 3), ("hang", 3)]
)
def test_lost_rank(check, size):
    run(check, size)
