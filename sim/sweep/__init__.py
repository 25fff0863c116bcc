"""Many points of a program's and the hardware's parameters, evaluated by the performance model on Dask's workers."""
