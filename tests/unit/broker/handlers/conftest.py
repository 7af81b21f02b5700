"""Every test of a handler gets a desk of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.broker.handlers.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    desk.close()
