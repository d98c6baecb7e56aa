"""Benchmarks: grids of runs in processes of their own, records that survive a crash, statistics over them."""
