# SPDX-License-Identifier: Apache-2.0
"""What the package logs, and how to see it.

Set ``TORCH_LOGS`` to ``"+spyre"`` (debug), ``"spyre"`` (info) or ``"-spyre"``
(errors); the name of a component can take the place of ``spyre``. Without
TORCH_LOGS, ``SPYRE_INDUCTOR_LOG=1`` turns the compiler's log on, at the level
``SPYRE_INDUCTOR_LOG_LEVEL`` (by default INFO). ``SPYRE_LOG_FILE`` names a file that
gets everything as well.
"""

from __future__ import annotations

import logging
import os

RUNTIME = "torch_spyre.runtime"

#: Component -> logger.
COMPONENTS = {
    "spyre": "torch_spyre",
    # Graphs compiled or loaded, with the seconds of the passes.
    "spyre.inductor": "torch_spyre.inductor",
    # Operators that the compiler does not take, with the reason.
    "spyre.inductor.lowering": "torch_spyre.inductor.lowering",
    # Kernels that store a tensor in another layout, per compiled program.
    "spyre.inductor.stickify": "torch_spyre.inductor.stickify",
    # The KTIR of every compiled program.
    "spyre.inductor.codegen": "torch_spyre.inductor.codegen",
    # The seconds of each pass.
    "spyre.inductor.passes": "torch_spyre.inductor.passes",
    # Cards that are put to use, every launch of a program.
    "spyre.runtime": RUNTIME,
    # First eager call of an operator of a kind.
    "spyre.execution": "torch_spyre.execution",
    # The device's configuration.
    "spyre.device": "torch_spyre.device",
}

_FORMAT = "%(asctime)s %(levelname)s [%(name)s] %(message)s"
_file_handler: logging.FileHandler | None = None


def get_logger(component: str) -> logging.Logger:
    """The logger of a component. Raises ValueError for an unknown one."""
    if component not in COMPONENTS:
        raise ValueError(
            f"expected a component of {list_components()}, found {component!r}"
        )
    return logging.getLogger(COMPONENTS[component])


def list_components() -> list[str]:
    """The names that TORCH_LOGS and the functions here take."""
    return list(COMPONENTS)


def set_log_level(component: str, level: int | str) -> None:
    """Set a component's level, and that of the components below it.

    Raises ValueError for an unknown component or level.
    """
    logger = get_logger(component)
    logger.setLevel(level)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_FORMAT))
        logger.addHandler(handler)


def enable(component: str = "spyre") -> None:
    """Show all that a component logs."""
    set_log_level(component, logging.DEBUG)


def disable(component: str = "spyre") -> None:
    """Show nothing that a component logs."""
    set_log_level(component, logging.CRITICAL + 1)


def set_log_file(path: str | os.PathLike[str] | None) -> None:
    """Write what is logged to a file too; None ends that. Raises OSError."""
    global _file_handler
    handler = None if path is None else logging.FileHandler(path)
    # Each by itself: torch._logging ends propagation.
    loggers = [get_logger(c) for c in COMPONENTS]
    if _file_handler is not None:
        for logger in loggers:
            logger.removeHandler(_file_handler)
        _file_handler.close()
    _file_handler = handler
    if handler is not None:
        handler.setFormatter(logging.Formatter(_FORMAT))
        for logger in loggers:
            logger.addHandler(handler)


def _level_from_environment() -> int | None:
    from torch_spyre import _C

    is_on = _C.read_environment("SPYRE_INDUCTOR_LOG")
    level = _C.read_environment("SPYRE_INDUCTOR_LOG_LEVEL")
    return logging.getLevelNamesMapping()[level] if is_on else None


class _Watched(logging.Logger):
    """Tells the runtime, which must not ask per launch, whether it is heard."""

    def setLevel(self, level: int | str) -> None:
        super().setLevel(level)
        from torch_spyre import _C

        logger = logging.getLogger(RUNTIME)
        is_heard = logger.isEnabledFor(logging.DEBUG)
        _C._set_runtime_log(logger.debug if is_heard else None)


def _watch() -> None:
    previous = logging.getLoggerClass()
    logging.setLoggerClass(_Watched)
    try:
        for name in (COMPONENTS["spyre"], RUNTIME):
            logging.getLogger(name)
    finally:
        logging.setLoggerClass(previous)


def register() -> None:
    """Tell torch._logging the names; torch sets the levels after this."""
    from torch._logging import _internal

    from torch_spyre import _C

    _watch()
    for component, logger in COMPONENTS.items():
        _internal.register_log(component, logger)
    level = _level_from_environment()
    if level is not None:
        _internal.log_state.enable_log([COMPONENTS["spyre.inductor"]], level)
    path = _C.read_environment("SPYRE_LOG_FILE")
    if path:
        try:
            set_log_file(path)
        except OSError as error:
            raise OSError(f"environment variable SPYRE_LOG_FILE: {error}") from error
