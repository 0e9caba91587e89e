"""Words that tell what a sentence does: stop words, small talk, decisions, plans, feelings.

English and Thai. English words stand as `text.words` gives them: folded, without apostrophes.
"""

from __future__ import annotations

import re

from octavo.domain.text import STOP_WORDS


def listed(block: str) -> list[str]:
    """The words of a block of text."""
    return block.split()


# Words that tell no topic, besides the stop words of search.
STOP = STOP_WORDS | frozenset(
    listed(
        """
        against ago almost along already although always another anyone anything around away back
        became become bit bout cause come couple day days done em enough even every everyone
        everything first found gave get gets getting give go goes going gone gonna got gotta half
        hell heres hour hours however instead itd itll keep kind kinda knew know known last later
        least less let lets like likely little lot lots made make makes making many maybe mine
        minute minutes month months much near need needs never new next none nothing often oh ok
        okay one ones onto others part past per perhaps put quite rather re really said saw say
        says see seem seems seen several shall since someone something sometimes soon sort still
        sure take taken takes taking tell thatll theyd theyll thing things think though three til
        till time times today together told tomorrow tonight took toward towards tried try trying
        two use used using usually ve want wanted wants way wed week weeks well went wheres
        whether whole whos within without ya yall year years yesterday
        """
    )
)

# What people say to each other without saying anything; it makes no theme and no sentence worth keeping.
SMALL_TALK = frozenset(
    listed(
        """
        absolutely aha agree agreed ah ahh amazing anytime appreciate appreciated awesome aw aww
        beautiful best better bless bro btw bye care catch chat cheers congrats congratulations
        cool course crazy cute damn dear definitely dude enjoy exactly excellent excited exciting
        fab fabulous fantastic fine fun fingers folks friend fr glad good goodbye goodnight gosh
        great greetings guys ha haha hahaha happy hear heard hello hey heya hi hiya hmm hope
        hoping huh incredible inspiring interesting kidding lol looks looking lovely luck lucky
        man mate means meant morning evening afternoon night nice nope np omg perfect please
        pleasure pretty proud right rock sec see seeing share sharing sorry sound sounds super
        sweet talk talking terrific thank thanks thankyou thx totally true truly u ugh welcome
        whoa wish wonderful wont word words worries wow yay yea yeah yep yes yo yup feel feeling
        feels felt look love loved loving impressive bet check stuff bring brings special
        important job especially forward keeping start started able real big small long hard easy
        """
    )
)

# Words that recur in every conversation, whatever it is about; as themes they weigh little.
GENERIC = frozenset(
    listed(
        """
        people person support help helped helps helping tough difference moment moments thought
        thoughts thinking happen happened happens happening impact positive challenge challenges
        challenging world life live living favorite favourite motivated motivate focus focused
        rewarding reward mix pic pics photo photos picture work working works worked keep chance
        place places opportunity reminder reminds remind remember plan plans planning experience
        experiences story stories idea ideas step steps goal goals journey memory memories
        everyday grow growing learn learned learning change changes changed making wonder blast
        vibe vibes joy hit spend spent created create called call set play playing played end side
        point watch watching show showing join read find finding kept passion progress effort
        struggle struggles comfort strength hang inspire inspired inspires bond bonding reach
        build building built connect connecting worth wait move moving run running turn turned
        stay staying visit question problem issue issues answer user assistant wild open handle
        deal deep fresh amazed close cared pay huge matter matters lately actually starting
        pushing different local delicious future success unique powerful gives giving given add
        added adding
        """
    )
)

# A sentence that opens with one of these leans on the sentence before it.
DANGLING = frozenset(
    listed(
        """
        it its itll that thats this these those they theyre theyve he hes she shes them then so
        and but or because cause which plus also too same even such there theres here heres both
        """
    )
)

FIRST_PERSON = frozenset(
    listed(
        """
        i im ive ill id my me mine myself we were weve well our us ours
        """
    )
)
SECOND_PERSON = frozenset(
    listed(
        """
        you youre youve youll youd your yours yourself ya u
        """
    )
)
NOUN_BEFORE = frozenset(
    listed(
        """
        a an the my your our his her their its this that these those some any of for with in on at
        about from into no every each another more new local own
        """
    )
)
VERB_BEFORE = frozenset(
    listed(
        """
        to i you we they will would can could should shall might must dont didnt doesnt wont cant
        lets ill id well youll theyll please never always
        """
    )
)


def cue(english: str, thai: str = "", *, anywhere: str = "") -> re.Pattern[str]:
    """A pattern from blocks of one alternative a line; English ones match whole words only."""
    whole = rf"\b(?:{'|'.join(_lines(english))})\b"
    return re.compile("|".join([whole, *_lines(anywhere), *_lines(thai)]), re.IGNORECASE)


