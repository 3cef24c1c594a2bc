"""Invitations to a study: codes that links carry, one for each participant, or one for all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from magrounding.errors import ConfigurationError
from magrounding.play.web.messages import Refusal
from magrounding.storage import lines_of, read_text

_CODE = re.compile(r"[A-Za-z0-9_-]{8,64}")


@dataclass(frozen=True)
class Invitations:
    """Codes of which a participant has one.

    Attributes:
        digests: of the codes (`digest_of`).
        personal: each code is one participant's.
    """

    digests: frozenset[str]
    personal: bool

    @classmethod
    def of_code(cls, code: str) -> Invitations:
        """One code for all; ConfigurationError for what is no code."""
        return cls(frozenset([digest_of(_checked(code))]), personal=False)

    @classmethod
    def read(cls, path: Path) -> Invitations:
        """The codes in a file, one a line; ConfigurationError where there are none, one is no code or there twice."""
        try:
            codes = [_checked(line.strip()) for line in lines_of(read_text(path)) if line.strip()]
        except OSError as error:
            raise ConfigurationError(f"the invitations {path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigurationError(f"the invitations {path} are no text") from None
        if not codes or len(set(codes)) < len(codes):
            raise ConfigurationError(f"{path} has one invitation code on each line, and none of them twice")
        return cls(frozenset(map(digest_of, codes)), personal=True)

    def check(self, code: str) -> str:
        """Return the digest of a code, "" of one for all; Refusal where it is none of these."""
        found = digest_of(code)
        if found not in self.digests:
            raise Refusal("no_invitation")
        return found if self.personal else ""


def digest_of(secret: str) -> str:
    """SHA-256 of a code or ticket, as the data of a study has it: a reader of them cannot take part with it."""
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _checked(code: str) -> str:
    if not _CODE.fullmatch(code):
        raise ConfigurationError(f"an invitation code is 8 to 64 of the letters a to z, digits, - and _, got {code!r}")
    return code
