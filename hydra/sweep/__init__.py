"""Which step comes next, given the steps so far; pure."""
