//! Effects of a crash on unsynced changes.

/// An unsynced change, which a crash may retain, lose or tear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unsynced {
    /// A sector of 512 bytes of a file.
    Sector {
        /// The file's number, which renames do not change.
        file: u64,
        /// Number of the sector, from 0.
        sector: u64,
    },
    /// New size of a file.
    Size {
        /// The file's number.
        file: u64,
    },
    /// A created, removed or renamed name.
    Name {
        /// The directory's number.
        directory: u64,
        /// Number of the change since the directory's last sync.
        change: usize,
    },
}

/// Effect of a crash on an unsynced change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The change is retained, as if synced.
    Kept,
    /// The change is lost.
    Lost,
    /// A sector keeps this many new bytes at its front; a size gets this many bytes more than the
    /// smaller one. Names are not torn but lost.
    Torn(u16),
}

/// Chooses fates at random. Each file and directory gets its own pattern, because real failures are
/// seldom the average: all changes are retained, none, all up to some point, or a random subset.
pub(super) struct RandomFates<'a> {
    rng: &'a mut fastrand::Rng,
    of: Option<u64>,
    pattern: Pattern,
    is_tearing: bool,
}

#[derive(Clone, Copy)]
enum Pattern {
    All,
    Nothing,
    Any { percent: u8 },
    UpTo { percent: u8, is_over: bool },
}

impl<'a> RandomFates<'a> {
    pub(super) fn new(rng: &'a mut fastrand::Rng) -> Self {
        Self {
            rng,
            of: None,
            pattern: Pattern::All,
            is_tearing: false,
        }
    }

    pub(super) fn fate(&mut self, unsynced: &Unsynced) -> Fate {
        let (Unsynced::Sector { file: of, .. }
        | Unsynced::Size { file: of }
        | Unsynced::Name { directory: of, .. }) = *unsynced;
        if self.of != Some(of) {
            self.of = Some(of);
            self.pattern = self.draw();
            self.is_tearing = self.rng.u8(..3) == 0;
        }
        if self.is_tearing && self.rng.u8(..8) == 0 {
            return Fate::Torn(self.rng.u16(1..512));
        }
        match self.keeps() {
            true => Fate::Kept,
            false => Fate::Lost,
        }
    }

    fn draw(&mut self) -> Pattern {
        let percent = self.rng.u8(1..100);
        match self.rng.u8(..4) {
            0 => Pattern::All,
            1 => Pattern::Nothing,
            2 => Pattern::Any { percent },
            _ => Pattern::UpTo {
                percent,
                is_over: false,
            },
        }
    }

    fn keeps(&mut self) -> bool {
        match &mut self.pattern {
            Pattern::All => true,
            Pattern::Nothing => false,
            Pattern::Any { percent } => self.rng.u8(..100) < *percent,
            Pattern::UpTo { percent, is_over } => {
                *is_over |= self.rng.u8(..100) >= *percent;
                !*is_over
            }
        }
    }
}
