//! Options of namespaces (`org/namespace`).

use node::StoreOptions;

use super::units::count;

options! {
    /// Namespaces: the first two parts of a name.
    namespace, "Namespaces";

    /// Maximum number of names in one namespace: mailboxes, streams and conversations together. A
    /// name is stored for ever, even after its conversation is erased.
    /// The partitions of all topics have the same limit, those of deleted topics included.
    "namespace.names_max" => names_max: u32 =
        count(StoreOptions::default().names_per_namespace_max), from "1" to "100000000";
}
