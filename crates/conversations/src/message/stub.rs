//! What stands for a part that is old and large.
//!
//! A window promises to cost no more than its budget, so the engine has to know how much is written
//! in a part's place before anybody writes it. Whoever knows what is in a part measures that when the
//! message is appended; of the measure a class is kept, which fits beside the part's kind.

/// Bytes of what stands for a part, at most, by class. Class 0 is none.
const SIZES: [u16; 15] = [
    48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 1536, 2048,
];

/// How large the stub of a part is, rounded up to a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stub(u8);

impl Stub {
    /// Nothing smaller stands for the part.
    pub const NONE: Self = Self(0);

    /// Smaller parts are not worth a stub, in bytes.
    pub const PART_SIZE_MIN: usize = 256;

    /// The stub of a part, both in bytes; none unless it saves half of the part.
    pub fn new(part_size: usize, stub_size: usize) -> Self {
        // With the comma that stands before or behind it.
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

    /// What it costs a model, a token for every 4 bytes; `None` if there is none.
    pub(crate) fn tokens(self) -> Option<u64> {
        let class = usize::from(self.0).checked_sub(1)?;
        Some(u64::from(SIZES[class]).div_ceil(4))
    }

    /// The class that has that number, of which only the lower 4 bits count.
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
    fn what_would_not_save_half_of_a_part_does_not_stand_for_it() {
        assert_eq!(Stub::new(255, 1), Stub::NONE);
        assert_ne!(Stub::new(256, 127), Stub::NONE);
        assert_eq!(Stub::new(256, 128), Stub::NONE);
    }
}
