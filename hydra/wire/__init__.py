"""What both ends of the control channel share: messages, reports as columns, histograms, the clock."""
