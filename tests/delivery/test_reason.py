"""reason: what a failed request is told as, without what only a program needs."""

import ssl

import httpcore
import pytest

from lease.delivery._reason import reason

UNTRUSTED = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] (_ssl.c:1006)")
UNTRUSTED.verify_message = "self-signed certificate"
NO_TLS = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)")
NO_TLS.reason = "WRONG_VERSION_NUMBER"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            httpcore.ConnectError(ConnectionRefusedError(111, "Connection refused")),
            "Connection refused",
        ),
        (httpcore.ReadError(OSError("no number")), "no number"),
        (httpcore.ReadError(), ""),
        (httpcore.ConnectError("no address: no reason"), "no address: no reason"),
        (
            httpcore.ConnectError(UNTRUSTED),
            "its certificate is not trusted: self-signed certificate",
        ),
        (httpcore.ConnectError(NO_TLS), "TLS failed: wrong version number"),
        (
            httpcore.RemoteProtocolError(ValueError("illegal line: bytearray(b'\\n\n')")),
            "no answer in HTTP: 'illegal line'",
        ),
        (httpcore.RemoteProtocolError("hung\x1b up"), "no answer in HTTP: 'hung\\x1b up'"),
    ],
)
def test_reason_is_in_plain_words(error: Exception, told: str) -> None:
    """No number of an error, no line of a C file, no Python type."""
    assert reason(error) == told
