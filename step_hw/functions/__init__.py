"""The functions' hardware, one file per function of ``step_lang.fn``; see ``base`` for the interfaces."""

from .base import Datapath, Fold, datapath, fold, tile_layout, type_key

__all__ = ["Datapath", "Fold", "datapath", "fold", "tile_layout", "type_key"]
