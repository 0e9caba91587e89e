"""Words that tell what a sentence does: stop words, small talk, decisions, plans, feelings.

English and Thai. English words stand as `text.words` gives them: folded, without apostrophes.
"""

from __future__ import annotations

import re


def listed(block: str) -> list[str]:
    """The words of a block of text."""
    return block.split()


STOP = frozenset(
    listed(
        """
        a about above after again against ago all almost along already also although always am an
        and another any anyone anything are arent around as at away back be became because become
        been before being below between both but by can cant cause come could couldnt couple did
        didnt do does doesnt doing done dont down during each either else enough even ever every
        everyone everything few first for found from further gave get gets getting give go goes
        going gone gonna got gotta had hadnt half has hasnt have havent having he hell her here
        heres hers herself hes him himself his how however i id if ill im in instead into is isnt
        it itd itll its itself ive just keep kind kinda knew know known last later least less let
        lets like likely little made make makes making many may maybe me might mine more most much
        must my myself near need needs never new next no none nor not nothing now of off often oh
        ok okay on once one ones only onto or other others our ours ourselves out over own part
        past per perhaps put quite rather re really s said same saw say says see seem seems seen
        several shall she shes should shouldnt since so some someone something sometimes soon sort
        still such sure t take taken takes taking tell than that thatll thats the their theirs
        them themselves then there theres these they theyd theyll theyre theyve thing things think
        this those though three through til till to today together told tomorrow tonight too took
        toward towards tried try trying two under until up upon us use used using usually ve very
        want wanted wants was wasnt way we wed week weeks well went were werent weve what whats
        when where wheres whether which while who whole whos whose why will with within without
        wont would wouldnt yall yesterday yet you youd youll your youre yours yourself youve month
        months year years day days hour hours minute minutes time times lot lots bit ya em bout
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
        pushing different local delicious future success unique powerful gives giving given
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

DECISION = re.compile(
    r"\b(decided|decide|we agreed|agreed (to|that|on)|chose|chosen|picked|settled on|(am|are|'m|"
    r"'re) going with|went with|"
    r"made up my mind|the plan is|final(ly)? (choice|decision)|we('ll| will) go with|(i|we)('ve|"
    r" have)? accepted|(i|we) (\w+ )?signed (up|the)|"
    r"resolved to|approved|switch(ed|ing)? to|(i|we) (\w+ )?quit|quit my|moved? to)\b"
    r"|ตัดสินใจ|ตกลง(ว่า|จะ|กัน|ใจ|เลือก|ใช้)|เลือก(ใช้|ที่จะ|แบบ|เอา)|สรุปว่า|เปลี่ยนไปใช้|อนุมัติ|ลาออก|ย้ายไป",
    re.IGNORECASE,
)
COMMITMENT = re.compile(
    r"\b((i|we)('ll| will| shall)|(i|we)('m| am|'re| are) (going|planning|hoping|about) to|(i'm|"
    r"i am|we're|we are) gonna|"
    r"gonna|promise[ds]?|plan(ning)? (to|on|for|a)|deadline|due (on|by)|by (monday|tuesday|"
    r"wednesday|thursday|friday|"
    r"saturday|sunday|tomorrow|next)|next (week|month|year|summer|weekend)|scheduled|booked|"
    r"appointment|"
    r"looking forward to|signed up|applied (to|for)|remind me)\b"
    r"|สัญญา(ว่า|ไว้)|วางแผน|ตั้งใจ(จะ|ว่า)|นัด(หมาย|กัน|ไว้|หมอ|ลูกค้า)|กำหนดส่ง|ภายในวัน|(พรุ่งนี้|สัปดาห์หน้า|"
    r"เดือนหน้า|ปีหน้า|"
    r"อาทิตย์หน้า).{0,30}จะ|จะ.{0,40}(พรุ่งนี้|สัปดาห์หน้า|เดือนหน้า|ปีหน้า|อาทิตย์หน้า)|จองตั๋ว|จองที่พัก",
    re.IGNORECASE,
)
PREFERENCE = re.compile(
    r"\b(i|we) (really |always |just |also |still |truly |absolutely )*(love|like|enjoy|prefer|"
    r"hate|dislike|believe|"
    r"value|care about|dream of|can't stand|usually|always|never)\b"
    r"|\bmy (favou?rite|fave|goal is|dream is|dream job|passion (is|for)|hobby|hobbies|habit)\b|"
    r"\b(means|matters) (a lot|so much|everything|most) to me\b"
    r"|\bit'?s (really |so )?important (to|for) me\b|\b(is|are) (really |so |very )?important to me\b"
    r"|\b(helps|keeps|makes) me (relax|calm|happy|feel|express|sane|going|focus)\w*"
    r"|(ผม|ฉัน|หนู|เรา|ดิฉัน|พี่|น้อง)(ก็|ยัง)?(ไม่)?(ชอบ|รัก|เกลียด|เชื่อว่า|แพ้)|สำคัญ(มาก|ที่สุด|กับ|สำหรับ)|ความฝัน|"
    r"เป้าหมาย|งานอดิเรก|"
    r"เป็นประจำ|ทุก(วัน|เช้า|เย็น|สัปดาห์)",
    re.IGNORECASE,
)
EVENT = re.compile(
    r"^(just |finally |recently |also )*(lost|got|went|finished|started|joined|won|met|bought|"
    r"moved|visited|made|took|found|"
    r"finishing|working on|researching|been \w+ing)\b|\b(i|we|my \w+) (\w+ly |just |also |finally |"
    r"recently |even )*(went|had|got|made|took|started|joined|finished|won|met|bought|"
    r"moved|visited|attended|ran|painted|wrote|built|learned|learnt|lost|found|saw|tried|began|"
    r"gave|read|"
    r"completed|passed|received|signed|adopted|opened|launched|created|hosted|participated|"
    r"organi[sz]ed|\w{3,}ed)\b"
    r"|\b(i|we)('ve| have) (\w+ly |just |also |been )*\w+(ed|en|ne|t|ing)\b"
    r"|(ไป|ได้|ซื้อ|เจอ|เริ่ม|เสร็จ|พา|จอง|สมัคร|ส่ง|ทำ|แก้|เปิด|ย้าย|เรียน|สอบ).{0,60}(มา|แล้ว|เมื่อ)|เมื่อ(วาน|"
    r"เช้า|คืน|วัน|สัปดาห์|เดือน|ปี)",
    re.IGNORECASE,
)
# Encouragement that could stand in any conversation, and pronouns that point outside the sentence.
VAGUE = re.compile(
    r"\b(keep (going|at it|pushing|working|chasing|plugging|up|doing|it up|trying|striving)|"
    r"give up|giving up|(won't|not) quit|"
    r"(my|our) best|(gonna|going to|will|'ll) make it\b(?! to)|stay (positive|strong|optimistic|"
    r"focused)|(my|our) hearts?|"
    r"no matter what|i'm sure|anything is possible|means? a lot|means the world|worth it|"
    r"believe in (my|our|your)sel\w+|"
    r"bring joy|reach my dreams|those moments|i'll (always )?remember|in mind|is (the )?key|"
    r"chasing)\b|สู้ๆ|พยายามต่อไป",
    re.IGNORECASE,
)
POINTING = re.compile(
    r"\b(it|them|this|these|those|that|one)\b(?=\s*([.,!;–-]|$|(and|for|because|with|to|so|but|"
    r"when|is|was|has|too|again|"
    r"out|up|on|at|in|as|from|before|after|really|all)\b))",
    re.IGNORECASE,
)
WHEN = re.compile(
    r"\d|\b(yesterday|tomorrow|last (night|week|month|year|summer|weekend|fri|sat|sun|mon|tue|wed|"
    r"thu)\w*|"
    r"(mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|"
    r"september|october|"
    r"november|december|years? ago|months? ago|weeks? ago|next (week|month|year))\b"
    r"|เมื่อวาน|พรุ่งนี้|เดือน(ที่แล้ว|หน้า|ก่อน)|สัปดาห์(ที่แล้ว|หน้า|ก่อน)|วัน(จันทร์|อังคาร|พุธ|พฤหัส|ศุกร์|เสาร์|อาทิตย์)|"
    r"ปี(ที่แล้ว|หน้า|ก่อน)",
    re.IGNORECASE,
)
ARTEFACT = re.compile(
    r"`[^`]+`|\b\w+\(\)|\b[\w/.-]+\.(py|js|ts|go|rs|md|json|toml|yaml|sql|sh)\b|\bv?\d+\.\d+\.\d+\b"
)
DEAD_END = re.compile(
    r"\b(never ?mind|scratch that|forget it|not sure|no idea|dunno|i don't know|just kidding)\b"
    r"|ช่างมัน|ไม่แน่ใจ|ไม่รู้(สิ|เหมือนกัน)|ล้อเล่น",
    re.IGNORECASE,
)
QUESTION_TH = re.compile(
    r"(ไหม|มั้ย|หรือเปล่า|รึเปล่า|หรือยัง|รึยัง|ยังไง|อย่างไร|อะไร|ทำไม|เมื่อไหร่|เมื่อไร|ที่ไหน|ใคร|กี่\S{0,12}|เท่าไหร่|"
    r"เท่าไร|หรอ|เหรอ)"
    r"\s*(ครับ|ค่ะ|คะ|นะ|บ้าง|ดี|กัน|จ๊ะ|จ้ะ|ล่ะ)*\s*\??$"
)

DANGLING_TH = re.compile("^(แต่|แล้วก็|ก็|เพราะ|ซึ่ง|และ|เลย|ส่วน)")
WISH_TH = re.compile("^(ขอให้|อย่าลืม|เป็นความคิดที่ดี|ดีใจด้วย|ยินดีด้วย|เก่งมาก|ดีจัง|น่าสนุก|สู้)")

# Feelings a speaker names outright, by the label they count for.
FEELINGS: dict[str, re.Pattern[str]] = {
    label: re.compile(pattern, re.IGNORECASE)
    for label, pattern in {
        "joy": r"\b(happy|happiest|thrilled|overjoyed|delighted|over the moon)\b|ดีใจ|มีความสุข|สนุกมาก",
        "excitement": r"\b(excited|can't wait|pumped|stoked)\b|ตื่นเต้น|รอไม่ไหว",
        "gratitude": r"\b(grateful|thankful|blessed)\b|ซาบซึ้ง|ขอบคุณมาก",
        "pride": r"\bproud\b|ภูมิใจ",
        "calm": r"\b(calm|peaceful|relaxed|at peace)\b|สบายใจ|สงบ|ผ่อนคลาย",
        "hope": r"\b(hopeful|optimistic)\b|มีความหวัง",
        "worry": r"\b(worried|nervous|anxious|anxiety|scared|afraid|terrified)\b|กังวล|กลัว|ประหม่า",
        "stress": r"\b(stressed|stressful|overwhelmed|swamped|exhausted|burnt out)\b|เครียด|เหนื่อยมาก",
        "sadness": r"\b(sad|heartbroken|devastated|lonely|depressed|miss (him|her|them))\b|เสียใจ|"
        r"เศร้า|คิดถึง",
        "anger": r"\b(angry|furious|annoyed|frustrated|frustrating)\b|โกรธ|หงุดหงิด",
    }.items()
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
