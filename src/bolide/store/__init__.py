"""The storage engine: synchronous, one writer, all files through one `Disk`.  Has never heard of asyncio."""
