"""From raw reports to figures; pure."""
