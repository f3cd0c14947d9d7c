"""The README for a package index, where a relative link leads nowhere. Hatchling calls this hook when it builds."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n\n?", re.M)
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)([^)#]*)[^)]*\)")


def without_relative_links(text: str) -> str:
    """Return the text with the path of each file in place of a link to it, and without pictures of the repository."""
    return LINK.sub(r"\1 (`\2`)", PICTURE.sub("", text))


class Readme(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_relative_links(text)}
