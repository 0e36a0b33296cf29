# SPDX-License-Identifier: Apache-2.0
"""The documentation is true: its examples run, its links lead somewhere.

Blocks in Python and shell of a page run in order, in one folder and with one set
of Python names. A comment right above a block says what is special:

  <!-- not run: REASON -->   nothing executes it
  <!-- file: NAME -->        the block's text is saved under this name first
  <!-- quoted from: FILE --> the block's text is in this file

Of a ```console block the lines after `$` run, and each of the others is a line
that the commands print. test/docs/pages.test checks the examples in MLIR.
"""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from doc_examples import blocks_of  # noqa: E402
from docs_pages import ROOT_FILES, constraints, makers  # noqa: E402

DOCS = ROOT / "docs"
SHELLS = ("sh", "console")
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"]
#: What the commands in these do takes minutes, or a clone of its own.
NOT_RUN = [ROOT / name for name in ROOT_FILES.values()]


def runs(block):
    return block.language in ("python", *SHELLS) and "not run" not in block.notes


def pages_with_examples():
    return [p for p in PAGES if any(map(runs, blocks_of(p.read_text())))]


def run_shell(block, folder):
    lines = block.text.splitlines()
    commands, expected = block.text, []
    if block.language == "console":
        commands = "\n".join(line[2:] for line in lines if line.startswith("$ "))
        expected = [line for line in lines if line and not line.startswith("$ ")]
    # Tools of the build that this package belongs to, then those of the system.
    tools = [str(ROOT / "build" / "bin"), str(Path(sys.executable).parent)]
    path = os.pathsep.join([*tools, os.environ["PATH"]])
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    printed = (result.stdout + result.stderr).splitlines()
    missing = [line for line in expected if line not in printed]
    assert not missing, f"{missing} not in {printed}"


def run_blocks(page, folder):
    names = {"__name__": "__main__"}
    for block in blocks_of(page.read_text()):
        if "file" in block.notes:
            (folder / block.notes["file"]).write_text(block.text + "\n")
        if not runs(block):
            continue
        if block.language in SHELLS:
            run_shell(block, folder)
        else:
            # Tracebacks, and errors of the compiler, name the page's lines.
            code = "\n" * block.line + block.text
            exec(compile(code, str(page), "exec"), names)


@pytest.mark.parametrize(
    "page", pages_with_examples(), ids=lambda p: str(p.relative_to(ROOT))
)
def test_examples_run(page, tmp_path, monkeypatch):
    import torch

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPYRE_DUMP_DIR", raising=False)
    torch.compiler.reset()
    # Dumps are numbered by how many graphs a process has compiled.
    monkeypatch.setattr("torch_spyre.frontend.traced._counter", itertools.count())
    # Examples set variables of the environment as users do, for good.
    with mock.patch.dict(os.environ):
        run_blocks(page, tmp_path)


def test_blocks_say_what_they_are():
    """A block without a language would be run by nothing, unnoticed."""
    known = {"python", "mlir", "cpp", "json", "yaml", "text", "tablegen", "cmake"}
    known |= set(SHELLS)
    for page in PAGES:
        if (DOCS / "spec") in page.parents:
            continue
        for block in blocks_of(page.read_text()):
            assert block.language in known, f"{page}:{block.line}"


def anchor_of(heading):
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    text = re.sub(r"[^\w\s-]", "", text)
    return re.sub(r"[\s-]+", "-", text.strip())


def prose(page):
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)


def test_links_lead_somewhere():
    made = {DOCS / name for name in makers()}
    broken = []
    for page in PAGES + NOT_RUN:
        for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose(page)):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            path = Path(os.path.normpath(page.parent / file)) if file else page
            if not path.exists() and path not in made:
                broken.append(f"{page.relative_to(ROOT)}: {target}")
            elif anchor and path.suffix == ".md" and path not in made:
                found = re.findall(r"^#+ (.*)$", prose(path), flags=re.M)
                if anchor not in map(anchor_of, found):
                    broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken


def test_files_that_pages_name_exist():
    """Paths from the root of the repository, in code font."""
    rooms = "include|lib|tools|python|test|unittests|examples|benchmarks|scripts|docs"
    path = re.compile(rf"`((?:{rooms})/[\w./-]+)`")
    missing = [
        (page.relative_to(ROOT), name)
        for page in PAGES
        for name in path.findall(page.read_text())
        if not (ROOT / name).exists()
    ]
    assert not missing


