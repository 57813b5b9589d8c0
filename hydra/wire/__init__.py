"""What both ends of every wire use: the messages of the control channel, the header of the data, histograms, clocks."""
