"""Say in plain words why a request got no answer."""

import re
import ssl

import httpcore

from lease import checks

# What a parser quotes of the bytes that it did not like, in its own language's way.
_BYTES = re.compile(r": bytearray\(.*", re.DOTALL)


def reason(error: Exception) -> str:
    """Return what has failed, without the numbers and names that only a program needs."""
    # Not its cause, which the client library has taken off by now.
    cause = error.args[0] if error.args else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return f"TLS failed: {str(cause.reason).lower().replace('_', ' ')}"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    text = str(cause)
    if isinstance(error, httpcore.ProtocolError):
        return f"no answer in HTTP: {checks.shown(_BYTES.sub('', text))}"
    return text
