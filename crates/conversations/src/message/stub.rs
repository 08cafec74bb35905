//! Stubs: short replacements of old, large parts.
//!
//! A window must not exceed its budget, so the engine has to know the size of a stub before the
//! stub is written. The caller, which understands the content of parts, measures the stub when the
//! message is appended. The size is stored as a class of 4 bits, next to the kind of the part.

/// Maximum size of a stub in bytes, by class. Class 0 means no stub.
const SIZES: [u16; 15] = [
    48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 1536, 2048,
];

/// The size class of a part's stub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stub(u8);

impl Stub {
    /// The part has no stub.
    pub const NONE: Self = Self(0);

    /// Minimum size of a part that gets a stub, in bytes.
    pub const PART_SIZE_MIN: usize = 256;

    /// Returns the class for a part and its stub, both in bytes; [`Stub::NONE`] unless the stub
    /// saves half of the part.
    pub fn new(part_size: usize, stub_size: usize) -> Self {
        // Includes the comma before or after the stub.
        let needed = stub_size + 1;
        let class = SIZES.iter().position(|size| needed <= usize::from(*size));
        match class {
            Some(class)
                if part_size >= Self::PART_SIZE_MIN
                    && usize::from(SIZES[class]) * 2 <= part_size =>
            {
                Self(class as u8 + 1)
            }
            _ => Self::NONE,
        }
    }

    /// Returns the cost of the stub, one token per 4 bytes; `None` if there is no stub.
    pub(crate) fn tokens(self) -> Option<u64> {
        let class = usize::from(self.0).checked_sub(1)?;
        Some(u64::from(SIZES[class]).div_ceil(4))
    }

    /// Returns the class with that number; only the lower 4 bits are used.
    pub(crate) fn from_bits(bits: u8) -> Self {
        Self(bits & 0x0f)
    }

    pub(crate) fn bits(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_never_smaller_than_the_stub_and_its_comma() {
        for size in 0..=3000 {
            let stub = Stub::new(usize::MAX, size);
            assert_eq!(Stub::from_bits(stub.bits()), stub);
            match stub.tokens() {
                Some(tokens) => assert!(tokens * 4 > size as u64, "{size}"),
                None => assert!(size >= 2048, "{size}"),
            }
        }
    }

    #[test]
    fn a_stub_must_save_half_of_its_part() {
        assert_eq!(Stub::new(255, 1), Stub::NONE);
        assert_ne!(Stub::new(256, 127), Stub::NONE);
        assert_eq!(Stub::new(256, 128), Stub::NONE);
    }
}
