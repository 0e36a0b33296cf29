# SPDX-License-Identifier: Apache-2.0
"""IBM Spyre for PyTorch: ``device="spyre"`` and ``torch.compile(backend="spyre")``.

``import torch`` loads this package by itself through the entry point
``torch.backends``; importing it first, later or twice is the same.
"""

import importlib

#: The version of the package, as pyproject.toml has it.
__version__ = "0.1.0"

_loaded = False


def _autoload() -> None:
    """Make ``spyre`` a PyTorch device. Idempotent; called by ``import torch``."""
    global _loaded
    if _loaded:
        return
    _loaded = True
    try:
        from torch_spyre import _registration

        _registration.register()
    except BaseException:
        _loaded = False
        raise


# After _autoload is defined: importing torch calls it while this module is
# still being imported, when this module comes first.
import torch  # noqa: E402, F401

_autoload()

from torch_spyre import _C, constants  # noqa: E402
from torch_spyre._C import (  # noqa: E402
    SpyreError,
    fallback_report,
    reset_fallback_report,
)


def make_spyre_module() -> object:
    """The module behind ``torch.spyre``."""
    from torch_spyre import device

    return device


#: Submodules that users of torch-spyre reach without importing them.
_MODULES = frozenset(
    [
        "_inductor",
        "_monkey_patch",
        "compile_backend",
        "device",
        "distributed",
        "execution",
        "extend",
        "frontend",
        "logging_config",
        "memory",
        "model_utils",
        "ops",
        "profiler",
        "streams",
        "version",
    ]
)


def __getattr__(name: str) -> object:
    # Not needed by `import torch`, which imports this package.
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "clear_cache":
        from torch_spyre.frontend.cache import clear_cache

        return clear_cache
    if name in ("declare_tensor_dim", "name_tensor_dims", "spyre_hint"):
        from torch_spyre.frontend import hints

        return getattr(hints, name)
    raise AttributeError(f"module 'torch_spyre' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


__all__ = [
    "_C",
    "SpyreError",
    "__version__",
    "clear_cache",
    "constants",
    "declare_tensor_dim",
    "fallback_report",
    "make_spyre_module",
    "name_tensor_dims",
    "reset_fallback_report",
    "spyre_hint",
]
