"""Engine: groups as Pods, and whole commands as a Job."""
