"""Reports of clients → figures of a row, and the columns that define these figures."""
