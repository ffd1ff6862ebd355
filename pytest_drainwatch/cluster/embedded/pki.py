"""A certificate authority for one cluster's lifetime, and what it signs.

The authority's private key never leaves memory: nothing in a cluster that lives for
minutes needs to sign more certificates. Keys are P-256, which costs a millisecond each.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

LIFETIME = datetime.timedelta(days=30)
# Clocks of nodes may differ a little from the harness's.
BACKDATED = datetime.timedelta(minutes=5)


class Pair(NamedTuple):
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs client and serving certificates."""

    def __init__(self, name: str) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name, ())
        self._certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signing=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, _hash())
        )

    @property
    def certificate(self) -> bytes:
        """The authority's own certificate, PEM."""
        return _pem(self._certificate)

    def client(self, name: str, *groups: str) -> Pair:
        """A certificate by which Kubernetes knows a user *name* in *groups*."""
        from cryptography.x509.oid import ExtendedKeyUsageOID

        return self._issue(_subject(name, groups), ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def server(self, name: str, alternatives: Sequence[str]) -> Pair:
        """A serving certificate; *alternatives* are DNS names and IP addresses."""
        from cryptography.x509.oid import ExtendedKeyUsageOID

        return self._issue(_subject(name, ()), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def _issue(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, alternatives: Sequence[str]
    ) -> Pair:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signing=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if alternatives:
            names = x509.SubjectAlternativeName([_general_name(text) for text in alternatives])
            builder = builder.add_extension(names, critical=False)
        return Pair(_pem(builder.sign(self._key, _hash())), _key_pem(key))

    def _builder(
        self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        from cryptography import x509

        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATED)
            .not_valid_after(now + LIFETIME)
        )


def signing_pair() -> Pair:
    """A public key (first) and private key that sign and check service account tokens."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return Pair(public, _key_pem(key))


def write_pair(folder: Path, name: str, pair: Pair, *, public_suffix: str = "crt") -> None:
    """Write *pair* as NAME.crt and NAME.key, the key readable by its owner only."""
    (folder / f"{name}.{public_suffix}").write_bytes(pair.certificate)
    write_secret(folder / f"{name}.key", pair.key)


def write_secret(path: Path, content: bytes) -> None:
    """Create *path*, readable by its owner only from its first moment on."""
    path.touch(mode=0o600)
    path.write_bytes(content)


def kubeconfig(server: str, authority: bytes, user: str, pair: Pair, *, context: str) -> str:
    """A kubeconfig that holds its certificates itself. JSON, which is YAML as well."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": context,
                "cluster": {"server": server, "certificate-authority-data": _base64(authority)},
            }
        ],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _base64(pair.certificate),
                    "client-key-data": _base64(pair.key),
                },
            }
        ],
        "contexts": [{"name": context, "context": {"cluster": context, "user": user}}],
        "current-context": context,
    }
    return json.dumps(document, indent=1) + "\n"


def _subject(name: str, groups: Sequence[str]) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        + [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    )


def _general_name(text: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _usage(*, signing: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signing,
        crl_sign=signing,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _hash() -> hashes.SHA256:
    from cryptography.hazmat.primitives import hashes

    return hashes.SHA256()


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        # Go's loader for service account keys takes SEC 1 and PKCS 8 alike.
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
