"""The name server: tells clients where topics live.  Knows only what brokers tell it; talks to no other server."""
