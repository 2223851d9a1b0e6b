"""Count the words this project does not use, in names, in text and in pages; exit 1 where any is left.

    python scripts/plain_words.py [--places]      --places: every place, as file:line

Some are never used here (`moment`: write time), or are spelled in another way (`utilisation`: write utilization).
Others are plain English in a sentence and poor as a name: `found` and `one` do not say what a variable holds. Text is
what comments, docstrings, messages and pages say.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

OTHER_SPELLINGS = ("utilisation", "synthesise", "characterize", "recognize", "behavior")  # utilization, recognise, …
NEVER = ("told", "moment", "moments", "room", "crew", "wishes", "barren", "nought", *OTHER_SPELLINGS)
NOT_A_NAME = (*NEVER, "those", "one", "found", "way", "ways")
KEPT = {  # words that stores and users' programs hold on to: a key of JSON, and what identities of captures are made of
    ("src/iolens/analyses/contents/analysis.py", "told"),
    ("tests/analyses/contents/test_contents.py", "told"),
    ("docs/contents.md", "told"),
    ("src/iolens/sources/contents/listings.py", "moment"),
    ("src/iolens/sources/contents/size_histogram.py", "moment"),
}
FOLDERS = ("src", "tests", "scripts", "bench")
PAGES = ("docs/**/*.md", "*.md")
ROOT = Path(__file__).resolve().parent.parent
WORD = re.compile(r"[a-z]+")


def words_of(path: Path) -> Iterator[tuple[str, int, str]]:
    """Every refused word of a Python file: what kind of place, line, word."""
    with tokenize.open(path) as lines:
        text = lines.read()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string.strip("_").lower() in NOT_A_NAME:
            yield "name", token.start[0], token.string.strip("_").lower()
        elif token.type == tokenize.NAME:
            yield from (("name", token.start[0], part) for part in token.string.lower().split("_") if part in NEVER)
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            yield from (("text", token.start[0] + line, word) for line, word in never_said(token.string))


def never_said(text: str) -> Iterator[tuple[int, str]]:
    """Words that are never used, with the line they stand on, counted from 0."""
    for number, line in enumerate(text.lower().splitlines()):
        yield from ((number, word) for word in WORD.findall(line) if word in NEVER)


def places() -> Iterator[tuple[str, int, str, str]]:
    """Every place of a refused word: file, line, kind of place, word."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for kind, line, word in words_of(path):
                yield str(path.relative_to(ROOT)), line, kind, word
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            for line, word in never_said(path.read_text("utf-8")):
                yield str(path.relative_to(ROOT)), line + 1, "page", word


def refused() -> list[tuple[str, int, str, str]]:
    """The places that are not kept on purpose; this list of words is none of them."""
    return [place for place in places() if (place[0], place[3]) not in KEPT and place[0] != "scripts/plain_words.py"]


def main() -> None:
    """Print the counts, or every place."""
    left = refused()
    if "--places" in sys.argv[1:]:
        for file, line, kind, word in left:
            print(f"{file}:{line}: {kind} {word!r}")
    for (kind, word), count in sorted(Counter((kind, word) for _, _, kind, word in left).items()):
        print(f"{count:6} {kind:5} {word}")
    print(f"{len(left):6} in all")
    sys.exit(1 if left else 0)


if __name__ == "__main__":
    main()
