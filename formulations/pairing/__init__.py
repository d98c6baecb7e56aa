"""Pairing: which stages share their memories, so that the worst group's peak is lowest, and then the traffic."""
