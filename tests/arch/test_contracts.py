"""Who may import whom is written in pyproject.toml; here it is enforced and kept complete."""

import subprocess
import sysconfig
from pathlib import Path

from tests.arch import house

SPARK_ROOMS = {"pipeline"}
CLI_ROOMS = {"cli"}


def test_the_import_contracts_are_kept() -> None:
    lint_imports = Path(sysconfig.get_path("scripts")) / "lint-imports"
    run = subprocess.run([lint_imports], cwd=house.ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_contracts_on_libraries_name_every_room_but_the_owners() -> None:
    """A new room is added to the layers because that contract is exhaustive; these lists must follow."""
    rooms = set(house.layer_of_room()) - {"aio", "compiled"}
    for library, owners in (("pyspark", SPARK_ROOMS), ("typer", CLI_ROOMS)):
        (contract,) = (c for c in house.contracts() if library in c.get("forbidden_modules", ()))
        named = {module.removeprefix("bolide.") for module in contract["source_modules"]}
        assert named == rooms - owners, contract["name"]
