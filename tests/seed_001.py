"""The two JSON examples of seed 001, as they stand there."""

from __future__ import annotations

from typing import Any

SEED_CORE: dict[str, Any] = {
    "core_id": "core_000_001",
    "sphere_seq": 0,
    "core_seq": 1,
    "timestamp_start": "2026-01-01T10:00:00",
    "timestamp_end": "2026-01-03T18:30:00",
    "session_count": 8,
    "source_sessions": ["session_id_1", "session_id_2", "...", "session_id_8"],
    "compressed_narrative": {
        "summary": "ช่วง 3 วันที่ผ่านมา บอสเดินทางไปต่างประเทศ มีการสนทนาเกี่ยวกับ...",
        "key_events": [
            {"event": "airport_farewell", "emotion": "warmth", "ri": 0.85},
            {"event": "daily_checkin", "emotion": "neutral", "ri": 0.45},
            {"event": "problem_discussion", "emotion": "concern", "ri": 0.78},
        ],
        "recurring_themes": ["travel", "work", "relationship"],
        "emotional_arc": {"start_state": "calm", "peak_emotion": "warmth", "end_state": "content"},
    },
    "aggregated_state": {
        "avg_stress": 0.25,
        "avg_warmth": 0.72,
        "dominant_emotion": "gratitude",
        "interaction_count": 23,
    },
    "salience_anchors": [
        {"phrase": "ขอบคุณที่มาส่ง", "rim": 0.89, "from_session": "session_id_1"},
        {"phrase": "คิดถึงนะ", "rim": 0.82, "from_session": "session_id_5"},
    ],
    "meta": {
        "compression_method": "llm_summarization",
        "compression_timestamp": "2026-01-03T19:00:00",
        "detail_retention": 0.3,
    },
}
SEED_SPHERE: dict[str, Any] = {
    "sphere_id": "sphere_000",
    "sphere_seq": 0,
    "timestamp_start": "2026-01-01T00:00:00",
    "timestamp_end": "2026-02-15T23:59:59",
    "core_count": 8,
    "session_count": 64,
    "source_cores": ["core_000_000", "core_000_001", "...", "core_000_007"],
    "abstracted_knowledge": {
        "summary": "ช่วงเดือนครึ่งแรก ความสัมพันธ์เติบโตจากระดับมืออาชีพไปสู่ความใกล้ชิดส่วนตัว",
        "core_beliefs": [
            "บอสเชื่อใจและพึ่งพาในการทำงาน",
            "มีการแสดงความเอาใจใส่นอกเหนือจากหน้าที่",
            "ความสัมพันธ์มีขอบเขตที่ชัดเจน",
        ],
        "behavioral_patterns": [
            {"pattern": "gratitude_expression", "frequency": "high", "context": "after_assistance"},
            {"pattern": "emotional_support", "frequency": "medium", "context": "stress_periods"},
        ],
        "relationship_evolution": {
            "phase": "deepening",
            "trust_level": 0.85,
            "emotional_intimacy": 0.72,
            "professional_boundary": 0.65,
        },
    },
    "meta": {
        "compression_method": "multi_core_synthesis",
        "compression_timestamp": "2026-02-16T00:00:00",
        "abstraction_level": "high",
    },
}
