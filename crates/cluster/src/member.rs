//! The members of a cluster, with their addresses.

/// Bytes of a name or an address at most.
pub(crate) const TEXT_SIZE_MAX: usize = 512;

/// A node of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// The node's id, from 1; no other node of the cluster ever had it.
    pub id: u64,
    /// Its addresses.
    pub addresses: Addresses,
}

/// The addresses of a node, each `HOST:PORT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// A name for people.
    pub name: String,
    /// Where other nodes reach it.
    pub link: String,
    /// Where Kafka clients reach it.
    pub kafka: Option<String>,
    /// Where HTTP clients reach it.
    pub http: Option<String>,
    /// Where native clients reach it.
    pub native: Option<String>,
}

/// A name or an address that is too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name or an address of {size} bytes is too long (limit {TEXT_SIZE_MAX} bytes)")]
pub struct AddressError {
    /// Size in bytes.
    pub size: usize,
}

impl Addresses {
    /// Returns the name and the addresses in the order in which they are encoded; an empty one is
    /// none.
    pub(crate) fn texts(&self) -> [&str; 5] {
        let [kafka, http, native] = [&self.kafka, &self.http, &self.native]
            .map(|address| address.as_deref().unwrap_or_default());
        [&self.name, &self.link, kafka, http, native]
    }

    /// Creates the addresses from what [`Addresses::texts`] returns.
    pub(crate) fn from_texts(texts: [String; 5]) -> Addresses {
        let [name, link, kafka, http, native] = texts;
        let address = |it: String| (!it.is_empty()).then_some(it);
        Addresses {
            name,
            link,
            kafka: address(kafka),
            http: address(http),
            native: address(native),
        }
    }

    /// Checks the sizes of the name and the addresses.
    pub fn check(&self) -> Result<(), AddressError> {
        let sizes = self.texts().into_iter().map(str::len);
        match sizes.max().unwrap_or_default() {
            size if size > TEXT_SIZE_MAX => Err(AddressError { size }),
            _ => Ok(()),
        }
    }
}
