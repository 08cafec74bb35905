//! `Ack`: the acknowledgement of a subscribe or an unsubscribe.

use crate::name::set_once;
use crate::wire::{Fields, Malformed, put_bytes, put_nested, put_number};

/// Acknowledgement of a subscribe or an unsubscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// Subscription number of the request.
    pub subscription_id: u64,
    /// Error message if the request failed.
    pub error: Option<&'a str>,
}

impl<'a> Ack<'a> {
    pub(crate) fn scan(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (mut id, mut success, mut error) = (None, None, None);
        let mut fields = Fields::new(bytes);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => set_once(&mut id, &field, field.number()?)?,
                2 => set_once(&mut success, &field, field.number()? != 0)?,
                3 => set_once(&mut error, &field, field.text()?)?,
                _ => {}
            }
        }
        let failure = || Some(error.unwrap_or_default());
        Ok(Self {
            subscription_id: id.unwrap_or_default(),
            error: match success {
                Some(true) => None,
                _ => failure(),
            },
        })
    }

    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_nested(6, &mut out, |out| {
            put_number(1, self.subscription_id, out);
            match self.error {
                None => put_number(2, 1, out),
                Some(error) => put_bytes(3, error.as_bytes(), out),
            }
        });
        out
    }
}
