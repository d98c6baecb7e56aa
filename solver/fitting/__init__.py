"""Coefficients of the fitted cost model from measured chunk times, and what the measurements can support."""

from solver.fitting.diagnosis import Diagnosis, diagnose
from solver.fitting.robust import Fit, fit_samples
from solver.fitting.samples import Samples, read_samples

__all__ = ["Diagnosis", "Fit", "Samples", "diagnose", "fit_samples", "read_samples"]
