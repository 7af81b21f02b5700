"""What may stand in our files: every module introduces itself, no loose ends, nothing of one machine."""

import ast
import re
from pathlib import Path

import pytest

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

URL_HOST = re.compile(r"\b(?:https?|git|ssh)://([\w.-]+)")
PACKAGE_SOURCE = re.compile(
    r"^\s*(?:--(?:extra-)?index-url|--find-links|--trusted-host)\b", re.MULTILINE
)
MACHINE_PATH = re.compile(r"(?<![\w.}/-])/(?:work|root|home|Users)/\w")
LOOSE_END = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")


@pytest.mark.parametrize("path", house.sources(".py", ".pyx"), ids=house.name_of)
def test_every_module_opens_with_what_it_answers(path: Path) -> None:
    text = path.read_text()
    if path.suffix == ".py":
        assert ast.get_docstring(ast.parse(text))
    else:
        assert re.match(r'(?:#.*\n)*\s*"""\S', text)


@pytest.mark.parametrize("path", TEXT, ids=house.name_of)
def test_links_lead_only_to_known_hosts(path: Path) -> None:
    """Packages are asked for by name; where a machine gets them from is that machine's business."""
    text = path.read_text()
    assert {host.lower() for host in URL_HOST.findall(text)} <= HOSTS_ALLOWED
    assert not PACKAGE_SOURCE.search(text)


@pytest.mark.parametrize("path", TEXT, ids=house.name_of)
def test_no_path_of_one_machine(path: Path) -> None:
    assert not MACHINE_PATH.search(path.read_text())


@pytest.mark.parametrize(
    "path", [path for path in TEXT if path != Path(__file__)], ids=house.name_of
)
def test_a_loose_end_carries_its_issue_number(path: Path) -> None:
    """Written as TODO(#12); anything else is forgotten."""
    assert not LOOSE_END.search(path.read_text())
