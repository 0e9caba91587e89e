"""The pure floor: values and rules; no clock, disk, network, randomness or environment."""
