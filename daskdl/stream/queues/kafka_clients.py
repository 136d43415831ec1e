"""Settings of Kafka clients, and the import of confluent-kafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from daskdl.errors import ClusterError, SettingsError, needed

#: Settings that the stream's promises rest on, and that nobody else is to set.
OURS = (
    "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof", "group.id",
    "transactional.id", "enable.idempotence", "auto.offset.reset", "delivery.report.only.error",
)  # fmt: skip


def confluent() -> Any:
    """Return the module confluent_kafka; raise MissingExtraError if it is not installed."""
    with needed(
        "Kafka: expected the package confluent-kafka, found {error}; pip install 'daskdl[kafka]'"
    ):
        import confluent_kafka
    return confluent_kafka


class Brokers:
    """Addresses and settings of Kafka's brokers; secrets are never shown.

    Parameters
    ----------
    servers : str
        ``host:port``, several separated by commas.
    settings : mapping of str to value
        Settings of librdkafka for both producers and consumers, such as ``security.protocol``,
        ``sasl.mechanism``, ``sasl.username``, ``sasl.password`` and ``ssl.ca.location``.

    Raises
    ------
    SettingsError
        For a setting that the stream itself makes.

    Examples
    --------
    >>> Brokers("kafka:9093", {"security.protocol": "ssl", "sasl.password": "secret"})
    Brokers('kafka:9093', ['sasl.password', 'security.protocol'])
    """

    def __init__(self, servers: str, settings: Mapping[str, Any] | None = None) -> None:
        ours = sorted(set(settings or ()) & {*OURS, "bootstrap.servers"})
        if ours:
            raise SettingsError(
                f"kafka settings: expected none of the stream's own, found {ours[0]}; leave it out"
            )
        self.servers, self._settings = servers, dict(settings or {})

    def __repr__(self) -> str:
        return f"Brokers({self.servers!r}, {sorted(self._settings)})"

    def client(self, kind: str, **settings: Any) -> Any:
        """Return a Consumer, Producer or AdminClient.

        Parameters
        ----------
        kind : str
        **settings :
            Settings of librdkafka, with ``_`` for dots; the user's settings win.

        Raises
        ------
        SettingsError
            When librdkafka does not take a setting.
        """
        kafka = confluent()
        import confluent_kafka.admin

        made = getattr(confluent_kafka.admin if kind == "AdminClient" else kafka, kind)
        chosen = {
            name if callable(value) else name.replace("_", "."): value
            for name, value in settings.items()
        }
        # Else it writes of every connection that is lost and found to standard error. And when all
        # are lost at once, librdkafka 2.16 begins again from the first addresses, with a request
        # under way left to a broker's thread that never ends: a transaction that hangs for ever.
        chosen = {
            "log_level": 2, "metadata.recovery.strategy": "none", **chosen,
            "bootstrap.servers": self.servers, **self._settings,
        }  # fmt: skip
        try:
            return made(chosen)
        except kafka.KafkaException as error:
            # The message names the setting; a secret's value is never in it, but its place may be.
            text = str(error.args[0].str() if error.args else error)
            raise SettingsError(
                f"kafka settings: expected settings of librdkafka, found that it says: {text}; "
                "see its list of settings"
            ) from None

    def unreachable(self, purpose: str, error: object) -> ClusterError:
        """Return the error for brokers that do not answer."""
        return ClusterError(
            f"{purpose}: expected Kafka brokers to answer at {self.servers}, found {error}; see "
            "whether they run, and whether TLS and SASL are set as they want them"
        )
