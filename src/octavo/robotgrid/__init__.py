"""RobotGrid: a small grid world in which a robot learns what Octavo remembers for it."""
