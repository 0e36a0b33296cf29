# SPDX-License-Identifier: Apache-2.0
"""Make torch_spyre importable from .venv straight out of this source tree.

`pip install -e` would run a second CMake build of its own. Instead the build in
build/ is used as it is: a .pth file puts python/ on the path, a link in
python/torch_spyre points at the extension that was built, and a dist-info
folder declares the entry points, so that torch finds the backend and pip can
list and uninstall it. Commands in Python get a script in .venv/bin; those of C++
are in build/bin. After that a rebuild is all it takes.
"""

import base64
import hashlib
import json
import os
import sys
import sysconfig
from pathlib import Path

from project_metadata import read_pyproject

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "torch_spyre"


def write_if_different(path: Path, text: str) -> bool:
    """Write the file unless it already holds the text; say whether it was."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def link_extension() -> bool:
    """Point python/torch_spyre/_C*.so at the one in build/; say if that is new.

    The build of any other folder points the link at its own.
    """
    built = sorted((ROOT / "build" / "lib" / "Torch").glob("_C*.so"))
    if len(built) != 1:
        sys.exit(
            "install_editable: expected one build/lib/Torch/_C*.so, "
            f"found {len(built)}; build it first (make build)"
        )
    link = PACKAGE / built[0].name
    if link.is_symlink() and link.resolve() == built[0]:
        return False
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(built[0], PACKAGE))
    return True


def metadata(project: dict) -> dict[str, str]:
    """The files of the dist-info folder, RECORD excepted."""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {dependency}" for dependency in project["dependencies"]),
    ]
    entry_points = []
    for group, entries in project["entry-points"].items():
        entry_points.append(f"[{group}]")
        entry_points += [f"{name} = {value}" for name, value in entries.items()]
    return {
        "METADATA": "\n".join(lines) + "\n",
        "entry_points.txt": "\n".join(entry_points) + "\n",
        "INSTALLER": "scripts/install_editable.py\n",
        "direct_url.json": json.dumps(
            {"url": ROOT.as_uri(), "dir_info": {"editable": True}}
        )
        + "\n",
    }


def scripts(project: dict) -> dict[str, str]:
    """The commands in Python; in a wheel torch_spyre_tools starts those of C++."""
    found = {}
    for name, entry in project["scripts"].items():
        module, function = entry.split(":")
        if module != "torch_spyre_tools":
            found[name] = (
                f"#!{sys.executable}\nimport sys\n\nfrom {module} import {function}\n"
                f"\nsys.exit({function}())\n"
            )
    return found


def main() -> None:
    """Install, or find that everything is in place."""
    project = read_pyproject()["project"]
    site = Path(sysconfig.get_paths()["purelib"])
    name = project["name"].replace("-", "_")
    dist_info = f"{name}-{project['version']}.dist-info"
    for stale in site.glob(f"{name}-*.dist-info"):
        if stale.name != dist_info:
            sys.exit(
                f"install_editable: another version is installed in {stale}; "
                f"run .venv/bin/python -m pip uninstall {project['name']}"
            )

    files = {f"__editable__.{name}.pth": f"{PACKAGE.parent}\n"}
    for file, text in metadata(project).items():
        files[f"{dist_info}/{file}"] = text
    folder = os.path.relpath(sysconfig.get_paths()["scripts"], site)
    commands = {f"{folder}/{name}": text for name, text in scripts(project).items()}
    files |= commands
    record = []
    for file, text in files.items():
        digest = hashlib.sha256(text.encode()).digest()
        digest = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        record.append(f"{file},sha256={digest},{len(text.encode())}")
    record.append(f"{dist_info}/RECORD,,")
    files[f"{dist_info}/RECORD"] = "\n".join(record) + "\n"

    written = [write_if_different(site / file, text) for file, text in files.items()]
    for file in commands:
        (site / file).chmod(0o755)
    if link_extension() or any(written):
        print("==> installed torch_spyre into .venv, as a link to this tree")


if __name__ == "__main__":
    main()
