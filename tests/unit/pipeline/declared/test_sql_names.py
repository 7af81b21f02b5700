"""Which tables a query reads, without a parser."""

import pytest

from bolide.pipeline.declared.sql_names import table_names


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM orders", ["orders"]),
        ("select * from `odd name` o join Other using (id)", ["odd name", "Other"]),
        ("SELECT * FROM a, b CROSS JOIN c WHERE x IN (SELECT y FROM d)", ["a", "b", "c", "d"]),
        ("SELECT a, b FROM t GROUP BY a, b", ["t"]),
        ("SELECT a, b FROM t WHERE a = 1 UNION ALL SELECT c, d FROM u", ["t", "u"]),
        ("WITH x AS (SELECT * FROM a), y (p, q) AS (SELECT 1, 2) SELECT * FROM x JOIN y", ["a"]),
        ("SELECT * FROM (SELECT 1 FROM inner_one) q, other", ["inner_one", "other"]),
        ("SELECT * FROM a LEFT OUTER JOIN LATERAL (SELECT * FROM b)", ["a", "b"]),
        ("SELECT * FROM orders WHERE text = 'FROM lies' -- FROM more\n/* FROM these */", ["orders"]),
        ('SELECT "FROM x" FROM t', ["t"]),
        ("SELECT extract(YEAR FROM at), trim(BOTH ' ' FROM name) FROM t", ["t"]),
        ("SELECT a IS DISTINCT FROM b FROM t", ["t"]),
        ("SELECT * FROM range(10), catalog.db.table, t", ["t"]),
        ("SELECT 1", []),
        ("", []),
        ("SELECT * FROM 'open", []),
        ("FROM t SELECT *", ["t"]),
        ("SELECT * FROM t, T", ["t"]),
    ],
)
def test_the_tables_of_a_query_are_found(sql: str, names: list[str]) -> None:
    assert [table.name for table in table_names(sql)] == names


def test_a_table_has_the_line_where_it_stands() -> None:
    assert [(one.name, one.line) for one in table_names("SELECT *\nFROM a\n\nJOIN b")] == [("a", 1), ("b", 3)]
