"""Seed 000's own interface and documents: the MSP, its master states, sandboxes and session buffers."""

from octavo.interfaces.documents.msp.forms import ConsolidatedData, MasterState, Semantic
from octavo.interfaces.documents.msp.passport import MSP, LoadedSandbox

__all__ = ["MSP", "ConsolidatedData", "LoadedSandbox", "MasterState", "Semantic"]
