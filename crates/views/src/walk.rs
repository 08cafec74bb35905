//! Walks through a scope, newest activity first.

use journal::ReadError;

use super::damage::Damage;
use super::entry::{ActivityPosition, ArchiveState, Row};
use super::list::Cursor;
use super::scope::Scope;
use super::tables::Tables;

/// Maximum number of conversations per page.
const LIMIT_MAX: usize = 1_000;

/// Maximum number of conversations examined for a page. A page can be shorter because of it.
const LOOKED_AT_MAX: usize = 10_000;

/// Number of positions read at a time.
const CHUNK: usize = 256;

/// The reason why a walk failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum WalkError {
    #[error(transparent)]
    Damage(#[from] Damage),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The parameters of a walk.
#[derive(Clone, Copy)]
pub(super) struct Walk<'a> {
    pub(super) tables: &'a Tables,
    pub(super) scope: Scope,
    pub(super) archive_states: &'a [ArchiveState],
    /// The current time; expired conversations are skipped.
    pub(super) now_ms: u64,
    /// The end of the previous page.
    pub(super) after: Option<Cursor>,
    /// Maximum number of results.
    pub(super) limit: usize,
}

impl Walk<'_> {
    /// Returns the results of `take` for each conversation, and the cursor to continue at if there
    /// may be more.
    pub(super) fn collect<T>(
        self,
        mut take: impl FnMut(ActivityPosition, Row) -> Result<Option<T>, WalkError>,
    ) -> Result<(Vec<T>, Option<Cursor>), WalkError> {
        let limit = self.limit.clamp(1, LIMIT_MAX);
        let mut taken = Vec::new();
        let mut after = self.after.map(|it| it.0);
        let mut looked_at = 0;
        loop {
            let chunk = (limit - taken.len() + 1).min(CHUNK);
            let (scope, archive_states) = (self.scope, self.archive_states);
            let places = self.tables.newest(scope, archive_states, after, chunk)?;
            let is_last = places.len() < chunk;
            for place in places {
                if taken.len() == limit || looked_at == LOOKED_AT_MAX {
                    return Ok((taken, after.map(Cursor)));
                }
                after = Some(place);
                looked_at += 1;
                let row = self.tables.row(place.number)?;
                let is_over = |row: &Row| row.expires_ms().is_some_and(|it| it <= self.now_ms);
                if let Some(row) = row.filter(|row| !is_over(row)) {
                    taken.extend(take(place, row)?);
                }
            }
            if is_last {
                return Ok((taken, None));
            }
        }
    }
}
