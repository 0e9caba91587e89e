"""Which models are used: who tells cores and spheres, who turns texts into vectors, who looks twice.

They are built from settings that a door hands in; no memory leaves for a server that was not named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeVar

from octavo.domain.compression import DEFAULT, CompressionPolicy
from octavo.errors import BadInput
from octavo.models.embedders import Embedder, EndpointEmbedder, offline_embedder
from octavo.models.llm import Endpoint
from octavo.models.rerank import EndpointReranker, Reranker, offline_reranker
from octavo.models.summarisers import Summariser

# Ours, then what other programs of the user's read: honoured, but a key alone never sends a memory anywhere.
_NAMES = ("BASE_URL", "MODEL", "API_KEY")
VARIABLES = (*(f"OCTAVO_LLM_{name}" for name in _NAMES), *(f"OPENAI_{name}" for name in _NAMES))
EMBED_VARIABLES = ("OCTAVO_EMBEDDER", *(f"OCTAVO_EMBED_{name}" for name in (*_NAMES, "DIMENSION")))
RERANK_VARIABLES = ("OCTAVO_RERANKER", *(f"OCTAVO_RERANK_{name}" for name in _NAMES))
T = TypeVar("T")


def summariser(environment: Mapping[str, str], *, policy: CompressionPolicy = DEFAULT) -> Summariser:
    """A summariser that asks the model the environment names; the deterministic one if it names none."""
    return Summariser(endpoint=endpoint(environment), policy=policy)


def endpoint(environment: Mapping[str, str]) -> Endpoint | None:
    """The endpoint that the environment names, None if it names none; an empty variable counts as unset.

    A key goes only to the address that is set beside it: OPENAI_API_KEY never leaves for another server.
    Half of a model is an error if our own variables name it; other programs' variables may.
    """
    url, model, key, usual_url, usual_model, usual_key = _said(environment, VARIABLES)
    if (url or usual_url) and (model or usual_model):
        key = key or ("" if url else usual_key)
        return Endpoint(url=url or usual_url, model=model or usual_model, key=key or None)
    if model and not usual_url:
        raise BadInput(
            "OCTAVO_LLM_MODEL names a model, but not where it answers",
            hint="set OCTAVO_LLM_BASE_URL, for instance http://localhost:11434/v1",
        )
    if url:
        raise BadInput("OCTAVO_LLM_BASE_URL is set, but no model is named", hint="set OCTAVO_LLM_MODEL")
    return None


def embedder(environment: Mapping[str, str]) -> Embedder | Literal[False] | None:
    """The embedder that the environment names, False for words alone, None for the default."""

    def at_endpoint(url: str, model: str, key: str, dimension: str) -> EndpointEmbedder:
        if not dimension.isdecimal() or not int(dimension):
            raise BadInput(
                f"OCTAVO_EMBED_DIMENSION {dimension!r} is no number of dimensions",
                hint="the model's documentation says how many numbers its vectors have",
            )
        return EndpointEmbedder(url=url, model=model, dimension=int(dimension), key=key or None)

    return _model(environment, EMBED_VARIABLES, offline_embedder, at_endpoint)


def reranker(environment: Mapping[str, str]) -> Reranker | Literal[False] | None:
    """The reranker that the environment names, False for none, None for the extra's where it is installed."""

    def at_endpoint(url: str, model: str, key: str) -> EndpointReranker:
        return EndpointReranker(url=url, model=model, key=key or None)

    return _model(environment, RERANK_VARIABLES, offline_reranker, at_endpoint)


def _model(
    environment: Mapping[str, str],
    variables: tuple[str, ...],
    offline: Callable[[], T],
    at_endpoint: Callable[..., T],
) -> T | Literal[False] | None:
    """The model that the first variable asks for; an endpoint also when only its address is set."""
    asked, *told = _said(environment, variables)
    match asked.lower() or ("endpoint" if told[0] else ""):
        case "":
            return None
        case "none":
            return False
        case "offline":
            return offline()
        case "endpoint":
            for name, value in zip(variables[1:], told, strict=True):
                if not value and not name.endswith("_API_KEY"):
                    raise BadInput(f"an endpoint is asked for, but {name} is not set", hint=f"set {name}")
            return at_endpoint(*told)
        case _:
            raise BadInput(f"{variables[0]} {asked!r} is unknown", hint="use offline, none or endpoint")


def _said(environment: Mapping[str, str], variables: tuple[str, ...]) -> list[str]:
    return [environment.get(name, "").strip() for name in variables]
