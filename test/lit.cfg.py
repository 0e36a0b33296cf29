# SPDX-License-Identifier: Apache-2.0
"""lit configuration: `lit -v build/test`, or `make test`, or one file of it.

Features that tests may ask for with REQUIRES:
  reference-data  the reference data is present (../shared/data beside the
                  clone, or the folder that SPYRE_REFERENCE_DATA names);
                  its path is %reference_data
Substitutions beyond lit's own: %python, %spyre_src, %spyre_obj.
"""

import os

import lit.formats

config.name = "torch-spyre"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = [
    "Inputs",
    "tool",
    "CMakeLists.txt",
    "lit.cfg.py",
    "lit.site.cfg.py.in",
]

config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.spyre_obj_root, "test")

config.environment["PATH"] = os.pathsep.join(
    [config.spyre_tools_dir, config.llvm_tools_dir, config.environment["PATH"]]
)

config.substitutions.append(("%python", config.python_executable))
config.substitutions.append(("%spyre_src", config.spyre_src_root))
config.substitutions.append(("%spyre_obj", config.spyre_obj_root))

reference_data = os.environ.get("SPYRE_REFERENCE_DATA") or os.path.join(
    config.spyre_src_root, os.pardir, "shared", "data"
)
reference_data = os.path.normpath(reference_data)
if os.path.isdir(reference_data):
    config.available_features.add("reference-data")
config.substitutions.append(("%reference_data", reference_data))
