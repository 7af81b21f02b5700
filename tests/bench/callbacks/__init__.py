"""The longest callback of a broker's event loop, by kind of work, in a large scene: everybody waits while it runs."""
