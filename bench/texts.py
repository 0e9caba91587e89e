"""Seeded small talk in English and Thai with the uneven word frequencies of real talk."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

_ENGLISH_TEXT = """
the i to a you and it is of my in that for have we on was me with so but do at be like this not really just
about what are they know think time one get going good there can out day if up work when would some from all
went had week your want last more now how said because home people did been here next got friend house still
very make year back then great maybe love well too after new before family little always right need morning
evening weekend coffee tea garden dog cat train market office project meeting deadline report book kitchen
dinner lunch breakfast recipe rice noodles curry mango soup bread cheese sister brother mother father daughter
son teacher doctor nurse engineer painter music piano guitar violin concert film theatre museum gallery beach
mountain river lake forest trail bicycle car bus flight ticket hotel passport luggage summer winter spring
autumn rain snow storm sunny humid birthday wedding party present holiday festival school university course
exam lesson language english thai french japanese phone laptop keyboard screen battery camera photo letter
package shop price cheap expensive money bank salary rent apartment neighbour street bridge temple village
city town hospital medicine allergy headache fever sleep dream exercise running yoga swimming climbing hiking
football tennis chess puzzle game novel poem story chapter library newspaper radio podcast song dance costume
dress shoes jacket umbrella colour green blue red yellow purple silver golden quiet loud busy tired happy sad
nervous excited proud angry calm grateful worried hungry thirsty early late slowly quickly carefully together
alone finally suddenly usually sometimes never remember forget promise decide choose borrow repair paint plant
harvest cook bake clean wash drive walk visit travel arrive leave return begin finish cancel postpone deliver
"""

_THAI_TEXT = """
ฉัน ไป ที่ มา และ ก็ ไม่ เป็น มี ว่า จะ ได้ ให้ นี้ กับ อยู่ คน แล้ว ของ วัน ดี มาก เรา เขา ทำ กิน ข้าว บ้าน งาน
เพื่อน พรุ่งนี้ เมื่อวาน ตลาด โรงเรียน โรงพยาบาล เชียงใหม่ กรุงเทพ ภูเก็ต ทะเล ภูเขา ฝน ร้อน หนาว อากาศ กาแฟ ชา
มะม่วง ส้มตำ ก๋วยเตี๋ยว แกงเขียวหวาน แมว หมา แม่ พ่อ พี่สาว น้องชาย ลูกสาว ครู หมอ ดนตรี กีตาร์ เปียโน หนังสือ
ภาพยนตร์ พิพิธภัณฑ์ วัด รถไฟ เครื่องบิน จักรยาน ตั๋ว โรงแรม กระเป๋า วันเกิด แต่งงาน ของขวัญ วันหยุด สงกรานต์
ลอยกระทง ภาษาไทย ภาษาอังกฤษ โทรศัพท์ คอมพิวเตอร์ กล้อง ร้าน ราคา ถูก แพง เงิน ธนาคาร ค่าเช่า ห้อง ถนน สะพาน
หมู่บ้าน เมือง ยา แพ้ ปวดหัว นอน ฝัน ออกกำลังกาย วิ่ง โยคะ ว่ายน้ำ ปีนเขา ฟุตบอล หมากรุก นิยาย เพลง เสื้อ รองเท้า
ร่ม สีเขียว สีน้ำเงิน สีแดง เงียบ เหนื่อย มีความสุข เศร้า ตื่นเต้น ภูมิใจ ใจเย็น ขอบคุณ กังวล หิว เช้า สาย ช้า เร็ว
ด้วยกัน คนเดียว ในที่สุด บางครั้ง จำ ลืม สัญญา เลือก ยืม ซ่อม ปลูก ทำอาหาร ล้าง ขับรถ เดิน เยี่ยม เดินทาง กลับ
"""

_STARTS_TEXT = "ba be chi da do fa ga ha ja ka la lu ma mi na no pa ra ri sa so ta ti va wa ya za"
_ENDS_TEXT = "lin ren ston ford mar ley ville berg son dale wick nan rit chai pong sak wat ton kul met"
_SPEAKERS = ("user", "assistant", "Mali", "Somchai", "Alice", "Kenji")


class Texts:
    """Sentences drawn from a seed: common words come often, names and numbers make the long tail."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)  # a benchmark's texts, no secret
        starts = _STARTS_TEXT.split()
        names = [f"{a}{b}{c}".capitalize() for a in starts for b in starts for c in _ENDS_TEXT.split()]
        self._draw.shuffle(names)
        self._english = [*_ENGLISH_TEXT.split(), *names[:6000]]
        self._thai = _THAI_TEXT.split()
        self._english_weights = _zipf(len(self._english))
        self._thai_weights = _zipf(len(self._thai))

    def sentence(self) -> str:
        """A sentence of everyday length; one of four is Thai."""
        draw = self._draw
        if draw.random() < 0.25:
            words = draw.choices(self._thai, cum_weights=self._thai_weights, k=draw.randint(5, 14))
            return f"{''.join(words)} {draw.randint(1, 999)}"
        words = draw.choices(self._english, cum_weights=self._english_weights, k=draw.randint(6, 18))
        if draw.random() < 0.2:
            words.append(str(draw.randint(1, 5000)))
        return " ".join(words).capitalize() + "."

    def turns(self) -> list[tuple[str, str]]:
        """An exchange of two: who said what."""
        first = int(self._draw.random() * len(_SPEAKERS))
        second = _SPEAKERS[first - 1]
        return [(_SPEAKERS[first], self.sentence()), (second, self.sentence())]

    def number(self) -> float:
        """A number between 0 and 1."""
        return self._draw.random()

    def whole(self, below: int) -> int:
        """A whole number from 0 up to, not including, a bound."""
        return self._draw.randrange(below)

    def restated(self, text: str) -> str:
        """The same text with a word more: what the near-duplicate check is for."""
        return f"{text} {self._draw.choice(('indeed', 'today', 'จริงๆ'))}"


def _zipf(n: int) -> Sequence[float]:
    return list(itertools.accumulate(1 / (rank + 3) for rank in range(n)))
