"""Chakra execution traces (mlcommons/chakra), with which ASTRA-sim can run a plan."""
