//! Schema check of the message parts that a node forwards without decoding.
//!
//! A receiver ends its whole stream if decoding fails, so bytes that no decoder would accept must
//! not reach it. Unlisted fields belong to later versions and are not checked.

use crate::wire::{Fields, Malformed};

/// Type of a known field.
enum Kind {
    Number,
    Bytes,
    Text,
    Nested(&'static Shape),
}

/// Types of the fields of a structure; the index is the field number minus one.
pub(crate) struct Shape(&'static [Kind]);

use Kind::{Bytes, Nested, Number, Text};

static NAME_ID: Shape = Shape(&[Number, Number]);
static ENCODED_NAME: Shape = Shape(&[Number, Number, Number, Nested(&NAME_ID)]);
static STRING_NAME: Shape = Shape(&[Text, Text, Text]);
static NAME: Shape = Shape(&[Nested(&ENCODED_NAME), Nested(&STRING_NAME)]);

static EMPTY: Shape = Shape(&[]);
static PAIR: Shape = Shape(&[Number, Number]);
static SETTING: Shape = Shape(&[Number]);
static MLS: Shape = Shape(&[Number, Bytes]);
static PARTICIPANT: Shape = Shape(&[Nested(&NAME), Nested(&PAIR), Number]);
static JOIN_REQUEST: Shape = Shape(&[
    Nested(&PAIR),
    Nested(&NAME),
    Nested(&NAME),
    Nested(&SETTING),
]);
static JOIN_REPLY: Shape = Shape(&[Bytes, Nested(&PARTICIPANT)]);
static GROUP_UPDATE: Shape = Shape(&[
    Number,
    Nested(&PARTICIPANT),
    Nested(&PARTICIPANT),
    Nested(&MLS),
]);
static GROUP_WELCOME: Shape = Shape(&[Nested(&PARTICIPANT), Nested(&MLS)]);
static GROUP_CLOSE: Shape = Shape(&[Nested(&NAME)]);
static NAME_AND_BYTES: Shape = Shape(&[Nested(&NAME), Bytes]);
static UPDATE_STATE: Shape = Shape(&[Nested(&NAME), Number, Number]);

static COMMAND: Shape = Shape(&[
    Nested(&EMPTY),
    Nested(&EMPTY),
    Nested(&JOIN_REQUEST),
    Nested(&JOIN_REPLY),
    Nested(&EMPTY),
    Nested(&EMPTY),
    Nested(&GROUP_UPDATE),
    Nested(&GROUP_WELCOME),
    Nested(&GROUP_CLOSE),
    Nested(&NAME_AND_BYTES),
    Nested(&EMPTY),
    // A group NACK has no fields.
    Nested(&EMPTY),
    Nested(&SETTING),
    Nested(&UPDATE_STATE),
    Nested(&NAME_AND_BYTES),
    Nested(&MLS),
]);
static PAYLOAD: Shape = Shape(&[Text, Bytes]);

/// `SessionHeader`.
pub(crate) static SESSION: Shape = Shape(&[Number, Number, Number, Number]);
/// `Content`.
pub(crate) static CONTENT: Shape = Shape(&[Nested(&PAYLOAD), Nested(&COMMAND)]);
/// An entry of `metadata`.
pub(crate) static METADATA: Shape = Shape(&[Text, Text]);

/// Checks that a decoder would accept these bytes.
pub(crate) fn check(bytes: &[u8], shape: &Shape) -> Result<(), Malformed> {
    let mut fields = Fields::new(bytes);
    while let Some(field) = fields.next()? {
        match shape.0.get(field.number as usize - 1) {
            Some(Number) => drop(field.number()?),
            Some(Bytes) => drop(field.bytes()?),
            Some(Text) => drop(field.text()?),
            Some(Nested(shape)) => check(field.bytes()?, shape)?,
            None => {}
        }
    }
    Ok(())
}
