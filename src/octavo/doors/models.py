"""Which models are used: who tells cores and spheres, who turns texts into vectors, who looks twice.

They are built from settings that a door hands in; no memory leaves for a server that was not named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from octavo.domain.compression import DEFAULT, CompressionPolicy
from octavo.errors import BadInput
from octavo.models.embedders import Embedder, EndpointEmbedder, offline_embedder
from octavo.models.llm import Endpoint
from octavo.models.rerank import EndpointReranker, Reranker, offline_reranker
from octavo.models.summarisers import ModelSummariser, StatisticalSummariser, Summariser

BASE_URL, MODEL, API_KEY = "OCTAVO_LLM_BASE_URL", "OCTAVO_LLM_MODEL", "OCTAVO_LLM_API_KEY"
# What other programs of the user's read; honoured, but a key alone never sends a memory anywhere.
USUAL_BASE_URL, USUAL_MODEL, USUAL_API_KEY = "OPENAI_BASE_URL", "OPENAI_MODEL", "OPENAI_API_KEY"
VARIABLES = (BASE_URL, MODEL, API_KEY, USUAL_BASE_URL, USUAL_MODEL, USUAL_API_KEY)

EMBEDDER = "OCTAVO_EMBEDDER"
EMBED_URL, EMBED_MODEL = "OCTAVO_EMBED_BASE_URL", "OCTAVO_EMBED_MODEL"
EMBED_DIMENSION, EMBED_KEY = "OCTAVO_EMBED_DIMENSION", "OCTAVO_EMBED_API_KEY"
EMBED_VARIABLES = (EMBEDDER, EMBED_URL, EMBED_MODEL, EMBED_DIMENSION, EMBED_KEY)

RERANKER = "OCTAVO_RERANKER"
RERANK_URL, RERANK_MODEL, RERANK_KEY = (
    "OCTAVO_RERANK_BASE_URL",
    "OCTAVO_RERANK_MODEL",
    "OCTAVO_RERANK_API_KEY",
)
RERANK_VARIABLES = (RERANKER, RERANK_URL, RERANK_MODEL, RERANK_KEY)


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


def embedder(environment: Mapping[str, str]) -> Embedder | Literal[False] | None:
    """The embedder that the environment names, False for words alone, None for the default.

    An endpoint is used when it is asked for, or when its address is set and nothing else is asked for.
    """
    said = {name: environment.get(name, "").strip() for name in EMBED_VARIABLES}
    wanted = said[EMBEDDER].lower() or ("endpoint" if said[EMBED_URL] else "")
    match wanted:
        case "":
            return None
        case "none":
            return False
        case "offline":
            return offline_embedder()
        case "endpoint":
            return _endpoint_embedder(said)
        case _:
            raise BadInput(f"{EMBEDDER} {wanted!r} is unknown", hint="use offline, none or endpoint")


def reranker(environment: Mapping[str, str]) -> Reranker | Literal[False] | None:
    """The reranker that the environment names, False for none, None for the extra's where it is installed."""
    said = {name: environment.get(name, "").strip() for name in RERANK_VARIABLES}
    wanted = said[RERANKER].lower() or ("endpoint" if said[RERANK_URL] else "")
    match wanted:
        case "":
            return None
        case "none":
            return False
        case "offline":
            return offline_reranker()
        case "endpoint":
            if missing := [name for name in (RERANK_URL, RERANK_MODEL) if not said[name]]:
                raise BadInput(f"a rerank endpoint is asked for, but {missing[0]} is not set", hint="set it")
            return EndpointReranker(
                url=said[RERANK_URL], model=said[RERANK_MODEL], key=said[RERANK_KEY] or None
            )
        case _:
            raise BadInput(f"{RERANKER} {wanted!r} is unknown", hint="use offline, none or endpoint")


def _endpoint_embedder(said: Mapping[str, str]) -> EndpointEmbedder:
    for name in (EMBED_URL, EMBED_MODEL, EMBED_DIMENSION):
        if not said[name]:
            raise BadInput(f"an embedding endpoint is asked for, but {name} is not set", hint=f"set {name}")
    if not said[EMBED_DIMENSION].isdecimal() or not int(said[EMBED_DIMENSION]):
        raise BadInput(
            f"{EMBED_DIMENSION} {said[EMBED_DIMENSION]!r} is no number of dimensions",
            hint="the model's documentation says how many numbers its vectors have",
        )
    return EndpointEmbedder(
        url=said[EMBED_URL],
        model=said[EMBED_MODEL],
        dimension=int(said[EMBED_DIMENSION]),
        key=said[EMBED_KEY] or None,
    )
