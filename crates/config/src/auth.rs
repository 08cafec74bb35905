//! Options of authentication.

options! {
    /// Authentication. Tokens are stored in the data directory: see `telpher token`.
    auth, "Authentication";

    /// Allow listeners that other machines can reach without TLS or without a token.
    "insecure" => insecure: bool = false;
}
