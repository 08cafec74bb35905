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

const NOTHING: &[&str] = &[];

/// Rules of every crate of the workspace, lowest first. A crate that is missing here fails the
/// check.
pub(crate) const LAYERS: [Layer; 27] = [
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
        name: "node",
        may_use: &[
            "conversations",
            "journal",
            "mailbox",
            "model",
            "platform",
            "quota",
            "recordbatch",
            "routing",
            "topics",
        ],
        must_not_know: SHELL,
    },
    Layer {
        name: "edge",
        may_use: &["kafka", "model", "net", "node", "platform", "slim", "wire"],
        must_not_know: NOTHING,
    },
    Layer {
        name: "outbound",
        may_use: &["conversations", "model", "node", "quota"],
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
            "bench",
            "bench-kafka",
            "bench-messaging",
            "bench-quota",
            "bench-storage",
            "checks",
            "client",
            "edge",
            "journal",
            "meter",
            "model",
            "net",
            "node",
            "outbound",
            "platform",
            "slim",
            "wire",
        ],
        must_not_know: NOTHING,
    },
    Layer {
        name: "sim",
        may_use: &[
            "client", "edge", "journal", "model", "net", "node", "platform", "routing", "wire",
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
