"""All decisions together on one timeline: batch, layers, placement, cuts and spill."""
