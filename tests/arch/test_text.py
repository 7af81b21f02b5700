"""What may stand in our files: every module introduces itself, no loose ends, nothing of one machine."""

import re
from collections.abc import Set
from pathlib import Path

from tests.arch import house

HOSTS_ALLOWED = {
    "127.0.0.1",
    "localhost",
    "keepachangelog.com",
    "maven.apache.org",  # the namespace of pom.xml
    "rocketmq.apache.org",
    "semver.org",
    "www.apache.org",
    "www.w3.org",  # namespaces again
}
TEXT = [path for path in house.files() if b"\0" not in path.read_bytes()[:1024]]

DOCSTRING = re.compile(r'(?:#.*\n|\n)*r?"""\S')
URL_HOST = re.compile(r"\b(?:https?|git|ssh)://([\w.-]+)")
PACKAGE_SOURCE = re.compile(r"^\s*(?:--(?:extra-)?index-url|--find-links|--trusted-host)\b", re.MULTILINE)
MACHINE_PATH = re.compile(r"(?<![\w.}/-])/(?:work|root|home|Users)/\w")
LOOSE_END = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")


def test_every_module_opens_with_what_it_answers() -> None:
    silent = [
        house.name_of(path) for path in house.sources(".py", ".pyx") if not DOCSTRING.match(path.read_text())
    ]
    assert silent == []


def test_links_lead_only_to_known_hosts() -> None:
    """Packages are asked for by name; where a machine gets them from is that machine's business."""
    assert _found(URL_HOST, besides=HOSTS_ALLOWED) == {}
    assert _found(PACKAGE_SOURCE) == {}


def test_no_path_of_one_machine() -> None:
    assert _found(MACHINE_PATH) == {}


def test_a_loose_end_carries_its_issue_number() -> None:
    """Written with the number in parentheses behind the word; anything else is forgotten."""
    assert _found(LOOSE_END) == {}


def _found(pattern: re.Pattern[str], besides: Set[str] = frozenset()) -> dict[str, set[str]]:
    """What the pattern finds, by file; this file, which must spell the patterns, is left out."""
    hits = {
        house.name_of(path): set(pattern.findall(path.read_text())) - besides
        for path in TEXT
        if path != Path(__file__)
    }
    return {name: texts for name, texts in hits.items() if texts}
