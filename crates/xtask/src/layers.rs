//! Allowed and forbidden dependencies of each of our crates.
//!
//! A layer is described by what it does not know. A missing line in `Cargo.toml` enforces it; this
//! table detects an added line.

/// Rules of one of our crates.
pub(crate) struct Layer {
    /// Name without the prefix of the product.
    pub(crate) name: &'static str,
    /// Our crates that it may depend on.
    pub(crate) may_use: &'static [&'static str],
    /// Packages that must not be among its direct and indirect dependencies.
    pub(crate) must_not_know: &'static [&'static str],
}

const ENGINE: &[&str] = &[
    "axum",
    "futures-util",
    "hyper",
    "libc",
    "mio",
    "rustls",
    "serde",
    "serde_core",
    "serde_json",
    "socket2",
    "tokio",
    "toml",
];

/// Forbidden packages of crates that use a disk or the system's random bytes. They are not engines,
/// but know no network and no formats either.
const STORAGE: &[&str] = &[
    "axum",
    "futures-util",
    "hyper",
    "mio",
    "rustls",
    "serde",
    "serde_core",
    "serde_json",
    "socket2",
    "tokio",
    "toml",
];

const SHELL: &[&str] = &[
    "axum",
    "hyper",
    "mio",
    "redis",
    "rustls",
    "serde_json",
    "tokio",
    "tokio-postgres",
    "tonic",
];

/// Forbidden packages of crates that turn text into values and back, for several listeners.
const TEXT: &[&str] = &["axum", "hyper", "mio", "rustls", "tokio"];

/// Forbidden packages of the parts that all listeners share: they belong to one protocol.
const DOOR: &[&str] = &["axum", "h2", "hyper", "jsonwebtoken", "serde_json"];

/// Forbidden packages of the resources of the HTTP API: sockets belong to the listener.
const RESOURCE: &[&str] = &["h2", "jsonwebtoken", "tokio-rustls", "procfs"];

const NOTHING: &[&str] = &[];

