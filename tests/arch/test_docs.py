"""Documents stay true: their links lead somewhere and the commands they name exist."""

import re

from tests.arch import house

PAGES = house.files(".md")
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
COMMAND = re.compile(r"(?:^|`)make ([a-z]+)", re.MULTILINE)
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)


def test_links_between_documents_lead_somewhere() -> None:
    dead = {
        f"{house.name_of(page)} -> {link}"
        for page in PAGES
        for link in LINK.findall(page.read_text())
        if not (page.parent / link).exists()
    }
    assert dead == set()


def test_every_make_command_in_a_document_exists() -> None:
    targets = set(TARGET.findall((house.ROOT / "Makefile").read_text()))
    unknown = {
        f"{house.name_of(page)}: make {command}"
        for page in PAGES
        for command in COMMAND.findall(page.read_text())
        if command not in targets
    }
    assert unknown == set()


def test_every_dependency_has_its_line() -> None:
    """What it is for and what else was considered: docs/dependencies.md, one row each."""
    lines = (house.ROOT / "docs" / "dependencies.md").read_text()
    explained = set(re.findall(r"^\| ([a-z][\w-]*) \|", lines, re.MULTILINE)) - {"library", "tool"}
    assert explained == house.dependencies()
