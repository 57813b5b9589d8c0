"""Engine: groups as processes of this machine."""