/// Rules of every crate of the workspace, lowest first. A crate that is missing here fails the
/// check.
pub(crate) const LAYERS: &[Layer] = &[
    Layer {
        name: "model",
        may_use: &[],
        must_not_know: ENGINE,
    },
    Layer {
        name: "routing",
        may_use: &["model"],
        must_not_know: ENGINE,
    },
    Layer {
        name: "conversations",
        may_use: &["model"],
        must_not_know: ENGINE,
    },
    Layer {
        name: "mailbox",
        may_use: &[],
        must_not_know: ENGINE,
    },
    Layer {
        name: "recordbatch",
        may_use: &[],
        must_not_know: ENGINE,
    },
    Layer {
        name: "topics",
        may_use: &[],
        must_not_know: ENGINE,
    },
    Layer {
        name: "quota",
        may_use: &["model"],
        must_not_know: ENGINE,
    },
    Layer {
        name: "journal",
        may_use: &[],
        must_not_know: STORAGE,
    },
    Layer {
        name: "wire",
        may_use: &["model"],
        must_not_know: ENGINE,
    },
    Layer {
        name: "net",
        may_use: &[],
        must_not_know: &["axum", "hyper", "serde"],
    },
    Layer {
        name: "kafka",
        may_use: &[],
        must_not_know: ENGINE,
    },
    Layer {
        name: "slim",
        may_use: &[],
        must_not_know: STORAGE,
    },
    Layer {
        name: "json",
        may_use: &[],
        must_not_know: &["axum", "hyper", "tokio"],
    },
    Layer {
        name: "client",
        may_use: &["model", "net", "wire"],
        must_not_know: &["axum", "hyper"],
    },
    Layer {
        name: "platform",
        may_use: &["journal", "model"],
        must_not_know: STORAGE,
    },
    Layer {
        name: "store",
        may_use: &["journal", "model", "platform"],
        must_not_know: STORAGE,
    },
    Layer {
        name: "access",
        may_use: &["model", "platform"],
        must_not_know: SHELL,
    },
    Layer {
        name: "conversation-service",
        may_use: &["conversations", "journal", "model", "platform", "store"],
        must_not_know: STORAGE,
    },
    Layer {
        name: "views",
        may_use: &[
            "conversation-service",
            "conversations",
            "journal",
            "model",
            "platform",
            "store",
        ],
        must_not_know: STORAGE,
    },
    Layer {
        name: "webhooks",
        may_use: &[
            "conversation-service",
            "conversations",
            "journal",
            "model",
            "platform",
            "store",
            "views",
        ],
        must_not_know: STORAGE,
    },
    Layer {
        name: "node",
        may_use: &[
            "access",
            "conversation-service",
            "conversations",
            "journal",
            "mailbox",
            "model",
            "platform",
            "quota",
            "recordbatch",
            "routing",
            "store",
            "topics",
            "views",
            "webhooks",
        ],
        must_not_know: SHELL,
    },
    Layer {
        name: "message-json",
        may_use: &["conversation-service", "json", "model"],
        must_not_know: TEXT,
    },
    Layer {
        name: "scram",
        may_use: &["node"],
        must_not_know: TEXT,
    },
    Layer {
        name: "door",
        may_use: &["access", "model", "net", "node"],
        must_not_know: DOOR,
    },
    Layer {
        name: "door-native",
        may_use: &[
            "access",
            "conversation-service",
            "door",
            "message-json",
            "model",
            "net",
            "node",
            "platform",
            "store",
            "wire",
        ],
        must_not_know: &["axum", "h2", "hyper", "jsonwebtoken"],
    },
    Layer {
        name: "door-kafka",
        may_use: &[
            "access", "door", "kafka", "model", "net", "node", "platform", "scram",
        ],
        must_not_know: &["axum", "h2", "hyper", "jsonwebtoken", "serde_json"],
    },
    Layer {
        name: "door-slim",
        may_use: &["access", "door", "model", "net", "node", "platform", "slim"],
        must_not_know: &["axum", "utoipa"],
    },
    Layer {
        name: "http-api",
        may_use: &[
            "access",
            "conversation-service",
            "door",
            "model",
            "net",
            "node",
            "views",
            "webhooks",
        ],
        must_not_know: RESOURCE,
    },
    Layer {
        name: "http-quotas",
        may_use: &[
            "access", "door", "http-api", "json", "model", "node", "platform",
        ],
        must_not_know: RESOURCE,
    },
    Layer {
        name: "http-conversations",
        may_use: &[
            "conversation-service",
            "door",
            "http-api",
            "json",
            "message-json",
            "model",
            "node",
            "platform",
            "views",
            "webhooks",
        ],
        must_not_know: RESOURCE,
    },
    Layer {
        name: "http-topics",
        may_use: &["door", "http-api", "model", "node", "platform", "scram"],
        must_not_know: RESOURCE,
    },
    Layer {
        name: "door-http",
        may_use: &[
            "access",
            "conversation-service",
            "door",
            "http-api",
            "http-conversations",
            "http-quotas",
            "http-topics",
            "json",
            "message-json",
            "model",
            "net",
            "node",
            "platform",
            "store",
            "views",
            "webhooks",
            "wire",
        ],
        must_not_know: &["h2", "jsonwebtoken"],
    },
    Layer {
        name: "door-testing",
        may_use: &["journal", "node", "platform"],
        must_not_know: NOTHING,
    },
    Layer {
        name: "outbound",
        may_use: &[
            "conversation-service",
            "conversations",
            "model",
            "node",
            "quota",
            "webhooks",
        ],
        must_not_know: &["axum"],
    },
    Layer {
        name: "meter",
        may_use: &[],
        must_not_know: &[
            "axum",
            "futures-util",
            "hyper",
            "mio",
            "rustls",
            "socket2",
            "tokio",
        ],
    },
    Layer {
        name: "bench",
        may_use: &["meter"],
        must_not_know: &["hyper", "rustls"],
    },
    Layer {
        name: "bench-messaging",
        may_use: &["bench", "client", "meter", "slim"],
        must_not_know: NOTHING,
    },
    Layer {
        name: "bench-storage",
        may_use: &["bench", "client", "journal", "meter"],
        must_not_know: NOTHING,
    },
    Layer {
        name: "bench-kafka",
        may_use: &["bench", "kafka", "meter", "model", "recordbatch"],
        must_not_know: NOTHING,
    },
    Layer {
        name: "bench-quota",
        may_use: &["bench", "client", "meter"],
        must_not_know: NOTHING,
    },
    Layer {
        name: "checks",
        may_use: &[
            "bench",
            "bench-kafka",
            "bench-messaging",
            "bench-quota",
            "bench-storage",
            "client",
            "journal",
            "kafka",
            "meter",
            "slim",
        ],
        must_not_know: NOTHING,
    },
    Layer {
        name: "telpher",
        may_use: &[
            "access",
            "bench",
            "bench-kafka",
            "bench-messaging",
            "bench-quota",
            "bench-storage",
            "checks",
            "client",
            "conversation-service",
            "journal",
            "door",
            "door-http",
            "door-kafka",
            "door-native",
            "door-slim",
            "http-api",
            "http-conversations",
            "http-quotas",
            "message-json",
            "meter",
            "model",
            "net",
            "node",
            "outbound",
            "platform",
            "slim",
            "store",
            "views",
            "webhooks",
            "wire",
        ],
        must_not_know: NOTHING,
    },
    Layer {
        name: "sim",
        may_use: &[
            "client",
            "door",
            "door-http",
            "door-kafka",
            "door-native",
            "http-api",
            "http-conversations",
            "journal",
            "message-json",
            "model",
            "net",
            "node",
            "platform",
            "routing",
            "views",
            "webhooks",
            "wire",
        ],
        must_not_know: NOTHING,
    },
    Layer {
        name: "xtask",
        may_use: &["kafka", "recordbatch"],
        must_not_know: NOTHING,
    },
];

/// Packages that no crate may depend on, with the reason.
pub(crate) const BANNED: [(&str, &str); 7] = [
    ("aws-lc-rs", "ring is the only provider of rustls"),
    ("aws-lc-sys", "ring is the only provider of rustls"),
    ("native-tls", "TLS is rustls"),
    ("openssl", "TLS is rustls"),
    ("openssl-sys", "TLS is rustls"),
    ("rustls-openssl", "ring is the only provider of rustls"),
    ("rustls-rustcrypto", "ring is the only provider of rustls"),
];
