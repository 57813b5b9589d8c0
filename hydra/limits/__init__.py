"""What a scenario needs of its machine, against what the machine has."""
