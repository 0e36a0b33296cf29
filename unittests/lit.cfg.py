# SPDX-License-Identifier: Apache-2.0
"""lit configuration of the GoogleTests: `lit build/unittests`.

Several processes share the tests of an executable; each loads libMLIR once.
"""

import os

import lit.formats

# No process of an executable takes longer than this, in seconds.
TIMEOUT = 900

config.name = "torch-spyre-unit"
config.test_format = lit.formats.GoogleTest(
    ".", "Tests", run_under=["timeout", str(TIMEOUT)]
)
config.excludes = ["CMakeFiles"]
config.test_source_root = os.path.join(config.spyre_obj_root, "unittests")
config.test_exec_root = config.test_source_root

# Tests see the caller's environment, as they do outside of lit.
config.environment.update(os.environ)
