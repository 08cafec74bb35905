//! Encoding and decoding of numbers and texts. Every read is checked against the remaining bytes.

use super::Malformed;
use crate::calendar::Every;
use crate::dial::{Dial, Factor};
use crate::limit::{Bucket, Kind};
use crate::zone::Zone;

/// Appends fields to a record.
pub(super) trait Write {
    fn text8(&mut self, text: &str);
    fn text16(&mut self, text: &str);
    fn factor(&mut self, factor: Factor);
    fn dial(&mut self, dial: &Dial);
    fn kind(&mut self, kind: &Kind);
}

impl Write for Vec<u8> {
    fn text8(&mut self, text: &str) {
        let text = cut(text, usize::from(u8::MAX));
        self.push(text.len() as u8);
        self.extend_from_slice(text.as_bytes());
    }

    fn text16(&mut self, text: &str) {
        let text = cut(text, usize::from(u16::MAX));
        self.extend_from_slice(&(text.len() as u16).to_le_bytes());
        self.extend_from_slice(text.as_bytes());
    }

    fn factor(&mut self, factor: Factor) {
        let (numerator, denominator) = factor.parts();
        self.extend_from_slice(&numerator.to_le_bytes());
        self.extend_from_slice(&denominator.to_le_bytes());
    }

    fn dial(&mut self, dial: &Dial) {
        self.extend_from_slice(&dial.anchor_ns.to_le_bytes());
        self.extend_from_slice(&dial.anchor_own_ns.to_le_bytes());
        self.factor(dial.factor);
        let (until_ns, then) = dial.then.unwrap_or((0, Factor::ONE));
        self.extend_from_slice(&until_ns.to_le_bytes());
        self.factor(then);
    }

    fn kind(&mut self, kind: &Kind) {
        let mut name = None;
        let (what, numbers) = match *kind {
            Kind::Bucket(bucket) => (1, [bucket.capacity, bucket.amount, bucket.period_ns]),
            Kind::Budget {
                amount,
                every,
                zone,
            } => {
                let word = Every::WORDS.iter().position(|(_, known)| *known == every);
                let word = word.unwrap_or_default() as u64 + 1;
                match zone {
                    Zone::Fixed(offset_s) | Zone::Changing { offset_s, .. } => {
                        (2, [amount, word, i64::from(offset_s) as u64])
                    }
                    Zone::Named(tz) => {
                        name = Some(tz.name());
                        (4, [amount, word, 0])
                    }
                }
            }
            Kind::Slots { capacity } => (3, [capacity, 0, 0]),
        };
        self.push(what);
        for number in numbers {
            self.extend_from_slice(&number.to_le_bytes());
        }
        if let Some(name) = name {
            self.text8(name);
        }
    }
}

/// Cuts a text to `size_max` bytes. Texts are bounded where they enter the node, so cutting is only
/// a safeguard.
fn cut(text: &str, size_max: usize) -> &str {
    &text[..text.floor_char_boundary(size_max)]
}

/// The remaining bytes of a record.
pub(super) struct FieldReader<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> FieldReader<'a> {
    pub(super) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, what }
    }

    pub(super) fn malformed(&self) -> Malformed {
        Malformed { what: self.what }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Checks that no bytes remain.
    pub(super) fn end(self) -> Result<(), Malformed> {
        match self.bytes.is_empty() {
            true => Ok(()),
            false => Err(self.malformed()),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(self.malformed())?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn text(&mut self, length: usize) -> Result<&'a str, Malformed> {
        let split = self.bytes.split_at_checked(length);
        let (taken, rest) = split.ok_or(self.malformed())?;
        self.bytes = rest;
        std::str::from_utf8(taken).map_err(|_| self.malformed())
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn u128(&mut self) -> Result<u128, Malformed> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    pub(super) fn i128(&mut self) -> Result<i128, Malformed> {
        Ok(i128::from_le_bytes(self.array()?))
    }

    pub(super) fn text8(&mut self) -> Result<&'a str, Malformed> {
        let length = self.u8()?;
        self.text(usize::from(length))
    }

    pub(super) fn text16(&mut self) -> Result<&'a str, Malformed> {
        let length = self.u16()?;
        self.text(usize::from(length))
    }

    pub(super) fn factor(&mut self) -> Result<Factor, Malformed> {
        let (numerator, denominator) = (self.u32()?, self.u32()?);
        Factor::new(numerator, denominator).map_err(|_| self.malformed())
    }

    pub(super) fn dial(&mut self) -> Result<Dial, Malformed> {
        Ok(Dial {
            anchor_ns: self.u64()?,
            anchor_own_ns: self.u64()?,
            factor: self.factor()?,
            then: {
                let (until_ns, then) = (self.u64()?, self.factor()?);
                (until_ns > 0).then_some((until_ns, then))
            },
            calendar_shift_ns: 0,
        })
    }

    pub(super) fn kind(&mut self) -> Result<Kind, Malformed> {
        let what = self.u8()?;
        let [capacity, amount, period_ns] = [self.u64()?, self.u64()?, self.u64()?];
        match what {
            1 if period_ns > 0 => Ok(Kind::Bucket(Bucket {
                capacity,
                amount,
                period_ns,
            })),
            2 | 4 => {
                let word = usize::try_from(amount)
                    .ok()
                    .and_then(|word| word.checked_sub(1));
                let word = word.and_then(|word| Every::WORDS.get(word));
                let zone = match what {
                    2 => i32::try_from(period_ns as i64).ok().map(Zone::Fixed),
                    _ => Zone::parse(self.text8()?).ok(),
                };
                Ok(Kind::Budget {
                    amount: capacity,
                    every: word.ok_or(self.malformed())?.1,
                    zone: zone.ok_or(self.malformed())?,
                })
            }
            3 => Ok(Kind::Slots { capacity }),
            _ => Err(self.malformed()),
        }
    }
}
