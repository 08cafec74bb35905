//! Names: three components and an id, as hashes for routing and as texts for display.

use std::fmt;

use twox_hash::XxHash64;

use crate::wire::{Field, Fields, Malformed, put_bytes, put_nested, put_number};

/// The three hashed components of a name.
pub type Prefix = [u64; 3];

/// Routing key of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Hashes of `org/namespace/agent`.
    pub prefix: Prefix,
    /// Instance id; `None` means any. On the wire, any instance is a missing id or an id of all
    /// ones.
    pub id: Option<u128>,
}

/// Numbers of a name in their wire form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedName {
    /// Hashed components.
    pub prefix: Prefix,
    /// Halves of the id, higher one first, if there is an id.
    pub id: Option<[u64; 2]>,
}

/// A name in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// Hashes and id.
    pub encoded: EncodedName,
    /// Texts as sent; not verified against the hashes.
    pub texts: Option<[&'a str; 3]>,
}

const NULL: u128 = u128::MAX;

/// Maximum size in bytes of a name's texts for display.
const AGENT_SIZE_MAX: usize = 512;

impl EncodedName {
    /// Returns the routing key.
    pub fn key(&self) -> Key {
        let id = self
            .id
            .map(|[high, low]| u128::from(high) << 64 | u128::from(low));
        Key {
            prefix: self.prefix,
            id: id.filter(|id| *id != NULL),
        }
    }
}

impl<'a> Name<'a> {
    /// Creates the name of an agent or of an instance. A component's hash is the XXH64 (seed 0) of
    /// its bytes and a byte 0xff, as in the clients.
    pub fn new(texts: [&'a str; 3], id: Option<u128>) -> Self {
        let id = id.unwrap_or(NULL);
        Self {
            encoded: EncodedName {
                prefix: texts.map(hash),
                id: Some([(id >> 64) as u64, id as u64]),
            },
            texts: Some(texts),
        }
    }

    /// True if the texts, if there are any, match the hashes.
    pub fn is_consistent(&self) -> bool {
        self.texts
            .is_none_or(|texts| texts.map(hash) == self.encoded.prefix)
    }

    /// Returns the agent name for display: the texts if they match the hashes and are not too long,
    /// otherwise the hashes in hexadecimal.
    pub fn agent(&self) -> String {
        let is_short = |texts: &[&str; 3]| {
            texts.iter().map(|text| text.len()).sum::<usize>() <= AGENT_SIZE_MAX
        };
        let texts = self.texts.filter(is_short).filter(|_| self.is_consistent());
        Self {
            encoded: EncodedName {
                id: None,
                ..self.encoded
            },
            texts,
        }
        .to_string()
    }

    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (mut encoded, mut texts) = (None, None);
        let mut fields = Fields::new(bytes);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => set_once(&mut encoded, &field, read_encoded(field.bytes()?)?)?,
                2 => set_once(&mut texts, &field, read_texts(field.bytes()?)?)?,
                _ => {}
            }
        }
        let encoded = encoded.ok_or(Malformed::Missing("encoded name"))?;
        Ok(Self { encoded, texts })
    }

    /// Encodes the name in canonical form, without zeros and empty texts. Applications sign these
    /// bytes, and receivers encode the name again to verify.
    pub(crate) fn put(&self, field: u32, out: &mut Vec<u8>) {
        put_nested(field, out, |out| {
            put_nested(1, out, |out| {
                put_numbers(self.encoded.prefix, out);
                if let Some(halves) = self.encoded.id {
                    put_nested(4, out, |out| put_numbers(halves, out));
                }
            });
            if let Some(texts) = self.texts {
                put_nested(2, out, |out| {
                    for (index, text) in (1..).zip(texts).filter(|(_, text)| !text.is_empty()) {
                        put_bytes(index, text.as_bytes(), out);
                    }
                });
            }
        });
    }
}

fn put_numbers<const COUNT: usize>(numbers: [u64; COUNT], out: &mut Vec<u8>) {
    for (index, number) in (1..).zip(numbers).filter(|(_, number)| *number != 0) {
        put_number(index, number, out);
    }
}

pub(crate) fn hash(component: &str) -> u64 {
    let mut hasher = XxHash64::with_seed(0);
    std::hash::Hasher::write(&mut hasher, component.as_bytes());
    std::hash::Hasher::write(&mut hasher, &[0xff]);
    std::hash::Hasher::finish(&hasher)
}

fn read_encoded(bytes: &[u8]) -> Result<EncodedName, Malformed> {
    let mut components = [None; 3];
    let mut id = None;
    let mut fields = Fields::new(bytes);
    while let Some(field) = fields.next()? {
        match field.number {
            index @ 1..=3 => {
                set_once(&mut components[index as usize - 1], &field, field.number()?)?
            }
            4 => set_once(&mut id, &field, read_id(field.bytes()?)?)?,
            _ => {}
        }
    }
    Ok(EncodedName {
        prefix: components.map(Option::unwrap_or_default),
        id,
    })
}

fn read_id(bytes: &[u8]) -> Result<[u64; 2], Malformed> {
    let mut halves = [None; 2];
    let mut fields = Fields::new(bytes);
    while let Some(field) = fields.next()? {
        if let index @ 1..=2 = field.number {
            set_once(&mut halves[index as usize - 1], &field, field.number()?)?;
        }
    }
    Ok(halves.map(Option::unwrap_or_default))
}

fn read_texts(bytes: &[u8]) -> Result<[&str; 3], Malformed> {
    let mut texts = [None; 3];
    let mut fields = Fields::new(bytes);
    while let Some(field) = fields.next()? {
        if let index @ 1..=3 = field.number {
            set_once(&mut texts[index as usize - 1], &field, field.text()?)?;
        }
    }
    Ok(texts.map(Option::unwrap_or_default))
}

/// Sets a field that must occur once. A repeated field is an error, because decoders could choose
/// different values.
pub(crate) fn set_once<T>(
    slot: &mut Option<T>,
    field: &Field<'_>,
    value: T,
) -> Result<(), Malformed> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Malformed::Twice(field.number)),
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.texts {
            Some([org, namespace, agent]) => write!(f, "{org}/{namespace}/{agent}")?,
            None => {
                let [org, namespace, agent] = self.encoded.prefix;
                write!(f, "{org:016x}/{namespace:016x}/{agent:016x}")?;
            }
        }
        match self.encoded.key().id {
            None => Ok(()),
            Some(id) => write!(f, "/{}", Uuid(id)),
        }
    }
}

/// Formats an instance id as clients do.
pub(crate) struct Uuid(pub(crate) u128);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0;
        let (a, b, c) = (id >> 96, id >> 80 & 0xffff, id >> 64 & 0xffff);
        let (d, e) = (id >> 48 & 0xffff, id & 0xffff_ffff_ffff);
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
    }
}
