"""Dead letters of a group: what they died of, which are to be sent again, and sending them.

`letters.py` has them as a frame with their causes, `report.py` counts them.  `plan.py` is the file that says what is to
be done, `redrive.py` does it, `record.py` is the file that says what was done.
"""
