"""SQL92 expressions over a message's properties: `price > 3 AND region IN ('de', 'fr')`.

`tokens` cuts the text, `parse` makes a tree of it and refuses what can never be judged, `judge` asks the tree about a
record.  What an expression means is what the original makes of it, with its corners: see docs/filters.md.
"""
