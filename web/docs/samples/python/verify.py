"""Checks a webhook signature. Reads the body from standard input.

python3 verify.py SECRET SIGNATURE [PREVIOUS_SIGNATURE] < body
"""

import hashlib
import hmac
import sys


def genuine(secret: str, body: bytes, *signatures: str | None) -> bool:
    """Report whether one of the signatures was made with secret over the raw body.

    Pass x-hmac-signature and x-hmac-signature-previous, which is present while a
    secret is being rotated.
    """
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode()
    return any(
        hmac.compare_digest(expected, (signature or "").encode()) for signature in signatures
    )


# In Flask, request.get_data(); in Django, request.body; in FastAPI,
# await request.body(). Each is the raw body, before any parser:
#   genuine(secret, request.get_data(), request.headers.get("x-hmac-signature"),
#           request.headers.get("x-hmac-signature-previous"))

if __name__ == "__main__":
    ok = genuine(sys.argv[1], sys.stdin.buffer.read(), *sys.argv[2:])
    print("genuine" if ok else "forged")
    sys.exit(0 if ok else 1)
