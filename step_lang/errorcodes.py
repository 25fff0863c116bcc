"""Sticky error codes of hardware units: the same numbers in RTL and model, and what a person reads for them."""

__all__ = ["ErrorCode", "code_name", "fix_of"]


class ErrorCode:
    """Sticky error codes that a unit can raise."""

    NONE = 0
    MISALIGNED = 1      # streams of one operator disagree in stop, empty or done
    STOP_RANGE = 2      # a stop level the configuration does not allow at this point
    ADDRESS_RANGE = 3   # an address or tile index outside its tensor
    EXHAUSTED = 4       # a buffer larger than its scratchpad
    SHAPE = 5           # a static inner dimension does not have the configured size
    PROTOCOL = 6        # malformed beat (empty with data, done with a stop, ...)
    OVERFLOW = 7        # one tile more than the tensor holds
    SELECTOR = 8        # a selector names what does not exist, or nothing where something must be
    FREED = 9           # a reference used after its buffer was freed


_FIXES = {
    ErrorCode.STOP_RANGE: "give streams of the rank and the dimensions that the program states",
    ErrorCode.SHAPE: "give streams and counts of the sizes that the program states",
    ErrorCode.PROTOCOL: "end streams only where what they hold is complete",
    ErrorCode.EXHAUSTED: "raise scratchpad.frames or accumulator.entries in the hardware configuration",
    ErrorCode.ADDRESS_RANGE: "keep the view or address inside the tensor",
    ErrorCode.OVERFLOW: "store no more tiles than the tensor holds",
    ErrorCode.SELECTOR: "name only streams that exist, and at least one where a chunk is needed",
    ErrorCode.FREED: "use each reference only as often as its bufferize's register 'uses' and its routers count",
    ErrorCode.MISALIGNED: "give the operator streams of equal shape",
}


def code_name(code: int) -> str:
    """Name of a code; the number itself for one that has none."""
    return next((name for name, value in vars(ErrorCode).items() if name.isupper() and value == code), str(code))


def fix_of(code: int) -> str | None:
    """What the user can do about it, if anything can be said."""
    return _FIXES.get(code)
