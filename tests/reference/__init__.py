"""A second, independent simulator of spec section 3, slow and plain, used only as a witness in tests.

It shares no code with the product: no import from `instances`, `formulations`, `solver` or `reports`, no numpy, no
numba. Bytes are `fractions.Fraction`, times are Python integers of picoseconds, so nothing is ever approximated.
"""
