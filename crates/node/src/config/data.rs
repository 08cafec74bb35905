//! Where everything durable lies.

use std::path::PathBuf;

options! {
    /// Where everything durable lies.
    data, "Data";

    /// Directory of everything durable; created when missing, used by one node at a time.
    "data" => dir: PathBuf = PathBuf::from("./telpher-data");
}
