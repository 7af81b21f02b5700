"""The real store on a simulated disk: power loss at any moment, failing operations, planted bugs."""
