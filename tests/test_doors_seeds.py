"""The paths of seeds 003 and 004 and the vault's, walked one after the other over a real connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2 as httpx

from octavo.doors import rest_seeds
from octavo.doors.visitors import SAME_ORIGIN
from test_doors_servers import served

ENVELOPE = {"success", "error"}
SCORE = {"memory_id", "quickrecal_score", "factors"}
# Each path as its document writes it, with its JSON, and what an answer holds at least.
# {one} is a fact, {two} a line of the vault, {whole} an assembly.
WALK: tuple[tuple[str, str, dict[str, Any], set[str]], ...] = (
    ("POST /retrieve_memories", "", {"query": "clay", "top_k": 5}, {"memories", *ENVELOPE}),
    (
        "POST /provide_feedback",
        "",
        {"memory_id": "{one}", "was_relevant": True},
        {"memory_id", *ENVELOPE},
    ),
    ("POST /provide_feedback", "", {"memory_id": "{one}", "delta": 0.2}, {"memory_id", *ENVELOPE}),
    ("POST /detect_contradictions", "", {}, {"contradictions", "count", *ENVELOPE}),
    ("GET /api/memories/{id}", "/api/memories/{one}", {}, {"memory_id", "memory", *ENVELOPE}),
    (
        "POST /api/memories/update_quickrecal_score",
        "",
        {"memory_id": "{one}", "delta": 0.1},
        {"memory_id", "new_quickrecal_score", *ENVELOPE},
    ),
    ("POST /calculate_quickrecal", "", {"memory_id": "{two}"}, SCORE | ENVELOPE),
    ("GET /check_index_integrity", "", {}, {"is_consistent", "problems", *ENVELOPE}),
    ("POST /repair_index", "", {"repair_type": "auto"}, {"repair_type", *ENVELOPE}),
    ("POST /repair_index", "", {}, {"repair_type", *ENVELOPE}),
    ("POST /diagnostics/trigger_retry_loop", "", {}, {"lag", *ENVELOPE}),
    ("GET /assemblies", "", {}, {"assemblies", *ENVELOPE}),
    ("GET /assemblies/{id}", "/assemblies/{whole}", {}, {"assembly_id", "is_synchronized", *ENVELOPE}),
    (
        "GET /assemblies/{id}/lineage",
        "/assemblies/{whole}/lineage",
        {"max_depth": 10},
        {"target_assembly_id", "lineage", *ENVELOPE},
    ),
    (
        "GET /assemblies/{id}/explain_activation",
        "/assemblies/{whole}/explain_activation",
        {"memory_id": "{one}"},
        {"memory_id", "passed_threshold", "check_timestamp", *ENVELOPE},
    ),
    ("GET /assemblies/{id}/explain_merge", "/assemblies/{whole}/explain_merge", {}, {"notes", *ENVELOPE}),
    ("GET /diagnostics/merge_log", "", {"limit": 50}, {"reconciled_log_entries", "count", *ENVELOPE}),
    ("GET /stats", "", {}, {"memories", *ENVELOPE}),
    ("GET /config/runtime/{service}", "/config/runtime/memory-core", {}, {"service", "config", *ENVELOPE}),
    (
        "GET /diagnostics/runtime/config/{service}",
        "/diagnostics/runtime/config/memory-core",
        {},
        {"service", "config", *ENVELOPE},
    ),
    ("GET /api/vault/stats", "", {}, {"status", "active_count", "utilization_pct", "by_scope", "by_tier"}),
    ("POST /api/vault/compact", "", {}, {"status", "lines_before", "lines_after", "lines_removed"}),
    ("POST /api/vault/delete", "", {"memory_id": "{two}"}, {"status", "id"}),
    (
        "POST /api/memory/write/{level}/{path:path}",
        "/api/memory/write/semantic/knowledge/doors.md",
        {"content": "- the red door needs a key"},
        {"level", "key", "ids"},
    ),
    ("GET /api/memory/search", "", {"q": "red door", "levels": "episodic,semantic"}, {"levels", "mixed"}),
    (
        "GET /api/memory/read/{level}/{path:path}",
        "/api/memory/read/semantic/knowledge/doors.md",
        {},
        {"level", "path", "entries"},
    ),
    ("POST /api/memory/consolidate", "", {"promote": True}, {"patterns_found"}),
    ("GET /api/memory/stats", "", {}, {"levels", "total_files", "total_size_bytes"}),
    ("GET /api/memory/retention", "", {}, {"episodic", "semantic", "procedural"}),
)


def test_every_path_of_the_documents_answers_a_real_client_as_it_is_written(root: Path) -> None:
    process, base = served(root)
    walked = {"POST /process_memory", "POST /api/vault/add"}
    try:
        with httpx.Client(base_url=base, timeout=30) as client:
            client.headers[SAME_ORIGIN] = client.get("/session").json()["same_origin"]
            texts = ("the kiln fires clay pots", "the glaze of the pots is blue")
            kept = [{"content": text, "metadata": {"quick_recal_score": 0.6}} for text in texts]
            parts = [client.post("/process_memory", json=one).json()["memory_id"] for one in kept]
            added = {"text": "the wheel turns clay bowls", "topic_id": "wheel", "scope": "shared"}
            names = {"one": parts[0], "two": client.post("/api/vault/add", json=added).json()["id"]}
            group = {"ids": parts, "name": "pottery"}
            made = client.post("/accounts/default/operations/assemble", json=group).json()
            names["whole"] = made["assemblies"][0]["id"]
            for address, path, said, expected in WALK:
                method, own = address.split()
                told = {n: v.format(**names) if isinstance(v, str) else v for n, v in said.items()}
                how: dict[str, Any] = {"json": told} if method == "POST" else {"params": told}
                answered = client.request(method, (path or own).format(**names), **how)
                assert answered.status_code == 200, (address, answered.text)
                assert expected <= answered.json().keys(), (address, answered.json())
                assert answered.json().get("error") is None
                walked.add(address)
    finally:
        process.terminate()
        process.wait(20)
    assert walked == set(rest_seeds.PATHS)
