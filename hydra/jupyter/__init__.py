"""The report notebook and its rendering; reads run directories only."""
