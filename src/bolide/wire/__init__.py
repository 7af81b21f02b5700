"""Requests and responses as bytes.  Knows neither side, neither socket nor clock."""
