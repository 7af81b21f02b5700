"""`python -m tests.checklist`: what is covered by how many tests, and what is not, each with the reason."""

from tests.checklist.coverage import covered
from tests.checklist.ids import IDS, NOT_COVERED


def main() -> None:
    tests = covered()
    for id_, title in IDS.items():
        if id_ in tests:
            print(f"{id_}  {title}  ({len(tests[id_])} tests, {tests[id_][0]})")
    print("\nNot covered:")
    for id_, title in IDS.items():
        if id_ not in tests:
            print(f"{id_}  {title}: {NOT_COVERED.get(id_, 'NO REASON')}")
    print(f"\n{len(tests)} of {len(IDS)} are covered.")


main()
