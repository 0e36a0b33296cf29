# SPDX-License-Identifier: Apache-2.0
"""What the package logs, and how to see it.

``TORCH_LOGS`` names components: ``"spyre"`` shows what is compiled (level INFO),
``"+spyre"`` everything (DEBUG), ``"-spyre"`` errors only, and
``"spyre.inductor:WARNING"`` what has that level or a higher one. Entries with commas
between them are for several components, PyTorch's among them. Without any of ours,
``TORCH_SPYRE_DEBUG=1`` shows everything, and ``SPYRE_INDUCTOR_LOG=1`` the compiler's
log at the level ``SPYRE_INDUCTOR_LOG_LEVEL`` (by default INFO). ``SPYRE_LOG_FILE``
names a file that gets everything as well.

A component is the name of its logger; what has no level of its own has its parent's.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import warnings
from enum import IntEnum
from typing import Any

RUNTIME = "spyre.runtime"

#: The components.
COMPONENTS = (
    "spyre",
    # Graphs compiled or loaded, with the seconds of the passes.
    "spyre.inductor",
    # Operators that the compiler does not take, with the reason.
    "spyre.inductor.lowering",
    # Kernels that store a tensor in another layout, per compiled program.
    "spyre.inductor.stickify",
    # The KTIR of every compiled program.
    "spyre.inductor.codegen",
    # The seconds of each pass.
    "spyre.inductor.passes",
    # Cards that are put to use, every launch of a program.
    RUNTIME,
    # First eager call of an operator of a kind.
    "spyre.execution",
    # The device's configuration.
    "spyre.device",
)


class LogLevel(IntEnum):
    """The levels of Python's logging, and one above all."""

    DEBUG = logging.DEBUG
    INFO = logging.INFO
    WARNING = logging.WARNING
    ERROR = logging.ERROR
    CRITICAL = logging.CRITICAL
    DISABLED = 60


DEFAULT_LOG_LEVELS = dict.fromkeys(COMPONENTS, LogLevel.WARNING)

_FORMATTER = logging.Formatter("[%(levelname)s] [%(name)s] %(message)s")
#: What ``torch._logging`` knows the formatter by.
_FORMAT_NAME = "spyre"
_ENTRY = re.compile(r"(?P<sign>[+-]?)(?P<name>spyre(\.\w+)*)(:(?P<level>\w+))?")

_file_handler: logging.FileHandler | None = None
_file_source = "default"
#: Component -> where its level comes from.
_sources: dict[str, str] = {}
#: What the environment said when its levels were set last.
_last_environment: tuple[Any, ...] | None = None


def get_logger(component: str) -> logging.Logger:
    """The logger of a component; ``torch._logging`` prints it in our format."""
    logger = logging.getLogger(component)
    logger.artifact_name = _FORMAT_NAME  # type: ignore[attr-defined]
    return logger


def list_components() -> list[str]:
    """The names that TORCH_LOGS and the functions here take."""
    return list(COMPONENTS)


def _parse_level(level: int | str) -> int:
    if isinstance(level, str):
        name = level.upper()
        # Of a name that it does not know, it makes another.
        number = LogLevel.__members__.get(name, logging.getLevelName(name))
        if isinstance(number, str):
            raise ValueError(
                f"expected a level of {', '.join(LogLevel.__members__)}, or a number, "
                f"found {level!r}"
            )
        return int(number)
    if isinstance(level, bool) or not isinstance(level, int):
        raise ValueError(f"expected a level's name or number, found {level!r}")
    return int(level)


def set_log_level(component: str, level: int | str) -> None:
    """Set a component's level, and that of the components below it.

    Raises ValueError for an unknown level, and for a component that is no text.
    """
    if not isinstance(component, str):
        raise ValueError(f"expected a component's name, found {component!r}")
    number = _parse_level(level)
    logger = get_logger(component)
    logger.setLevel(number)
    _sources[component] = "programmatic"
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(_FORMATTER)
        logger.addHandler(handler)


