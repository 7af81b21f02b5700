"""State that coordinates, without I/O: time comes in as `now_ms`, what to do about it goes out as values."""
