"""The local page that lists runs, opens their reports and lays runs upon each other."""
