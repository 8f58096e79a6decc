#!/usr/bin/env python3
"""Find sentences in docstrings, comments, messages and Markdown that are not plain technical English.

    python tools/prose.py [PATH ...]

Prints each hit with advice, and exits with 1 above 6 hits per 1,000 lines of text. A sentence that reads well can be
added to `ALLOWED`.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LIMIT = 6  # hits per 1,000 lines of text
ROOTS = (
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"),
    *("compgraph", "autodiff", "docs", "examples", "notebooks", "benchmarks", "tests"),
)

OPENING = "start with a noun or an imperative"

# What to write instead, and the patterns that call for it.
ADVICE = {
    OPENING: [r"^(?-i:What|Who|Whose|Those|Whether all|Of (a|an|the|what|those|one)|How it|That which|As it)\b"],
    "code calls, returns, checks, raises or dispatches": [
        r"\b(is|are|was|were|be|been) (told|asked)\b",
        r"\btells? (of|whether|what|who|apart)\b",
        r"\basks? (nobody|first|it|them|again)\b",
        r"\bsays? (so|no|what|that|of|which)\b",
        r"\b(go(es)? on|went on|said|forgets?|remembers)\b",
        r"\bknows? (of|no|nothing)\b",
    ],
    "different from": [
        r"\b(is|are|was|were|be|been) (an)?others? (than|for|if|where|in)\b",
        r"\bothers? than\b(?! that)",
    ],
    "depends on, or because": [r"\bhangs? on\b", r"\bso (far|long) as\b", r"\bfor want of\b"],
    "name the subject": [
        r"\bnobody\b",
        r"\bwho(ever)? (asks|takes|calls|catches|profiles|wants|looks|reads|computes|writes)\b",
        r"\bwhat (is|are|was|were|it|they|one|others?)\b",
        r"\bwhat (comes|goes|lies|stands|makes|draws|follows|belongs|differs)\b",
        r"\b(all|those|them) that (is|are)\b",
        r"(?<!some )(?<!each )(?<!most )(?<!all )(?<!both )\bof which\b",
        r"\b(of whom|by whom|that which)\b",
        r"\b(the like|and kin)\b",
    ],
    "subject, verb and object": [
        r"\bso (do|does|is|are)\b",
        r"\bthere (is|are) none\b",
        r"(?<!there )\b(is|are) no\b(?! (longer|more|less))",
        r"\bstands? (in|for|at|beside|between|there|alone)\b",
        r"\blies? (in|at|there|where|beside|between)\b",
        r"\bcomes? (down|to|in|out|back|about)\b",
        r"\bas it stands?\b",
        r"\b(where|if|since|as|wherever) (there|it|that|this) is (one|none|such)\b",
        r"\bmeans? what\b",
    ],
    "unless, or except": [r"\bbut for\b"],
    "iteration": [r"\bturns?\b(?= (of|that|are|is|do|by|later|before|after|from)\b)"],
    "consecutive": [r"\bin a row\b"],
    "sequentially, or per element": [r"\b(one|each|all) (for|of|by) (one|each|all)\b"],
    "borrowed, captured, opaque or traced": [r"\b(lent|hosted|hollow|hollowed|promotable|foretold|promoted)\b"],
}
RULES = [(advice, re.compile("|".join(patterns), re.IGNORECASE)) for advice, patterns in ADVICE.items()]

# Sentences that are right as they are, by a part of their text.
ALLOWED = ("None if there is none",)


class Hit(NamedTuple):
    """A phrase to rewrite, with its place."""

    path: Path
    line: int
    phrase: str
    advice: str
    text: str


class Line(NamedTuple):
    """A line of text, and whether it starts a docstring or message."""

    number: int
    text: str
    is_first: bool


def lines_of_markdown(source: str) -> Iterator[Line]:
    """Yield the lines outside of code blocks."""
    is_code = False
    for number, text in enumerate(source.splitlines(), 1):
        if text.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield Line(number, text, False)


def lines_of_python(source: str) -> Iterator[Line]:
    """Yield comments, docstrings and strings of more than three words, without examples of doctest."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Line(token.start[0], token.string.lstrip("# "), False)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) > 3:
            for offset, text in enumerate(node.value.splitlines()):
                if not text.lstrip().startswith((">>>", "...")):
                    yield Line(node.lineno + offset, text.strip(), offset == 0)


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the lines of text of a file."""
    source = path.read_text(encoding="utf-8")
    yield from lines_of_markdown(source) if path.suffix == ".md" else lines_of_python(source)


def hits_in(path: Path) -> tuple[list[Hit], int]:
    """Return the hits in a file, and how many lines of text it has."""
    hits, count = [], 0
    for line in lines_of(path):
        count += 1
        if any(part in line.text for part in ALLOWED):
            continue
        for advice, pattern in RULES:
            if advice == OPENING and not line.is_first:
                continue
            hits += [Hit(path, line.number, match[0], advice, line.text.strip()) for match in pattern.finditer(line.text)]
    return hits, count


def files_under(root: Path) -> list[Path]:
    """Return the Python and Markdown files of a folder, or the file itself."""
    if root.is_file():
        return [root]
    files = [path for path in root.rglob("*") if path.suffix in (".py", ".md")]
    return sorted(path for path in files if not any(part.startswith((".", "_build", "generated")) for part in path.parts))


def main(arguments: list[str]) -> int:
    """Print the hits in the given paths, by default in the whole project; 1 if there are too many."""
    hits, count = [], 0
    for root in arguments or ROOTS:
        for path in files_under(Path(root)):
            more, lines = hits_in(path)
            hits += more
            count += lines
    for hit in hits:
        print(f"{hit.path}:{hit.line}: {hit.phrase!r} ({hit.advice}): {hit.text[:100]}")
    rate = 1000 * len(hits) / max(count, 1)
    print(f"{len(hits)} hits in {count} lines of text: {rate:.1f} per 1,000 (at most {LIMIT})")
    return int(rate > LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
