# SPDX-License-Identifier: Apache-2.0
"""Print what .venv needs, one requirement a line, as pyproject.toml says it.

usage: requirements.py [NAME]
Of a dependency group or an extra alone, or of the package, its extra `tests` and the
group `dev`.
pyproject.toml is the one place that names them.
"""

import sys

from project_metadata import read_pyproject

project = read_pyproject()
groups = project["dependency-groups"] | project["project"]["optional-dependencies"]
if len(sys.argv) > 1:
    requirements = groups[sys.argv[1]]
else:
    needed = project["project"]["dependencies"]
    requirements = needed + groups["tests"] + groups["dev"]
print("\n".join(requirements))
