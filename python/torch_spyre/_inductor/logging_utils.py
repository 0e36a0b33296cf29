# SPDX-License-Identifier: Apache-2.0
"""Loggers of the compiler; ``torch_spyre.logging_config`` has all of logging."""

from __future__ import annotations

import logging

from torch_spyre import logging_config

_ROOT = "spyre.inductor"


def get_inductor_logger(name: str) -> logging.Logger:
    """The logger ``spyre.inductor.<name>``."""
    return logging_config.get_logger(f"{_ROOT}.{name}")


get_logger = get_inductor_logger

lowering_log = get_inductor_logger("lowering")
codegen_log = get_inductor_logger("codegen")
stickify_log = get_inductor_logger("stickify")
passes_log = get_inductor_logger("passes")


def is_inductor_logging_enabled() -> bool:
    """Whether the compiler's log shows what is compiled."""
    return logging.getLogger(_ROOT).isEnabledFor(logging.INFO)


def _needs_reinit() -> bool:
    """Whether the environment says something else than when levels were set."""
    return logging_config.has_environment_changed()


def update_log_level() -> None:
    """Set the levels again, if the environment says something else now."""
    if _needs_reinit():
        logging_config.configure_python_logging()


__all__ = [
    "codegen_log",
    "get_inductor_logger",
    "get_logger",
    "is_inductor_logging_enabled",
    "lowering_log",
    "passes_log",
    "stickify_log",
    "update_log_level",
]
