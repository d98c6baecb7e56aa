"""What users of prefill systems reported, one test a case: the planner handles it, or refuses it clearly."""
