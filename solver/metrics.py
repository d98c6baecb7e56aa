def metrics_of(*a):
    return None
