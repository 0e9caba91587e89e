"""Two conversations of eight sessions, written for the tests of compression, and sessions made from them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from octavo.domain.memory import Emotion, Memory, Turn
from octavo.domain.sentences import SessionSource

Talk = Sequence[tuple[str, Sequence[tuple[str, str]]]]

ENGLISH: Talk = [
    ("2026-03-02", [
        ("Maya", "Hi there! How are you today?"),
        ("Ben", "Hey Maya, good to see you! What's new?"),
        ("Maya", "I adopted a greyhound from the shelter on Saturday. Juno sleeps all day long."),
        ("Ben", "That's wonderful! Do you have enough space for her?"),
        ("Maya", "The garden is small, but Juno loves the river path behind the house."),
        ("Ben", "I started a pottery course at the old mill last week."),
    ]),
    ("2026-03-09", [
        ("Ben", "My second pottery class was yesterday and I made a crooked bowl."),
        ("Maya", "Haha, that's awesome! You're doing great!"),
        ("Ben", "I like working with clay, it keeps me calm after the hospital shifts."),
        ("Maya", "Juno chewed my running shoes, so I bought new ones for the half marathon."),
    ]),
    ("2026-03-15", [
        ("Maya", "Hi!"),
        ("Ben", "Hello! How are you?"),
        ("Maya", "Good, thanks! Talk soon."),
        ("Ben", "Bye!"),
    ]),
    ("2026-03-22", [
        ("Maya", "We decided to move the bakery's ordering system to PostgreSQL before Easter."),
        ("Ben", "Big step! Who does the work?"),
        ("Maya", "I'll migrate the customer table myself and Tom writes the import script `load_orders.py`."),
        ("Ben", "I'm worried about my mother, she fell on the stairs on Thursday."),
    ]),
    ("2026-03-30", [
        ("Ben", "My mother came home from the hospital. I'm so relieved and grateful to the nurses."),
        ("Maya", "I'm so glad to hear that!"),
        ("Maya", "The half marathon is on 12 April and my longest run was 18 kilometres with Juno."),
    ]),
    ("2026-04-05", [
        ("Maya", "The migration to PostgreSQL is finished and the bakery lost no order."),
        ("Ben", "Congratulations! That's amazing."),
        ("Ben", "I sold my first pottery bowl at the spring market for 25 euros."),
    ]),
    ("2026-04-13", [
        ("Maya", "I finished the half marathon in 2 hours and 4 minutes. I'm so proud of myself!"),
        ("Ben", "Wow, you're a star!"),
        ("Ben", "Next month I'm going to rent a small studio at the old mill for my pottery."),
    ]),
    ("2026-04-20", [
        ("Ben", "I signed the contract for the pottery studio on Friday."),
        ("Maya", "I love how Juno greets every customer at the bakery."),
        ("Maya", "I will bake the bread for your studio opening on 9 May."),
        ("Ben", "Thanks, Maya! You're the best."),
    ]),
]  # fmt: skip

THAI: Talk = [
    ("2026-01-05", [
        ("นิด", "สวัสดีค่ะ วันนี้เป็นยังไงบ้างคะ"),
        ("โอ", "สวัสดีครับ เพิ่งย้ายมาอยู่เชียงใหม่เมื่อสัปดาห์ที่แล้วครับ ห้องเช่าอยู่แถวนิมมาน ใกล้ร้านกาแฟหลายร้าน"),
        ("นิด", "ดีจังเลยค่ะ แล้วงานใหม่เริ่มหรือยังคะ"),
        ("โอ", "เริ่มงานที่บริษัทซอฟต์แวร์วันจันทร์นี้ครับ ตื่นเต้นมาก แต่ก็กังวลเรื่องเพื่อนร่วมงานนิดหน่อย"),
    ]),
    ("2026-01-09", [
        ("โอ", "สัปดาห์แรกที่บริษัทซอฟต์แวร์ผ่านไปด้วยดีครับ หัวหน้าใจดี แต่โค้ดเก่าเยอะมาก"),
        ("นิด", "เก่งมากค่ะ"),
        ("โอ", "เมื่อวานผมไปร้านกาแฟแถวนิมมานมาครับ เจ้าของร้านสอนชงกาแฟดริปให้ด้วย"),
        ("นิด", "น่าสนุกนะคะ ชอบกาแฟดริปไหมคะ"),
        ("โอ", "ชอบครับ ผมชอบกาแฟดริปมากกว่ากาแฟเย็น"),
    ]),
    ("2026-01-14", [
        ("โอ", "คุณแม่ไม่ค่อยสบายครับ หมอบอกว่าความดันสูง ต้องกินยาทุกเช้า"),
        ("นิด", "ขอให้คุณแม่หายไวๆ นะคะ"),
        ("โอ", "ผมตัดสินใจว่าจะกลับบ้านที่ลำปางทุกเดือนเพื่อดูแลคุณแม่ครับ"),
        ("นิด", "เป็นความคิดที่ดีมากค่ะ"),
    ]),
    ("2026-01-20", [
        ("นิด", "สวัสดีค่ะ"),
        ("โอ", "สวัสดีครับ สบายดีนะครับ"),
        ("นิด", "สบายดีค่ะ ขอบคุณค่ะ"),
        ("โอ", "ไว้เจอกันใหม่ครับ"),
    ]),
    ("2026-01-26", [
        ("โอ", "วันเสาร์ผมสมัครวิ่งมาราธอนเชียงใหม่แล้วครับ ระยะ 21 กิโลเมตร แข่งเดือนธันวาคม"),
        ("นิด", "ว้าว เก่งมากเลยค่ะ ซ้อมวิ่งวันละกี่กิโลคะ"),
        ("โอ", "ซ้อมวิ่งรอบคูเมืองทุกเช้า วันละ 5 กิโลเมตรครับ หัวเข่าเจ็บนิดหน่อย"),
    ]),
    ("2026-02-02", [
        ("โอ", "ทีมตกลงว่าจะย้ายระบบไปใช้ PostgreSQL ภายในเดือนมีนาคมครับ ผมรับผิดชอบเรื่องย้ายข้อมูล"),
        ("นิด", "งานใหญ่นะคะ เครียดไหมคะ"),
        ("โอ", "เครียดครับ แต่ซ้อมวิ่งตอนเช้าช่วยได้มาก"),
        ("นิด", "อย่าลืมพักผ่อนนะคะ"),
    ]),
    ("2026-02-08", [
        ("โอ", "กลับไปลำปางมาครับ คุณแม่ความดันลดลงแล้ว ดีใจมาก"),
        ("นิด", "ดีใจด้วยค่ะ คุณแม่คงดีใจที่ลูกกลับบ้าน"),
        ("โอ", "คุณแม่ทำขนมจีนน้ำเงี้ยวให้กินด้วยครับ ผมสัญญาว่าจะพาคุณแม่ไปเที่ยวดอยสุเทพเดือนหน้า"),
    ]),
    ("2026-02-15", [
        ("โอ", "ย้ายข้อมูลไป PostgreSQL เสร็จแล้วครับ เร็วกว่ากำหนดสองสัปดาห์ หัวหน้าชมในที่ประชุม ภูมิใจมาก"),
        ("นิด", "ยินดีด้วยนะคะ"),
        ("โอ", "คืนนี้จะไปฉลองกับเพื่อนร่วมงานที่ร้านกาแฟเจ้าประจำครับ"),
        ("นิด", "ขอให้สนุกนะคะ"),
    ]),
]  # fmt: skip


def sessions_of(talk: Talk, *, first: int = 1, prefix: str = "s") -> tuple[SessionSource, ...]:
    """The sessions of a talk, their turns paired into episodes."""
    return tuple(
        session(f"{prefix}{ordinal}", ordinal, day, turns) for ordinal, (day, turns) in enumerate(talk, first)
    )


def session(
    name: str, ordinal: int, day: str, turns: Sequence[tuple[str, str]], **more: Any
) -> SessionSource:
    """One session whose turns pair into episodes named after it."""
    start = datetime.fromisoformat(f"{day}T09:00:00+00:00")
    episodes = [
        episode(f"{name}_e{place // 2}", name, start + timedelta(minutes=place), turns[place : place + 2])
        for place in range(0, len(turns), 2)
    ]
    return SessionSource(
        id=name,
        ordinal=ordinal,
        started_at=start,
        ended_at=start + timedelta(hours=1),
        episodes=tuple(episodes),
        **more,
    )


def episode(
    name: str,
    session_id: str,
    at: datetime,
    turns: Sequence[tuple[str, str]],
    *,
    salience: float = 0.5,
    emotion: Emotion | None = None,
    data: dict[str, Any] | None = None,
) -> Memory:
    """One episode of some turns."""
    return Memory(
        id=name,
        kind="episode",
        at=at,
        sandbox=session_id,
        salience=salience,
        emotion=emotion,
        turns=tuple(Turn(speaker=speaker, text=text) for speaker, text in turns),
        data=data or {},
    )
