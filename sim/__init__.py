"""The performance model: how long the hardware takes."""
