"""A certificate for 127.0.0.1 that only tests trust; its key is public and protects nothing."""

import ssl
from pathlib import Path

PEM = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgEASrhNOQMOYNg70c
MzHE3AfnvOf7iu9W7awFztmwzeyhRANCAATf9EBby0EwZl+q18FHy30WylcGbndV
/gNrUfRd8rJ8rhyVTnHXhk04kY+yfBj4UaWQmFEguXUnL6vl2LZg7ihc
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBbTCCARSgAwIBAgIBATAKBggqhkjOPQQDAjAVMRMwEQYDVQQDDApsZWFzZSB0
ZXN0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAVMRMwEQYDVQQD
DApsZWFzZSB0ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE3/RAW8tBMGZf
qtfBR8t9FspXBm53Vf4Da1H0XfKyfK4clU5x14ZNOJGPsnwY+FGlkJhRILl1Jy+r
5di2YO4oXKNTMFEwDwYDVR0RBAgwBocEfwAAATAPBgNVHRMBAf8EBTADAQH/MA4G
A1UdDwEB/wQEAwIChDAdBgNVHQ4EFgQUA9Jf3UurZ1CplSm4mC/KnOpP5NEwCgYI
KoZIzj0EAwIDRwAwRAIgfSjwd/jFJHVxPmRc3KNSognuy9GQ3f55OLQdxJxN+UYC
IDMnwvAIKVFoRc6sPTrs6HTE/tG1iRKz9O8DuD5DFWsU
-----END CERTIFICATE-----
"""


def write(folder: Path) -> Path:
    """Write the certificate, with its key, into a folder and return its path."""
    path = folder / "localhost.pem"
    path.write_text(PEM, encoding="ascii")
    return path


def server_context(path: Path) -> ssl.SSLContext:
    """Return the context of a server that shows the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
