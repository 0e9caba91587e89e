"""What a store behind a network promises when replies are lost and connections break off."""

from __future__ import annotations

from contextlib import suppress

import pytest

from octavo.errors import LeaseLost, Unavailable
from octavo.storage.stores.entries import every
from octavo.storage.stores.retrying import Patience
from octavo.testing import open_on
from places import patiently


class NetworkSuite:
    """Subclass it with fixtures `proxy`, `connect(patience)` (behind it) and `direct`."""

    def test_a_lost_reply_to_create_is_no_loss(self, proxy, connect, request):
        store = connect().open(request.node.name)
        store.create("warm", b"up")
        for n in range(4):
            with proxy.losing():
                assert store.create(f"ledger/{n}", b"mine %d" % n)
        assert proxy.lost >= 4
        assert [store.read(f"ledger/{n}") for n in range(4)] == [b"mine %d" % n for n in range(4)]
        store.create("ledger/9", b"somebody else's")
        with proxy.losing():
            assert not store.create("ledger/9", b"mine")

    def test_a_lost_reply_to_append_counts_the_line_once(self, proxy, connect, request):
        store = connect().open(request.node.name)
        store.create("buffers/s", b"0\n")
        with proxy.losing():
            held = store.hold("buffers/s", 60)
        for n in range(1, 5):
            with proxy.losing():
                held.append(b"%d\n" % n)
        assert list(store.lines("buffers/s")[0]) == [b"%d\n" % n for n in range(5)]
        with proxy.losing():
            held.close()
        store.hold("buffers/s", 60).close()

    def test_a_line_that_was_given_up_makes_room_for_another(self, proxy, connect, request):
        store = connect(Patience(attempts=1)).open(request.node.name)
        store.create("buffers/s", b"0\n")
        held = store.hold("buffers/s", 60)
        expected, given_up = [b"0\n"], 0
        while given_up < 3:
            with proxy.losing():  # the reply that is lost may be one that opens another connection
                try:
                    held.append(b"first\n")
                    expected.append(b"first\n")
                except Unavailable:
                    given_up += 1
                    held.append(b"instead\n")
                    expected.append(b"instead\n")
        held.close()
        assert list(store.lines("buffers/s")[0]) == expected

    def test_who_was_followed_while_its_reply_was_lost_is_told(self, proxy, connect, request):
        store, other = (
            connect(Patience(attempts=1)).open(request.node.name),
            connect().open(request.node.name),
        )
        store.create("buffers/s", b"0\n")
        held = store.hold("buffers/s", 60, owner="one")
        lost = proxy.lost
        with proxy.losing(), suppress(Unavailable):
            held.append(b"1\n")
        assert proxy.lost == lost + 1
        heir = other.hold("buffers/s", 60, owner="one")  # the same name, as a process that began anew
        assert list(heir.lines()) == [b"0\n", b"1\n"]
        heir.close()
        heir = other.hold("buffers/s", 60)
        heir.append(b"2\n")
        with pytest.raises(LeaseLost):
            held.append(b"late\n")
        heir.close()
        assert list(other.lines("buffers/s")[0]) == [b"0\n", b"1\n", b"2\n"]

    def test_commits_over_a_network_that_breaks_off_are_made_once(self, proxy, connect, request, tmp_path):
        store = connect().open(request.node.name)
        acknowledged = []
        with open_on(store, tmp_path / "index") as account:
            for n in range(12):
                with proxy.losing(skip=n % 6):
                    account.remember(f"กระถางที่ {n}", kind="register", topic=f"pot {n}")
                acknowledged.append(f"กระถางที่ {n}")
                if n % 4 == 0:
                    proxy.cut()
            with account.sandbox() as sandbox:
                for n in range(6):
                    with proxy.losing(skip=n % 3):
                        sandbox.turn("user", f"line {n}")
                    proxy.cut()
            assert sorted(m.text for m in account.memories(kind="register")) == sorted(acknowledged)
            assert account.check()
        assert len(list(every(store, "ledger/"))) == 13

    def test_a_machine_cut_off_from_its_store_is_followed_and_writes_no_more(
        self, proxy, connect, direct, request
    ):
        lease = 2.0
        store, other = connect(Patience(attempts=1)).open(request.node.name), direct.open(request.node.name)
        store.create("buffers/s", b"0\n")
        held = store.hold("buffers/s", lease)
        held.append(b"1\n")
        with proxy.apart():
            with pytest.raises(Unavailable):
                held.append(b"never acknowledged\n")
            heir = patiently(lambda: other.hold("buffers/s", 60), 30)
            assert list(heir.lines()) == [b"0\n", b"1\n"]
            heir.append(b"2\n")
        for _ in range(20):  # connections come back one after the other
            with pytest.raises((LeaseLost, Unavailable)) as said:
                held.append(b"never acknowledged\n")
            if said.type is LeaseLost:
                break
        assert said.type is LeaseLost
        heir.append(b"3\n")
        assert list(other.lines("buffers/s")[0]) == [b"0\n", b"1\n", b"2\n", b"3\n"]

    def test_a_store_that_cannot_be_reached_says_what_was_tried_and_no_password(
        self, proxy, connect, request, caplog
    ):
        place = connect(Patience(attempts=2, sleep=lambda _: None))
        store = place.open(request.node.name)
        store.create("a", b"1")
        proxy.close()
        with caplog.at_level("DEBUG"), pytest.raises(Unavailable, match="tried 2 times") as said:
            store.read("a")
        assert "reading a" in said.value.message
        assert "s3cret" not in f"{said.value} {said.value.__cause__} {caplog.text} {place.name}"
