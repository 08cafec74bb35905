"""Settings for Kafka clients: a node's topics work with any of them, nothing is wrapped.

```
from confluent_kafka import Producer
from telpher import kafka

producer = Producer(kafka.confluent_settings("127.0.0.1:9092"))
```
"""

from __future__ import annotations

import ssl
from typing import Any

__all__ = ["aiokafka_settings", "confluent_settings"]

DEFAULT_ADDRESS = "127.0.0.1:9092"


def confluent_settings(
    address: str = DEFAULT_ADDRESS,
    *,
    token: str | None = None,
    user: str = "default/default/anonymous",
    authorities: str | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Returns the settings of a `Producer`, `Consumer` or `AdminClient` of confluent-kafka.

    `token` is a token of the node, and `user` a name that it may use. `authorities` is the PEM file
    of the authorities to trust, for a node with TLS ("" for those of the system). Further
    `settings` are taken as they are; write dots as underscores: `group_id="workers"`.
    """
    made: dict[str, Any] = {"bootstrap.servers": address}
    is_tls = authorities is not None
    if token is not None:
        made["security.protocol"] = "SASL_SSL" if is_tls else "SASL_PLAINTEXT"
        made["sasl.mechanism"] = "PLAIN"
        made["sasl.username"] = user
        made["sasl.password"] = token
    elif is_tls:
        made["security.protocol"] = "SSL"
    if authorities:
        made["ssl.ca.location"] = authorities
    made.update({name.replace("_", "."): value for name, value in settings.items()})
    return made


def aiokafka_settings(
    address: str = DEFAULT_ADDRESS,
    *,
    token: str | None = None,
    user: str = "default/default/anonymous",
    authorities: str | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Returns the keyword arguments of an `AIOKafkaProducer` or `AIOKafkaConsumer`.

    The parameters are those of `confluent_settings`; further `settings` are taken as they are.
    """
    made: dict[str, Any] = {"bootstrap_servers": address}
    is_tls = authorities is not None
    if token is not None:
        made["security_protocol"] = "SASL_SSL" if is_tls else "SASL_PLAINTEXT"
        made["sasl_mechanism"] = "PLAIN"
        made["sasl_plain_username"] = user
        made["sasl_plain_password"] = token
    elif is_tls:
        made["security_protocol"] = "SSL"
    if is_tls:
        made["ssl_context"] = ssl.create_default_context(cafile=authorities or None)
    return {**made, **settings}