def _lines(block: str) -> list[str]:
    return [line.strip() for line in block.splitlines() if line.strip()]


# What a sentence opens with before it says anything, if a comma or the like follows.
OPENERS = _lines(
    """
    (oh|ah|ooh|hmm|wow|yay|gosh|aww?|haha|lol|man)
    (hey|hi|hello|thanks|thank you)
    (yeah|yep|yes|yup|no|nope|ok|okay|sure|exactly|of course|for sure|sounds good)
    (well|so|and|but|also|plus|anyway|anyways|anyhow|btw|by the way|you know|i mean)
    (actually|honestly|totally|definitely|absolutely|cool|great|nice)
    (on another note|guess what|as for me|speaking of which)
    """
)
DECISION = cue(
    r"""
    decided?
    (we agreed|agreed (to|that|on))
    let's (go with|use|take|do)
    (i|we)('ve| have)? (chosen?|accepted)
    (chose|chosen|picked|settled on|went with)
    (am|are|i'm|we're) going with
    (we'll|we will) go with
    made up my mind
    the plan is
    final(ly)? (choice|decision)
    (i|we) (\w+ )?(signed (up|the)|quit)
    quit my
    (resolved to|approved|moved? to|switch(ed|ing)? to)
    """,
    """
    ตัดสินใจ
    ตกลง(ว่า|จะ|กัน|ใจ|เลือก|ใช้)
    เลือก(ใช้|ที่จะ|แบบ|เอา)
    สรุปว่า
    เปลี่ยนไปใช้
    (อนุมัติ|ลาออก|ย้ายไป)
    """,
)
COMMITMENT = cue(
    r"""
    (i'll|we'll|(i|we) (will|shall))
    (i'm|i am|we're|we are) (going|planning|hoping|about) to
    gonna
    promise[ds]?
    plan(ning|ned)? (to|on|for|a)
    (deadline|due (on|by))
    by (monday|tuesday|wednesday|thursday|friday|saturday|sunday|tomorrow|next)
    next (week|month|year|summer|weekend)
    (scheduled|booked|appointment|signed up|applied (to|for))
    looking forward to
    remind me
    """,
    """
    สัญญา(ว่า|ไว้)
    วางแผน
    ตั้งใจ(จะ|ว่า)
    นัด(หมาย|กัน|ไว้|หมอ|ลูกค้า)
    (กำหนดส่ง|ภายในวัน|จองตั๋ว|จองที่พัก)
    (พรุ่งนี้|สัปดาห์หน้า|อาทิตย์หน้า|เดือนหน้า|ปีหน้า).{0,30}จะ
    จะ.{0,40}(พรุ่งนี้|สัปดาห์หน้า|อาทิตย์หน้า|เดือนหน้า|ปีหน้า)
    """,
)
PREFERENCE = cue(
    r"""
    (i|we) ((really|always|just|also|still|truly|absolutely) )*(love|like|enjoy|prefer|hate|dislike)
    (i|we) ((really|always|just|also|still|truly) )*(believe|value|care about|dream of|can't stand)
    (i|we) (usually|always|never)
    (i'm|i am) (allergic|vegan|vegetarian|lactose)
    please (always|never)
    my (favou?rite|fave|goal is|dream is|dream job|passion (is|for)|hobby|hobbies|habit)
    (means|matters) (a lot|so much|everything|most) to me
    (it's|is|are) ((really|so|very) )?important (to|for) me
    (helps|keeps|makes) me (relax|calm|happy|feel|express|sane|going|focus)\w*
    """,
    """
    (ผม|ฉัน|หนู|เรา|ดิฉัน|พี่|น้อง)(ก็|ยัง)?(ไม่)?(ชอบ|รัก|เกลียด|เชื่อว่า|แพ้)
    สำคัญ(มาก|ที่สุด|กับ|สำหรับ)
    (ความฝัน|เป้าหมาย|งานอดิเรก|เป็นประจำ)
    ทุก(วัน|เช้า|เย็น|สัปดาห์)
    """,
)
EVENT = cue(
    r"""
    (i|we|my \w+) ((\w+ly|just|even|also) )*(went|had|got|made|took|won|met|bought|ran|wrote|built|lost)
    (i|we|my \w+) ((\w+ly|just|even|also) )*(found|saw|began|gave|read|learnt|came|fell|sold|\w{3,}ed)
    (i|we)('ve| have) ((\w+ly|just|also|been) )*\w+(ed|en|ne|t|ing)
    """,
    """
    (ไป|ได้|ซื้อ|เจอ|เริ่ม|เสร็จ|พา|จอง|สมัคร).{0,60}(มา|แล้ว|เมื่อ)
    (ส่ง|ทำ|แก้|เปิด|ย้าย|เรียน|สอบ).{0,60}(มา|แล้ว|เมื่อ)
    เมื่อ(วาน|เช้า|คืน|วัน|สัปดาห์|เดือน|ปี)
    """,
    anywhere=r"""
    ^((just|finally|recently|also) )*(lost|got|went|finished|started|joined|won|met|bought|moved)\b
    ^((just|finally|recently|also) )*(visited|made|took|found|finishing|working on|researching)\b
    ^been \w+ing\b
    """,
)
# Encouragement that could stand in any conversation.
VAGUE = cue(
    r"""
    keep (going|at it|pushing|working|chasing|plugging|up|doing|it up|trying|striving)
    (give|giving) up
    (won't|not) quit
    (my|our) (best|hearts?)
    (gonna|going to|will|i'll|we'll) make it(?! to)
    stay (positive|strong|optimistic|focused)
    (no matter what|i'm sure|anything is possible|in mind|worth it|bring joy|chasing)
    means? (a lot|the world)
    believe in (my|our|your)sel\w+
    reach my dreams
    those moments
    i'll (always )?remember
    is (the )?key
    """,
    "(สู้ๆ|พยายามต่อไป)",
)
# Pronouns that point outside the sentence when nothing in it comes before them.
POINTING = re.compile(
    r"\b(it|them|this|these|those|that|one)\b(?=\s*([.,!;–-]|$|(and|for|because|with|to|so|but|when|is|was|has"
    r"|too|again|out|up|on|at|in|as|from|before|after|really|all)\b))",
    re.IGNORECASE,
)
WHEN = cue(
    r"""
    (yesterday|tomorrow|next (week|month|year)|(years?|months?|weeks?|days?) ago)
    last (night|week|month|year|summer|weekend|(mon|tue|wed|thu|fri|sat|sun)\w*)
    (mon|tues|wednes|thurs|fri|satur|sun)day
    (january|february|march|april|june|july|august|september|october|november|december)
    """,
    """
    (เมื่อวาน|พรุ่งนี้)
    (เดือน|สัปดาห์|ปี)(ที่แล้ว|หน้า|ก่อน)
    วัน(จันทร์|อังคาร|พุธ|พฤหัส|ศุกร์|เสาร์|อาทิตย์)
    """,
    anywhere=r"\d",
)
ARTEFACT = re.compile(
    r"`[^`]+`|\b\w+\(\)|\b[\w/.-]+\.(py|js|ts|go|rs|md|json|toml|yaml|sql|sh)\b|\bv?\d+\.\d+\.\d+\b"
)
DEAD_END = cue(
    r"""
    (never ?mind|scratch that|forget it|not sure|no idea|dunno|i don't know|just kidding)
    """,
    "(ช่างมัน|ไม่แน่ใจ|ไม่รู้(สิ|เหมือนกัน)|ล้อเล่น)",
)
QUESTION_TH = re.compile(
    r"(ไหม|มั้ย|หรือเปล่า|รึเปล่า|หรือยัง|รึยัง|ยังไง|อย่างไร|อะไร|ทำไม|เมื่อไหร่|เมื่อไร|ที่ไหน|ใคร|กี่\S{0,12}"
    r"|เท่าไหร่|เท่าไร|หรอ|เหรอ)\s*(ครับ|ค่ะ|คะ|นะ|บ้าง|ดี|กัน|จ๊ะ|จ้ะ|ล่ะ)*\s*\??$"
)
DANGLING_TH = re.compile("^(แต่|แล้วก็|ก็|เพราะ|ซึ่ง|และ|เลย|ส่วน)")
WISH_TH = re.compile("^(ขอให้|อย่าลืม|เป็นความคิดที่ดี|ดีใจด้วย|ยินดีด้วย|เก่งมาก|ดีจัง|น่าสนุก|สู้)")