def enable(component: str = "spyre") -> None:
    """Show what a component does (INFO)."""
    set_log_level(component, LogLevel.INFO)


def disable(component: str = "spyre") -> None:
    """Show nothing that a component logs."""
    set_log_level(component, LogLevel.DISABLED)


def get_log_level(component: str) -> int:
    """The level that holds for a component: its own or the nearest parent's."""
    level = logging.getLogger(component).getEffectiveLevel()
    return LogLevel(level) if level in set(LogLevel) else level


def get_effective_config() -> dict[str, str]:
    """Component -> name of the level that holds for it."""
    levels = {c: get_log_level(c) for c in COMPONENTS}
    return {
        c: level.name if isinstance(level, LogLevel) else logging.getLevelName(level)
        for c, level in levels.items()
    }


def get_config_source(component: str) -> str:
    """Where the level of a component, or of its nearest parent with one, comes from.

    ``"TORCH_LOGS"``, ``"legacy:VARIABLE"``, ``"programmatic"`` or ``"default"``.
    """
    while component:
        if component in _sources:
            return _sources[component]
        component = component.rpartition(".")[0]
    return "default"


def get_config_for_cpp() -> dict[str, int]:
    """Component -> number of the level that holds for it."""
    return {c: int(get_log_level(c)) for c in COMPONENTS}


def set_log_file(path: str | os.PathLike[str] | None) -> None:
    """Write what is logged to a file too; None ends that. Raises OSError."""
    global _file_handler, _file_source
    handler = None if path is None else logging.FileHandler(path)
    # Each by itself: torch._logging ends propagation.
    loggers = [get_logger(c) for c in COMPONENTS]
    if _file_handler is not None:
        for logger in loggers:
            logger.removeHandler(_file_handler)
        _file_handler.close()
    _file_handler = handler
    _file_source = "default" if handler is None else "programmatic"
    if handler is not None:
        handler.setFormatter(_FORMATTER)
        for logger in loggers:
            logger.addHandler(handler)


def get_log_file() -> str | None:
    """The file that gets what is logged, or None."""
    return None if _file_handler is None else _file_handler.baseFilename


def get_output_config() -> dict[str, str | None]:
    """``log_file``, and ``log_file_source`` as ``get_config_source()`` has it."""
    return {"log_file": get_log_file(), "log_file_source": _file_source}


def _split(settings: str) -> tuple[dict[str, int], str]:
    """Our entries of TORCH_LOGS as component -> level, and the others as they are."""
    levels: dict[str, int] = {}
    others = []
    signs = {"+": logging.DEBUG, "-": logging.ERROR, "": logging.INFO}
    for entry in settings.split(","):
        match = _ENTRY.fullmatch(re.sub(r"\s+", "", entry))
        if match is None:
            others.append(entry.strip())
        elif match["level"] is None:
            levels[match["name"]] = signs[match["sign"]]
        else:
            try:
                level = match["level"]
                level = int(level) if level.isdecimal() else level
                levels[match["name"]] = _parse_level(level)
            except ValueError as error:
                raise ValueError(
                    f"environment variable TORCH_LOGS: {entry.strip()!r}: {error}"
                ) from None
    return levels, ",".join(others)


def _warn_deprecated(variable: str, instead: str) -> None:
    warnings.warn(
        f"environment variable {variable} is deprecated for logs: set {instead}",
        DeprecationWarning,
        stacklevel=2,
    )


def _read_legacy() -> tuple[dict[str, int], str]:
    """Levels by the other variables, and the variable that gives them."""
    from torch_spyre import _C

    # Checked whatever else holds.
    is_on = _C.read_environment("SPYRE_INDUCTOR_LOG")
    level = _C.read_environment("SPYRE_INDUCTOR_LOG_LEVEL")
    if _C.read_environment("TORCH_SPYRE_DEBUG"):
        _warn_deprecated("TORCH_SPYRE_DEBUG", 'TORCH_LOGS="+spyre"')
        return {"spyre": logging.DEBUG}, "legacy:TORCH_SPYRE_DEBUG"
    if is_on:
        _warn_deprecated("SPYRE_INDUCTOR_LOG", 'TORCH_LOGS="spyre.inductor"')
        return {"spyre.inductor": _parse_level(level)}, "legacy:SPYRE_INDUCTOR_LOG"
    return {}, ""


