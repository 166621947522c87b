"""Strata: typed state graphs that stop, save themselves, and go on when somebody answers."""
