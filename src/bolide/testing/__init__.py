"""A real server inside a test: `EmbeddedServer`, and pytest fixtures that hand one out (`plugin.py`)."""

from bolide.testing.embedded import AsyncEmbeddedServer, EmbeddedServer

__all__ = ["AsyncEmbeddedServer", "EmbeddedServer"]
