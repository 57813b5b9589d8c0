"""What a Python client does: fork, pace, send, receive, keep the ledger."""
