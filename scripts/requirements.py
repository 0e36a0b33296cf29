# SPDX-License-Identifier: Apache-2.0
"""Print what .venv needs, one requirement a line, as pyproject.toml says it.

pyproject.toml is the one place that names them.
"""

import tomllib
from pathlib import Path

project = tomllib.loads(
    (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
)
print(
    "\n".join(project["project"]["dependencies"] + project["dependency-groups"]["dev"])
)
