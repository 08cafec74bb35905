//! What becomes of what was not synced when the power goes.

/// Something that a crash may keep, lose or tear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unsynced {
    /// Bytes of a file, 512 of them.
    Sector {
        /// Which file, by a number that its names do not change.
        file: u64,
        /// Counted from the file's start.
        sector: u64,
    },
    /// A file's new size.
    Size {
        /// Which file.
        file: u64,
    },
    /// A name that came, went or moved.
    Name {
        /// Which directory.
        directory: u64,
        /// Counted from the directory's last sync.
        change: usize,
    },
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// As if it had been synced.
    Kept,
    /// As if it had never been.
    Lost,
    /// Of a sector, so many new bytes in front of the old ones; of a size, so many bytes more
    /// than the smaller one. Names are not torn: they are lost.
    Torn(u16),
}

/// Fates by chance. Each file and each directory has a habit of its own, because what goes wrong
/// in practice is seldom the average: everything stays, nothing does, all up to a point, or any.
pub(super) struct Chance<'a> {
    rng: &'a mut fastrand::Rng,
    of: Option<u64>,
    habit: Habit,
    tearing: bool,
}

#[derive(Clone, Copy)]
enum Habit {
    All,
    Nothing,
    Any { percent: u8 },
    UpTo { percent: u8, over: bool },
}

impl<'a> Chance<'a> {
    pub(super) fn new(rng: &'a mut fastrand::Rng) -> Self {
        Self {
            rng,
            of: None,
            habit: Habit::All,
            tearing: false,
        }
    }

    pub(super) fn fate(&mut self, unsynced: &Unsynced) -> Fate {
        let (Unsynced::Sector { file: of, .. }
        | Unsynced::Size { file: of }
        | Unsynced::Name { directory: of, .. }) = *unsynced;
        if self.of != Some(of) {
            self.of = Some(of);
            self.habit = self.draw();
            self.tearing = self.rng.u8(..3) == 0;
        }
        if self.tearing && self.rng.u8(..8) == 0 {
            return Fate::Torn(self.rng.u16(1..512));
        }
        match self.keeps() {
            true => Fate::Kept,
            false => Fate::Lost,
        }
    }

    fn draw(&mut self) -> Habit {
        let percent = self.rng.u8(1..100);
        match self.rng.u8(..4) {
            0 => Habit::All,
            1 => Habit::Nothing,
            2 => Habit::Any { percent },
            _ => Habit::UpTo {
                percent,
                over: false,
            },
        }
    }

    fn keeps(&mut self) -> bool {
        match &mut self.habit {
            Habit::All => true,
            Habit::Nothing => false,
            Habit::Any { percent } => self.rng.u8(..100) < *percent,
            Habit::UpTo { percent, over } => {
                *over |= self.rng.u8(..100) >= *percent;
                !*over
            }
        }
    }
}