# Feelings a speaker names outright, by the label they count for.
FEELINGS = {
    "joy": cue("(happy|happiest|thrilled|overjoyed|delighted|over the moon)", "(ดีใจ|มีความสุข|สนุกมาก)"),
    "excitement": cue("(excited|can't wait|pumped|stoked)", "(ตื่นเต้น|รอไม่ไหว)"),
    "gratitude": cue("(grateful|thankful|blessed)", "(ซาบซึ้ง|ขอบคุณมาก)"),
    "pride": cue("proud", "ภูมิใจ"),
    "calm": cue("(calm|peaceful|relaxed|at peace)", "(สบายใจ|สงบ|ผ่อนคลาย)"),
    "hope": cue("(hopeful|optimistic)", "มีความหวัง"),
    "worry": cue("(worried|nervous|anxious|anxiety|scared|afraid|terrified)", "(กังวล|กลัว|ประหม่า)"),
    "stress": cue("(stressed|stressful|overwhelmed|swamped|exhausted|burnt out)", "(เครียด|เหนื่อยมาก)"),
    "sadness": cue("(sad|heartbroken|devastated|lonely|depressed|miss (him|her|them))", "(เสียใจ|เศร้า|คิดถึง)"),
    "anger": cue("(angry|furious|annoyed|frustrated|frustrating)", "(โกรธ|หงุดหงิด)"),
}