def _read_levels(settings: str | None) -> tuple[dict[str, int], str | None]:
    """Our levels by the environment, and what of TORCH_LOGS is PyTorch's."""
    global _last_environment
    levels, others = ({}, None) if settings is None else _split(settings)
    source = "TORCH_LOGS"
    if not levels:
        levels, source = _read_legacy()
    _sources.clear()
    _sources.update(dict.fromkeys(levels, source))
    _last_environment = _environment()
    return levels, others


def _environment() -> tuple[Any, ...]:
    from torch_spyre import _C

    names = ("SPYRE_INDUCTOR_LOG", "SPYRE_INDUCTOR_LOG_LEVEL", "TORCH_SPYRE_DEBUG")
    return tuple(_C.read_environment(name) for name in ("TORCH_LOGS", *names))


def has_environment_changed() -> bool:
    """Whether the variables are no more what the levels were set by."""
    return _environment() != _last_environment


def configure_python_logging() -> None:
    """Set our levels as the environment has them now, and default ones otherwise."""
    from torch_spyre import _C

    levels, _ = _read_levels(_C.read_environment("TORCH_LOGS") or None)
    for component in {*COMPONENTS, *levels}:
        get_logger(component).setLevel(levels.get(component, logging.NOTSET))


class _Watched(logging.Logger):
    """Tells the runtime, which must not ask per launch, whether it is heard."""

    def setLevel(self, level: int | str) -> None:
        super().setLevel(level)
        from torch_spyre import _C

        logger = logging.getLogger(RUNTIME)
        is_heard = logger.isEnabledFor(logging.DEBUG)
        _C._set_runtime_log(logger.debug if is_heard else None)


def _watch() -> None:
    for name in ("spyre", RUNTIME):
        logger = logging.getLogger(name)
        if type(logger) is logging.Logger:
            logger.__class__ = _Watched


def _take_entries(internal: Any) -> None:
    """Has torch._logging leave our entries of TORCH_LOGS to us.

    Its parser refuses levels behind a colon, and names that it does not know.
    """
    parse = internal._parse_log_settings

    @functools.wraps(parse)
    def parse_log_settings(settings: str) -> Any:
        levels, others = _read_levels(settings)
        is_ours = levels and not others
        state = internal.LogState() if is_ours else parse(others)
        for component, level in levels.items():
            state.enable_log([component], level)
        return state

    internal._parse_log_settings = parse_log_settings


@functools.cache
def initialize() -> None:
    """Tell torch._logging our names; it sets the levels after this. Idempotent."""
    global _file_source
    from torch._logging import _internal

    from torch_spyre import _C

    _watch()
    _internal.log_registry.artifact_log_formatters[_FORMAT_NAME] = _FORMATTER
    for component in COMPONENTS:
        get_logger(component)
        _internal.register_log(component, component)
    _take_entries(_internal)
    if not _C.read_environment("TORCH_LOGS"):
        for component, level in _read_levels(None)[0].items():
            _internal.log_state.enable_log([component], level)
    if _internal.LOG_TRACE_HANDLER is not None:
        # PyTorch was imported without us and has set its levels already.
        _internal._init_logs()
    path = _C.read_environment("SPYRE_LOG_FILE")
    if path:
        _warn_deprecated("SPYRE_LOG_FILE", "TORCH_LOGS_OUT, or call set_log_file()")
        try:
            set_log_file(path)
        except OSError as error:
            raise OSError(f"environment variable SPYRE_LOG_FILE: {error}") from error
        _file_source = "legacy:SPYRE_LOG_FILE"
