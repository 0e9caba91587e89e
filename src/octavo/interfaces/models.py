"""Which model tells cores and spheres: built from settings that a door hands in, none unless asked for."""

from __future__ import annotations

from collections.abc import Mapping

from octavo.domain.compression import DEFAULT, CompressionPolicy
from octavo.errors import BadInput
from octavo.models.llm import Endpoint
from octavo.models.summarisers import ModelSummariser, StatisticalSummariser, Summariser

BASE_URL, MODEL, API_KEY = "OCTAVO_LLM_BASE_URL", "OCTAVO_LLM_MODEL", "OCTAVO_LLM_API_KEY"
# What other programs of the user's read; honoured, but a key alone never sends a memory anywhere.
USUAL_BASE_URL, USUAL_MODEL, USUAL_API_KEY = "OPENAI_BASE_URL", "OPENAI_MODEL", "OPENAI_API_KEY"
VARIABLES = (BASE_URL, MODEL, API_KEY, USUAL_BASE_URL, USUAL_MODEL, USUAL_API_KEY)


def summariser(environment: Mapping[str, str], *, policy: CompressionPolicy = DEFAULT) -> Summariser:
    """The model's summariser if the environment names an endpoint and a model, else the deterministic one."""
    found = endpoint(environment)
    if found is None:
        return StatisticalSummariser(policy=policy)
    return ModelSummariser(endpoint=found, policy=policy)


def endpoint(environment: Mapping[str, str]) -> Endpoint | None:
    """The endpoint that the environment names, None if it names none; an empty variable counts as unset.

    A key goes only to the address that is set beside it: OPENAI_API_KEY never leaves for another server.
    """
    said = {name: environment.get(name, "").strip() for name in VARIABLES}
    base_url, model = said[BASE_URL] or said[USUAL_BASE_URL], said[MODEL] or said[USUAL_MODEL]
    if not base_url or not model:
        _must_be_unset(said, base_url)
        return None
    key = said[API_KEY] or ("" if said[BASE_URL] else said[USUAL_API_KEY])
    return Endpoint(base_url=base_url, model=model, api_key=key or None)


def _must_be_unset(said: Mapping[str, str], base_url: str) -> None:
    """Raise if our own variables name half of a model; other programs' variables may."""
    if said[MODEL] and not base_url:
        raise BadInput(
            f"{MODEL} names a model, but not where it answers",
            hint=f"set {BASE_URL}, for instance http://localhost:11434/v1",
        )
    if said[BASE_URL]:
        raise BadInput(f"{BASE_URL} is set, but no model is named", hint=f"set {MODEL}")
