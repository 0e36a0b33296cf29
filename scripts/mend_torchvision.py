# SPDX-License-Identifier: Apache-2.0
"""Let PyPI's torchvision be imported beside torch for the CPU.

Its library of kernels is for CUDA and cannot be loaded here. torchvision then looks for
two operators that do not exist, and fails, and so does each model of transformers and
timm, which import it. This defines the two, without kernels, at the end of the module
of the installed package that loads the library. Where torchvision can be imported as
it is, or is not installed, nothing is done.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

OPERATORS = """

# Added by scripts/mend_torchvision.py.
if not hasattr(torch.ops.torchvision, "nms"):
    _library = torch.library.Library("torchvision", "FRAGMENT")
    for _name in ("nms", "qnms"):
        _library.define(f"{_name}(Tensor dets, Tensor scores, float limit) -> Tensor")
"""


def can_be_imported() -> bool:
    command = [sys.executable, "-c", "import torchvision"]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def main() -> int:
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None or can_be_imported():
        return 0
    with (Path(found.origin).parent / "extension.py").open("a") as module:
        module.write(OPERATORS)
    if can_be_imported():
        return 0
    print("torchvision cannot be imported", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
