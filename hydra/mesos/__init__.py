"""Engine: groups as tasks of a Mesos framework."""