def test_navigation_has_every_page():
    text = (ROOT / "mkdocs.yml").read_text()
    listed = re.findall(r"([\w/.-]+\.md)$", text[text.index("\nnav:") :], flags=re.M)
    assert len(listed) == len(set(listed))
    pages = {p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md")}
    assert set(listed) == pages | set(makers())


def test_the_python_page_has_what_users_import():
    import torch_spyre
    from torch_spyre import extend, model_utils, predict, testing

    page = makers()["reference/python.md"]()
    headings = set(re.findall(r"^### `(.*)`$", page, flags=re.M))
    public = {
        name
        for module in (extend, model_utils, predict, testing, torch_spyre)
        for name in module.__all__
        if getattr(getattr(module, name), "__module__", "_C") != "torch_spyre._C"
    }
    inside = {"_C", "__version__", "constants", "make_spyre_module"}
    inside |= {"fallback_report", "reset_fallback_report"}
    assert public - inside <= headings
    # Properties are no methods, and types are not torn apart.
    assert "- `id: int`" in page and "`id()" not in page
    assert "changes: dict[str, Sequence[Any]],\n" in page
    assert not re.search(r":\w+:`", page)


def test_keys_of_reports_are_documented():
    import torch
    from torch_spyre.compile_backend import CompiledPart, compiled_parts
    from torch_spyre.predict import predict

    torch.compile(torch.exp, backend="spyre")(torch.ones(3, device="spyre"))
    listed = re.findall(r"^ +(\w+): ", CompiledPart.report.__doc__, flags=re.M)
    assert listed == list(compiled_parts()[-1].report()[0])

    model = torch.nn.Sequential(torch.nn.Embedding(131, 64), torch.nn.Linear(64, 64))
    result = predict(model, prompt=3)
    phase = result["phases"]["prefill"]
    page = (DOCS / "guide" / "predict.md").read_text()
    tables = re.findall(r"\| key of (?:the result|a phase) .*?\n\n", page, flags=re.S)
    for table, found in zip(tables, (result, phase), strict=True):
        rows = re.findall(r"^\| (`[^|]*) \|", table, flags=re.M)
        keys = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
        of_decode = {"time_per_token_seconds", "tokens_per_second"}
        assert keys - of_decode == set(found)
    for name in (*phase["bytes"], *phase["parts"][0]):
        assert f"`{name}`" in tables[1]


def test_versions_to_install_are_those_of_the_project():
    project = (ROOT / "pyproject.toml").read_text()
    named = {
        (page.relative_to(ROOT), requirement)
        for page in PAGES
        for requirement in re.findall(r"pip install ([\w-]+==[\w.]+)", page.read_text())
    }
    assert named
    assert not [(p, r) for p, r in named if f'"{r}"' not in project]


def test_what_the_test_frameworks_need_can_be_installed():
    """There is no package with this extra to download."""
    extra = re.search(
        r"^tests = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), flags=re.M
    )
    command = "pip install " + extra[1].replace('"', "").replace(",", "")
    package = ROOT / "python" / "torch_spyre" / "testing"
    places = [DOCS / "guide" / "test-frameworks.md"]
    places += [package / "__init__.py", package / "located.py"]
    assert [place for place in places if command not in place.read_text()] == []
    for page in (*PAGES, *package.glob("*.py")):
        assert "install torch-spyre[" not in page.read_text(), page


def test_every_command_is_in_the_table_of_tools():
    project = (ROOT / "pyproject.toml").read_text()
    commands = set(re.findall(r"^(spyre-[\w-]+) = ", project, flags=re.M))
    page = (DOCS / "reference" / "options.md").read_text()
    table = page[page.index("## Tools") :]
    assert len(commands) == 8
    assert commands == set(re.findall(r"^\| `(spyre-[\w-]+)` \|", table, flags=re.M))


def test_no_page_names_a_folder_outside_of_the_repository():
    for page in PAGES:
        assert "../data" not in page.read_text().replace("`../shared/data`", ""), page


def test_quotations_are_in_their_files():
    quoted = [
        (page, block)
        for page in PAGES
        for block in blocks_of(page.read_text())
        if "quoted from" in block.notes
    ]
    assert quoted
    for page, block in quoted:
        source = (ROOT / block.notes["quoted from"]).read_text()
        assert "".join(block.text.split()) in "".join(source.split()), page


def test_passes_are_listed_in_their_order(tmp_path):
    (tmp_path / "device.json").write_text("{}")
    options = (
        f"target=ktir device={tmp_path}/device.json decisions-in={tmp_path}/in.json "
        f"decisions-out={tmp_path}/out.json size-loops=true"
    )
    tool = ROOT / "build" / "bin" / "spyre-opt"
    command = [tool, "-", f"--spyre-pipeline={options}", "--dump-pass-pipeline"]
    done = subprocess.run(command, input="", capture_output=True, text=True)
    # What is printed before a pass runs: there are no decisions.
    passes = re.findall(r"^ *((?:spyre|convert)-[\w-]+)", done.stderr, flags=re.M)
    page = (DOCS / "internals" / "index.md").read_text()
    section = page[page.index("## Passes in order") : page.index("## Backend")]
    assert passes[-1:] == ["convert-spyre-graph-to-ktir"], done.stderr
    assert re.findall(r"^\| `--([\w-]+)`", section, flags=re.M) == passes


def test_pipeline_options_are_documented():
    header = (ROOT / "include" / "Spyre" / "Compiler" / "Pipeline.h").read_text()
    options = set(re.findall(r'\*this,\s+"([a-z-]+)"', header))
    page = (DOCS / "reference" / "options.md").read_text()
    section = page[page.index("## The pipeline") : page.index("## Tools")]
    assert options
    assert options == set(re.findall(r"^\| `([a-z-]+)", section, flags=re.M))


#: A bold entry of the troubleshooting page that quotes a message, and who says it
#: if it is none of the project's.
MESSAGE = re.compile(r"(?:<!-- said by: (.*) -->\n)?\*\*`(.+)`\*\*$", re.M)


def texts_of(path):
    """The file's strings, with pieces that stand beside each other joined."""
    text = path.read_text().replace('\\"', '"')
    return re.sub(r'"\s*[fr]?"', "", text)


def is_said_in(message, text):
    parts = [part.strip() for part in message.split("...")]
    return all(part in text for part in parts)


def test_troubleshooting_quotes_real_messages():
    page = (DOCS / "guide" / "troubleshooting.md").read_text()
    folders = ("lib", "tools", "python/torch_spyre")
    files = [p for d in folders for p in (ROOT / d).rglob("*.*")]
    texts = [texts_of(p) for p in files if p.suffix in (".cpp", ".h", ".py")]
    messages = [m[2] for m in MESSAGE.finditer(page) if not m[1]]
    assert len(messages) > 20
    unknown = [m for m in messages if not any(is_said_in(m, t) for t in texts)]
    assert not unknown


def test_a_message_that_nothing_says_is_found():
    text = texts_of(ROOT / "python" / "torch_spyre" / "frontend" / "cache.py")
    assert is_said_in("recompiling: cache file ... is damaged: ...", text)
    assert not is_said_in("recompiling: cache file ... is broken", text)


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("[Docs] Say how subjects are checked", ""),
        ("[Docs] " + 65 * "A", ""),
        ("[Docs] " + 66 * "A", "has 73 characters"),
        ("[Nothing] Say it", "the area Nothing"),
        ("[Docs] say it", "not of the form"),
        ("Docs: Say it", "not of the form"),
        ("[Docs] Say it.", "full stop"),
    ],
)
def test_subjects_of_commits(subject, said):
    from check_commits import areas, fault

    known = areas((ROOT / "CONTRIBUTING.md").read_text())
    assert len(known) > 10
    found = fault(subject, known)
    assert said in found
    assert bool(said) == bool(found)


def test_constraints_page_has_every_rule():
    from check_constraints import ids_in

    assert set(constraints()) == set(ids_in(("include/*.td",)))


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("```mlir\nfunc.func @f(\n```\n", "expected"),
        ("<!-- printed by: echo one -->\n```text\ntwo\n```\n", "one"),
        (
            "```mlir\nfunc.func private @f()\n```\n"
            "<!-- made from the one above by: spyre-opt -->\n"
            "```mlir\nfunc.func private @g()\n```\n",
            "@f",
        ),
    ],
)
def test_check_finds_what_is_wrong(page, message, tmp_path):
    (tmp_path / "page.md").write_text(page)
    path = os.pathsep.join([str(ROOT / "build" / "bin"), os.environ["PATH"]])
    result = subprocess.run(
        [sys.executable, ROOT / "scripts" / "doc_examples.py", "--check", tmp_path],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert message in result.stdout
