"""Certificates: who they are for, who signed them, and for what use."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path

import pytest

from pytest_drainwatch.cluster.embedded import pki

pytest.importorskip("cryptography")
from cryptography import x509
from cryptography.exceptions import InvalidSignature

CLIENT_AUTH = "1.3.6.1.5.5.7.3.2"


@pytest.fixture(scope="module")
def authority() -> pki.Authority:
    return pki.Authority("test")


def test_client_carries_user_and_groups(authority: pki.Authority) -> None:
    pair = authority.client("system:node:n", "system:nodes")
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    assert certificate.subject.rfc4514_string() == "CN=system:node:n,O=system:nodes"
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [use.dotted_string for use in usage] == [CLIENT_AUTH]


def test_server_names_hosts_and_addresses(authority: pki.Authority) -> None:
    pair = authority.server("api", ("198.18.0.8", "kubernetes.default"))
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["198.18.0.8"]
    assert names.get_values_for_type(x509.DNSName) == ["kubernetes.default"]


def test_signed_by_this_authority_and_no_other(authority: pki.Authority) -> None:
    own = x509.load_pem_x509_certificate(authority.certificate)
    other = x509.load_pem_x509_certificate(pki.Authority("test").certificate)
    issued = x509.load_pem_x509_certificate(authority.client("someone").certificate)
    issued.verify_directly_issued_by(own)
    with pytest.raises(InvalidSignature):
        issued.verify_directly_issued_by(other)


def test_handshake_with_verification_on_both_sides(
    authority: pki.Authority, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    pki.write_pair(tmp_path, "server", authority.server("s", ("node",)))
    pki.write_pair(tmp_path, "client", authority.client("c"))
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=tmp_path / "ca.crt")
    server_side.verify_mode = ssl.CERT_REQUIRED
    server_side.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    client_side = ssl.create_default_context(cafile=tmp_path / "ca.crt")
    client_side.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    client = client_side.wrap_bio(to_client, to_server, server_hostname="node")
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.version() == "TLSv1.3"
    assert server.getpeercert() is not None


def test_secret_is_never_readable_by_others(tmp_path: Path) -> None:
    pki.write_pair(tmp_path, "sa", pki.signing_pair(), public_suffix="pub")
    assert (tmp_path / "sa.key").stat().st_mode & 0o777 == 0o600
    assert b"PUBLIC KEY" in (tmp_path / "sa.pub").read_bytes()


def test_kubeconfig_holds_everything_itself(authority: pki.Authority) -> None:
    pair = authority.client("admin", "system:masters")
    text = pki.kubeconfig("https://h:6443", authority.certificate, "admin", pair, context="one")
    document = json.loads(text)
    assert document["current-context"] == "one"
    cluster = document["clusters"][0]["cluster"]
    assert cluster["server"] == "https://h:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == authority.certificate
    assert "token" not in text
    assert "insecure" not in text
