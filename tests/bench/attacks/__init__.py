"""What honest senders notice while others attack."""
