//! Who may connect.

options! {
    /// Who may connect. Tokens lie in the data directory: see `telpher token`.
    auth, "Access";

    /// Allow doors that other machines reach although there is no TLS or no token.
    "insecure" => insecure: bool = false;
}