# Thai is written without spaces; a content word neither begins nor ends with one of these.
THAI_EDGES = tuple(
    sorted(
        listed(
            """
        ครับ ค่ะ คะ นะคะ นะครับ นะ จ้ะ จ๊ะ จ้า สิ ซิ ล่ะ เลย แล้ว แล้วก็ ก็ ที่ และ หรือ แต่ ของ ใน กับ ให้ ได้ ไป มา
        เป็น อยู่ คือ มี ไม่ จะ ว่า การ ความ ผม ฉัน หนู ดิฉัน เรา เขา เธอ มัน นี้ นั้น โน้น นี่ นั่น อัน มาก ๆ มากๆ หน่อย
        ด้วย ด้วยกัน กัน อีก ยัง ถ้า เพราะ โดย จาก ถึง ต่อ ตาม แบบ อย่าง เช่น คง ควร ต้อง อยาก กำลัง เคย พอ
        เมื่อ ตอน ช่วง ทุก บาง หลาย แค่ เอง ขึ้น ลง เข้า ออก กว่า ที่สุด ซึ่ง ไหม มั้ย อะไร ไง ยังไง ดู ใช้ เอา บอก
        คิด รู้ เห็น ชอบ ไว้ เสร็จ เริ่ม วันนี้ พรุ่งนี้ เมื่อวาน แรก ดีมาก สอง สาม หนึ่ง ละ สวัสดี ขอบคุณ ขอบคุณมาก โอเค
        ครับผม สบายดี ขอโทษ ยินดี ใช่ เรื่อง จริง จริงๆ ไม่ได้ ไม่มี แต่ละ ทั้ง ทั้งหมด นิด เยอะ ส่วน ขอ ลอง เกี่ยวกับ
        สำหรับ ตอนนี้ ต้องการ สามารถ ก่อน ใกล้ กลับ
        """
        ),
        key=lambda word: (-len(word), word),
    )
)
THAI_GENERIC = frozenset(
    listed(
        """
        ใหม่ คน วัน ปี เดือน ตัว เดียว พี่ น้อง ทำ หลัง ช่วย คุณ สัปดาห์ อาทิตย์ เช้า เย็น กลางวัน หน้า กิน สบาย สวัส
        เพิ่ง อาจ เวลา เหมือน นาน เดือนหน้า ตอนเช้า หัว ใจ กลับบ้าน ค่อย สนุก เก่ง เจ้า ผ่าน ลูก พัก อยู่ คิดว่า รู้สึก
        หน่อย เพื่อน ตื่นเต้น ดีใจ เพื่อ รับ ครั้ง ผู้ พวก ระหว่าง เนื่อง เนื่องจาก ขณะ ขณะที่ ทาง ตั้ง สุด ใหญ่ เกิด นอก
        จำนวน รวม เปลี่ยน ราย ประ ปฏิบัติ ถูก เกี่ยวข้อง เปลี่ยนแปลง ทั้งหมด เกี่ยวกับ มากกว่า น้อย กระทั่ง แรก เท่า
        แห่ง ต่าง ต่างๆ ด้าน ภายใน พร้อม พบ เรียก นำ เพียง ปัจจุบัน สำคัญ ดังกล่าว นอกจาก กลาย แทน อีกครั้ง ตลอด
        ผล สร้าง แสดง ข้าง สูง เล็ก ยาว ชื่อ
        """
    )
)
THAI_BREAK = re.compile("ครับผม|นะครับ|นะคะ|ครับ|ค่ะ|สวัสดี|ขอบคุณ|สบายดี|ขอโทษ|ยินดี")
THAI_SMALL_TALK = re.compile(
    "|".join(
        listed(
            """
            สวัสดี หวัดดี ขอบคุณ ขอบใจ โอเค ยินดี สบายดี ราตรีสวัสดิ์ ฝันดี บาย ใช่ จริง เหมือนกัน ครับผม ครับ ค่ะ คะ
            นะ จ้ะ จ้า เลย มาก ๆ แล้ว ก็ ด้วย ไว้ เจอกัน ใหม่ ดี ได้ ไหม คุณ วันนี้ เป็นไง เป็นยังไง บ้าง เช่นกัน ทุกคน
            ตอน เช้า เย็น ที่ และ ไป ก่อน ขอตัว คุยกัน พรุ่งนี้ ไม่เป็นไร ว้าว เก่ง สุดยอด ยอดเยี่ยม
            """
        )
    )
)
