# SPDX-License-Identifier: Apache-2.0
"""Print what .venv needs, one requirement a line, as pyproject.toml says it.

usage: requirements.py [GROUP]
Of a dependency group alone, or of the package, its extra `tests` and the group `dev`.
pyproject.toml is the one place that names them.
"""

import sys

from project_metadata import read_pyproject

project = read_pyproject()
groups = project["dependency-groups"]
if len(sys.argv) > 1:
    requirements = groups[sys.argv[1]]
else:
    extra = project["project"]["optional-dependencies"]["tests"]
    requirements = project["project"]["dependencies"] + extra + groups["dev"]
print("\n".join(requirements))
