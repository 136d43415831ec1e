"""A network that drops connections, and TLS between a stream and its broker."""

from __future__ import annotations

import datetime
import ipaddress
import signal
import ssl
from contextlib import closing

import pytest

from ci.kafka import Proxy
from daskdl.errors import ClusterError
from daskdl.stream import Brokers, KafkaSource, Limits, Stream
from tests.daskdl.stream.models import begun, once_and_in_order, stream_of

pytest.importorskip("confluent_kafka")

ONCE = {"exactly_once": True, "limits": Limits(batch=8, lease=4.0), "silence": 5.0}


@pytest.mark.slow
def test_dropped_connections_lose_nothing_and_repeat_nothing(client, real, name, model):
    begun(real, name, 400)
    with closing(Proxy(real.port)) as between:
        cuts, more = [], []

        def watch(stream: Stream) -> None:
            if len(cuts) < 4 and stream.status.records > 60 * (1 + len(cuts)):
                cuts.append(between.drop())
            if len(cuts) == 2 and len(more) < 5:
                more.append(between.drop())  # again and again while they come back
            if len(cuts) == 4 and all(r.ended for r in stream.status.workers.values()):
                stream.stop()

        status = stream_of(Brokers(between.servers), name, model, **ONCE).run(
            client, watch=watch, seconds=60
        )
        assert sum(cuts) > 0
        assert between.taken > between.dropped > 0
    assert status.records >= 400
    once_and_in_order(real.servers, name, 400)


@pytest.mark.kills
@pytest.mark.long
def test_a_stop_without_a_broker_ends_in_time_and_frees_the_workers(client, real, name, model):
    brokers = begun(real, name, 3000)

    def watch(stream: Stream) -> None:
        if stream.status.records > 40:
            real.signal(signal.SIGSTOP)
            stream.stop()

    try:
        with pytest.raises(ClusterError, match="within 2 s, found"):
            stream_of(brokers, name, model, **ONCE, stop_within=2.0).run(
                client, watch=watch, seconds=60
            )
        assert client.submit(int, "7", pure=False).result(60) == 7  # its threads are free again
    finally:
        real.signal(signal.SIGCONT)
    stream_of(brokers, name, model, **ONCE).run(client, until_end=True, seconds=60)
    once_and_in_order(real.servers, name, 3000)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Return the folder of a certificate for 127.0.0.1 that signs itself, and its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "broker")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(1))
        .not_valid_after(now + datetime.timedelta(1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder


@pytest.fixture
def secured(real, certificate):
    """The broker behind TLS."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with closing(Proxy(real.port, tls)) as between:
        yield between


@pytest.mark.slow
def test_a_stream_over_tls_and_sasl(client, real, secured, certificate, name, model):
    begun(real, name, 80)
    settings = {
        **PLAIN,
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": str(certificate / "cert.pem"),
    }
    stream = stream_of(Brokers(secured.servers, settings), name, model, **ONCE)
    status = stream.run(client, until_end=True, seconds=60)
    assert status.records == 80
    assert min(secured.bytes) > 0
    once_and_in_order(real.servers, name, 80)


PLAIN = {"sasl.mechanism": "PLAIN", "sasl.username": "me", "sasl.password": "s3cret"}


@pytest.mark.parametrize("sasl", [None, "SCRAM-SHA-512"])
def test_brokers_that_refuse_are_named_without_secrets(
    secured, certificate, name, monkeypatch, capfd, caplog, sasl
):
    """The certificate's authority is unknown, or the broker does not speak the SASL mechanism."""
    monkeypatch.setattr("daskdl.stream.queues.kafka_source.PATIENCE", 1.0)
    settings = {"security.protocol": "ssl"}
    if sasl:
        settings = {**PLAIN, "security.protocol": "sasl_ssl", "sasl.mechanism": sasl}
        settings["ssl.ca.location"] = str(certificate / "cert.pem")
    with pytest.raises(ClusterError, match="whether TLS and SASL are set as they want") as error:
        KafkaSource(Brokers(secured.servers, settings), [name], name).partitions()
    assert "s3cret" not in "".join([str(error.value), *capfd.readouterr(), caplog.text])
