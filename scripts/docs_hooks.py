# SPDX-License-Identifier: Apache-2.0
"""What MkDocs calls while it builds the site (mkdocs.yml, `hooks`)."""

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parent))
from docs_pages import generated_pages, with_blank_lines


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are made from the code."""
    for path, text in generated_pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A list may follow a paragraph at once, as it may elsewhere."""
    return with_blank_lines(markdown)
