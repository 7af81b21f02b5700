"""Whole brokers with messages that wait, in virtual time, through any crash: delayed, timed, half, failed, dead."""
