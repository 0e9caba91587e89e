"""The one tree of errors; each knows its exit code, its HTTP status and what to do next.

OctavoError                      1  500
├── BadInput                     2  400   what was handed in cannot be used (also a ValueError)
│   ├── BadPolicy                2  400   the policy file names a wrong key or value
│   ├── BadFile                  2  400   a file to import is not what it claims to be
│   ├── BadVector                2  400   a vector of the wrong dimension, or with NaN or Inf
│   └── TooLarge                 2  413   a request carries more than is taken
├── NotFound                     3  404   no account, memory, version, sandbox or proposal of that name
├── Conflict                     4  409   somebody else was first
│   ├── VersionConflict          4  409   another writer took the version
│   ├── SandboxBusy              4  409   another owner holds the sandbox
│   ├── LeaseLost                4  409   another owner took the sandbox over; nothing was written
│   ├── SandboxClosed            4  409   the sandbox is sealed, consolidated or discarded
│   ├── Stale                    4  409   what the change was based on has changed since
│   └── Busy                     4  503   bounded attempts ran out; nothing was written
├── Refused                      5  422   the gate kept it out
│   └── Immutable                5  422   an episode never changes
├── NotAllowed                   6  403   this actor or handle may not do that
│   ├── HumanOnly                6  403   only a human actor may do that
│   ├── OutOfScope               6  403   the handle does not see that scope
│   ├── ReadOnly                 6  403   the account was opened to read
│   └── Stranger                 6  401   nobody is known by what the request brought
├── Damaged                      7  500   bytes are not what was written
│   ├── LedgerDamaged            7  500   a version file is corrupt, missing or out of order
│   ├── LedgerTruncated          7  500   the ledger ends before what was derived from it
│   ├── BufferDamaged            7  500   a session buffer is corrupt before its last line
│   ├── IndexDamaged             7  500   a derived file is corrupt; nothing is lost
│   └── NewerFormat              7  501   written by a newer Octavo
└── Unavailable                  8  503   the store or a service cannot do it now
    ├── StoreFull                8  507   no space is left
    ├── StoreUnfit               8  503   the store does not keep the promise the ledger needs
    ├── ModelFailed              8  502   an embedder or summariser did not answer
    └── TooOften                 8  429   a client asks more often than is answered
"""

from __future__ import annotations

from typing import ClassVar


class OctavoError(Exception):
    """Anything Octavo raises on purpose."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    hint: ClassVar[str] = "this is a defect of Octavo; please report it with the message above"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.advice = hint or type(self).hint

    def __str__(self) -> str:
        return f"{self.message} ({self.advice})" if self.advice else self.message


class BadInput(OctavoError, ValueError):
    """What was handed in cannot be used."""

    exit_code, http_status = 2, 400
    hint = "correct the value and try again"


class BadPolicy(BadInput):
    """The policy file names a wrong key or value."""

    hint = "correct the key in policy.toml; docs/policy.md lists every one"


class BadFile(BadInput):
    """A file to import is not what it claims to be."""

    hint = "nothing was imported; correct the file or name its format with --format"


class BadVector(BadInput):
    """A vector has the wrong dimension, or holds NaN or Inf."""

    hint = "hand in finite numbers of the dimension the index was made with"


class TooLarge(BadInput):
    """A request carries more than is taken."""

    http_status = 413
    hint = "send less at once"


class NotFound(OctavoError):
    """Nothing of that name exists."""

    exit_code, http_status = 3, 404
    hint = "list what exists and name one of those"


class Conflict(OctavoError):
    """Somebody else was first."""

    exit_code, http_status = 4, 409
    hint = "read again and retry"


class VersionConflict(Conflict):
    """Another writer took the version first."""

    hint = "consolidate again; the engine does this by itself unless strict=True"


class SandboxBusy(Conflict):
    """Another owner holds the sandbox."""

    hint = "wait until its owner is done or has ended; one sandbox has one owner at a time"


class LeaseLost(Conflict):
    """Another owner took the sandbox over, or it has gone; nothing was written."""

    hint = "resume the sandbox to go on with what is in it"


class SandboxClosed(Conflict):
    """The sandbox is sealed, consolidated or discarded."""

    hint = "open a new sandbox"


class Stale(Conflict):
    """What the change was based on has changed since."""

    hint = "look at the current state and decide again"


class Busy(Conflict):
    """Bounded attempts ran out; nothing was written and a sandbox stays."""

    http_status = 503
    hint = "try again in a moment"


class Refused(OctavoError):
    """The gate kept it out."""

    exit_code, http_status = 5, 422
    hint = "see the verdict's advice; a human may override with a reason"


class Immutable(Refused):
    """An episode never changes."""

    hint = "write a new episode, or forget this one"


class NotAllowed(OctavoError):
    """This actor or handle may not do that."""

    exit_code, http_status = 6, 403
    hint = "open the account with the right actor and scope"


class HumanOnly(NotAllowed):
    """Only a human actor may do that."""

    hint = 'open the account with actor="human:<name>", or ask a person'


class OutOfScope(NotAllowed):
    """The handle does not see that scope."""

    hint = "a bound handle sees `shared` and its own scope; open the owner's handle with scope=None"


class ReadOnly(NotAllowed):
    """The account was opened to read."""

    hint = "open it without read_only=True"


class Stranger(NotAllowed):
    """Nobody is known by what the request brought."""

    http_status = 401
    hint = "send a token: Authorization: Bearer <token>; `octavo token add` makes one"


class Damaged(OctavoError):
    """Bytes are not what was written."""

    exit_code, http_status = 7, 500
    hint = "nothing was changed; restore the file from a backup, then run `octavo check`"


class LedgerDamaged(Damaged):
    """A version file is corrupt, missing or out of order."""


class LedgerTruncated(Damaged):
    """The ledger ends before what was derived from it."""

    hint = "restore the missing version files, or accept the loss with `octavo repair --accept`"


class BufferDamaged(Damaged):
    """A session buffer is corrupt before its last line."""

    hint = "the buffer was left as it is; correct the line or discard the sandbox"


class IndexDamaged(Damaged):
    """A derived file is corrupt; nothing is lost."""

    hint = "`octavo repair` makes it anew from the ledger"


class NewerFormat(Damaged):
    """Written by a newer Octavo."""

    http_status = 501
    hint = "upgrade Octavo to read it; nothing was ignored or changed"


class Unavailable(OctavoError):
    """The store or a service cannot do it now."""

    exit_code, http_status = 8, 503
    hint = "check the store, then try again"


class StoreFull(Unavailable):
    """No space is left."""

    http_status = 507
    hint = "free some space and try again; nothing half-written remains"


class StoreUnfit(Unavailable):
    """The store does not keep the promise the ledger needs."""

    hint = "use a store with exclusive create; see docs/format.md"


class ModelFailed(Unavailable):
    """An embedder or summariser did not answer."""

    http_status = 502
    hint = "check the model's endpoint; recall goes on with words alone"


class TooOften(Unavailable):
    """A client asks more often than is answered."""

    http_status = 429
    hint = "wait a second and go on more slowly"
