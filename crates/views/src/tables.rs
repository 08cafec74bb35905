//! The tables of the views and their transactions.
//!
//! A batch is one transaction. It includes the positions up to which events were applied. It need
//! not be durable at once: after a crash the views are in an older consistent state and apply later
//! events again.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, Table, TableDefinition, TableError,
    TableHandle,
};

use super::damage::Damage;
use super::entry::{
    ActivityPosition, ArchiveState, Entry, KEY_SIZE, OrderKey, Participant, Row, key, place,
};
use super::scope::{SCOPE_SIZE, Scope};

/// Facts about the whole file, by name.
const FACTS: TableDefinition<&str, u64> = TableDefinition::new("facts");
/// The next event of each partition, by stream number.
const CHECKPOINTS: TableDefinition<u64, u64> = TableDefinition::new("checkpoints");
/// The [`Row`]s, by conversation number.
const ROWS: TableDefinition<u64, &[u8]> = TableDefinition::new("rows");
/// The participants by conversation and scope: `read`, `own`, `is_writer`.
const PARTICIPANTS: TableDefinition<&MemberKey, (u64, u64, bool)> =
    TableDefinition::new("participants");
/// The order of activity; see [`OrderKey`].
const ORDER: TableDefinition<&OrderKey, ()> = TableDefinition::new("order");
/// The conversations by time of expiry.
const EXPIRY: TableDefinition<(u64, u64), ()> = TableDefinition::new("expiry");

/// `conversation u64 | scope`, big-endian.
type MemberKey = [u8; 8 + SCOPE_SIZE];

/// The version of the tables' layout. A file with another version is rebuilt.
const LAYOUT: u64 = 1;

/// A fact about the whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// The layout version, [`LAYOUT`].
    Layout,
    /// The id of the journal that the views belong to.
    Journal,
    /// The next stream to look at while the views are built from the directory; 0 once that is
    /// complete.
    Build,
}

impl Fact {
    fn name(self) -> &'static str {
        match self {
            Self::Layout => "layout",
            Self::Journal => "journal",
            Self::Build => "build",
        }
    }
}

/// The durability of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    Now,
    Later,
}

/// The tables of the views.
#[derive(Debug)]
pub(super) struct Tables {
    database: Database,
}

impl Tables {
    /// Takes over an open database; returns `None` if it has another layout or belongs to another
    /// journal. An empty database is initialized.
    pub(super) fn new(database: Database, journal: u64) -> Result<Option<Self>, Damage> {
        let tables = Self { database };
        let is_empty = tables.facts()?.is_none();
        if is_empty {
            tables.write(Sync::Now, |batch| {
                batch.set_fact(Fact::Layout, LAYOUT)?;
                batch.set_fact(Fact::Journal, journal)?;
                batch.set_fact(Fact::Build, 1)
            })?;
        }
        let is_ours = tables.facts()? == Some((LAYOUT, journal));
        Ok(is_ours.then_some(tables))
    }

    fn facts(&self) -> Result<Option<(u64, u64)>, Damage> {
        let layout = self.fact(Fact::Layout)?;
        let journal = self.fact(Fact::Journal)?;
        Ok(layout.zip(journal))
    }

    /// Returns a fact about the whole file.
    pub(super) fn fact(&self, fact: Fact) -> Result<Option<u64>, Damage> {
        let Some(facts) = self.table(FACTS)? else {
            return Ok(None);
        };
        Ok(facts.get(fact.name())?.map(|it| it.value()))
    }

    /// Returns the next event of a partition to apply.
    pub(super) fn checkpoint(&self, partition: u64) -> Result<u64, Damage> {
        let Some(checkpoints) = self.table(CHECKPOINTS)? else {
            return Ok(0);
        };
        Ok(checkpoints.get(partition)?.map_or(0, |it| it.value()))
    }

    /// Runs `change` in one transaction, which is dropped if it fails.
    pub(super) fn write<R, E: From<Damage>>(
        &self,
        sync: Sync,
        change: impl FnOnce(&mut Batch<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut transaction = self.database.begin_write().map_err(Damage::from)?;
        let durability = match sync {
            Sync::Now => Durability::Immediate,
            Sync::Later => Durability::None,
        };
        transaction
            .set_durability(durability)
            .map_err(Damage::from)?;
        let mut batch = Batch {
            facts: transaction.open_table(FACTS).map_err(Damage::from)?,
            checkpoints: transaction.open_table(CHECKPOINTS).map_err(Damage::from)?,
            rows: transaction.open_table(ROWS).map_err(Damage::from)?,
            participants: transaction.open_table(PARTICIPANTS).map_err(Damage::from)?,
            order: transaction.open_table(ORDER).map_err(Damage::from)?,
            expiry: transaction.open_table(EXPIRY).map_err(Damage::from)?,
            reordered: BTreeMap::new(),
        };
        // A dropped transaction changes nothing.
        let result = change(&mut batch)?;
        batch.reorder().map_err(E::from)?;
        drop(batch);
        transaction.commit().map_err(Damage::from)?;
        Ok(result)
    }

    /// Returns the conversations of a scope after `after`, newest activity first.
    pub(super) fn newest(
        &self,
        scope: Scope,
        archive_states: &[ArchiveState],
        after: Option<ActivityPosition>,
        limit: usize,
    ) -> Result<Vec<ActivityPosition>, Damage> {
        let Some(order) = self.table(ORDER)? else {
            return Ok(Vec::new());
        };
        let mut places = Vec::new();
        for archive_state in archive_states {
            let keys = keys(scope, *archive_state, after);
            for found in order
                .range::<&OrderKey>(&keys.0..&keys.1)?
                .rev()
                .take(limit)
            {
                places.push(place(found?.0.value()));
            }
        }
        places.sort_unstable_by(|a, b| b.cmp(a));
        places.truncate(limit);
        Ok(places)
    }

    /// Returns the conversations of a scope, oldest activity first.
    pub(super) fn oldest(
        &self,
        scope: Scope,
        limit: usize,
    ) -> Result<Vec<ActivityPosition>, Damage> {
        let Some(order) = self.table(ORDER)? else {
            return Ok(Vec::new());
        };
        let keys = keys(scope, ArchiveState::Open, None);
        let found = order.range::<&OrderKey>(&keys.0..&keys.1)?.take(limit);
        found.map(|it| Ok(place(it?.0.value()))).collect()
    }

    /// Returns the row of a conversation.
    pub(super) fn row(&self, number: u64) -> Result<Option<Row>, Damage> {
        let Some(rows) = self.table(ROWS)? else {
            return Ok(None);
        };
        row(&rows, number)
    }

    /// Returns a participant of a conversation.
    pub(super) fn participant(
        &self,
        number: u64,
        who: Scope,
    ) -> Result<Option<Participant>, Damage> {
        let Some(participants) = self.table(PARTICIPANTS)? else {
            return Ok(None);
        };
        let found = participants.get(&member(number, who))?;
        Ok(found.map(|it| participant(it.value())))
    }

    /// Returns expired conversations, those expired longest first.
    pub(super) fn expired(&self, now_ms: u64, limit: usize) -> Result<Vec<u64>, Damage> {
        let Some(expiry) = self.table(EXPIRY)? else {
            return Ok(Vec::new());
        };
        let over = expiry.range((0, 0)..=(now_ms, u64::MAX))?.take(limit);
        over.map(|it| Ok(it?.0.value().1)).collect()
    }

    /// Opens a table for reading; `None` before the first write to it.
    fn table<K: redb::Key + 'static, V: redb::Value + 'static>(
        &self,
        definition: TableDefinition<'_, K, V>,
    ) -> Result<Option<redb::ReadOnlyTable<K, V>>, Damage> {
        let transaction = self.database.begin_read()?;
        match transaction.open_table(definition) {
            Ok(table) => Ok(Some(table)),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
impl Tables {
    /// Returns the content of all derived tables as text.
    pub(super) fn dump(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for row in self.table(ROWS).unwrap().unwrap().iter().unwrap() {
            let (number, row) = row.unwrap();
            lines.push(format!("{} {:?}", number.value(), Row::decode(row.value())));
        }
        for participant in self.table(PARTICIPANTS).unwrap().unwrap().iter().unwrap() {
            let (key, participant) = participant.unwrap();
            lines.push(format!("{:?} {:?}", key.value(), participant.value()));
        }
        for key in self.table(ORDER).unwrap().unwrap().iter().unwrap() {
            lines.push(format!("{:?}", key.unwrap().0.value()));
        }
        for key in self.table(EXPIRY).unwrap().unwrap().iter().unwrap() {
            lines.push(format!("{:?}", key.unwrap().0.value()));
        }
        lines
    }
}

/// An open write transaction.
pub(super) struct Batch<'t> {
    facts: Table<'t, &'static str, u64>,
    checkpoints: Table<'t, u64, u64>,
    rows: Table<'t, u64, &'static [u8]>,
    participants: Table<'t, &'static MemberKey, (u64, u64, bool)>,
    order: Table<'t, &'static OrderKey, ()>,
    expiry: Table<'t, (u64, u64), ()>,
    /// Changes of the order table, sorted by key, so that each page of the table is written once.
    reordered: BTreeMap<OrderKey, KeyChange>,
}

/// The change of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyChange {
    Insert,
    Remove,
}

impl Batch<'_> {
    pub(super) fn set_fact(&mut self, fact: Fact, value: u64) -> Result<(), Damage> {
        self.facts.insert(fact.name(), value)?;
        Ok(())
    }

    pub(super) fn set_checkpoint(&mut self, partition: u64, next: u64) -> Result<(), Damage> {
        self.checkpoints.insert(partition, next)?;
        Ok(())
    }

    /// Returns the entry of a conversation.
    pub(super) fn entry(&self, number: u64) -> Result<Option<Entry>, Damage> {
        let Some(row) = row(&self.rows, number)? else {
            return Ok(None);
        };
        let mut entry = Entry {
            row,
            participants: Default::default(),
        };
        let members = members(number);
        for found in self
            .participants
            .range::<&MemberKey>(members.start()..=members.end())?
        {
            let (key, value) = found?;
            let mut scope = [0; SCOPE_SIZE];
            scope.copy_from_slice(&key.value()[8..]);
            let participant = participant(value.value());
            entry.participants.insert(Scope(scope), participant);
        }
        Ok(Some(entry))
    }

    /// Replaces the entry of a conversation.
    pub(super) fn replace(
        &mut self,
        number: u64,
        old: Option<&Entry>,
        new: Option<&Entry>,
    ) -> Result<(), Damage> {
        if old == new {
            return Ok(());
        }
        self.replace_row(number, old, new)?;
        self.replace_participants(number, old, new)?;
        let keys = |entry: Option<&Entry>| entry.map(|it| it.keys(number)).unwrap_or_default();
        let (old, new) = (keys(old), keys(new));
        let gone = old.difference(&new).map(|key| (*key, KeyChange::Remove));
        let come = new.difference(&old).map(|key| (*key, KeyChange::Insert));
        self.reordered.extend(gone.chain(come));
        Ok(())
    }

    fn reorder(&mut self) -> Result<(), Damage> {
        for (key, change) in std::mem::take(&mut self.reordered) {
            match change {
                KeyChange::Insert => _ = self.order.insert(&key, ())?,
                KeyChange::Remove => _ = self.order.remove(&key)?,
            }
        }
        Ok(())
    }

    fn replace_row(
        &mut self,
        number: u64,
        old: Option<&Entry>,
        new: Option<&Entry>,
    ) -> Result<(), Damage> {
        match new {
            Some(new) => self.rows.insert(number, &*new.row.encode())?,
            None => self.rows.remove(number)?,
        };
        let expires_ms = |entry: Option<&Entry>| entry?.row.expires_ms();
        let (old, new) = (expires_ms(old), expires_ms(new));
        if old != new {
            if let Some(old) = old {
                self.expiry.remove((old, number))?;
            }
            if let Some(new) = new {
                self.expiry.insert((new, number), ())?;
            }
        }
        Ok(())
    }

    fn replace_participants(
        &mut self,
        number: u64,
        old: Option<&Entry>,
        new: Option<&Entry>,
    ) -> Result<(), Damage> {
        let all =
            |entry: Option<&Entry>| entry.map(|it| it.participants.clone()).unwrap_or_default();
        let (old, new) = (all(old), all(new));
        for gone in old.keys().filter(|who| !new.contains_key(who)) {
            self.participants.remove(&member(number, *gone))?;
        }
        for (who, new) in &new {
            if old.get(who) != Some(new) {
                let value = (new.read, new.own, new.is_writer);
                self.participants.insert(&member(number, *who), value)?;
            }
        }
        Ok(())
    }
}

fn row(rows: &impl ReadableTable<u64, &'static [u8]>, number: u64) -> Result<Option<Row>, Damage> {
    let Some(bytes) = rows.get(number)? else {
        return Ok(None);
    };
    let row = Row::decode(bytes.value()).ok_or(Damage::Malformed {
        table: ROWS.name().to_owned(),
    })?;
    Ok(Some(row))
}

fn participant((read, own, is_writer): (u64, u64, bool)) -> Participant {
    Participant {
        read,
        own,
        is_writer,
    }
}

fn member(number: u64, who: Scope) -> MemberKey {
    let mut key = [0; 8 + SCOPE_SIZE];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key[8..].copy_from_slice(&who.0);
    key
}

fn members(number: u64) -> RangeInclusive<MemberKey> {
    let all = |byte| member(number, Scope([byte; SCOPE_SIZE]));
    all(0)..=all(u8::MAX)
}

/// Returns the range of keys of a scope: from the first one to the one of `after`, which is
/// excluded.
fn keys(
    scope: Scope,
    archive_state: ArchiveState,
    after: Option<ActivityPosition>,
) -> (OrderKey, [u8; KEY_SIZE]) {
    let first = ActivityPosition {
        activity_ms: 0,
        number: 0,
    };
    let end = after.unwrap_or(ActivityPosition {
        activity_ms: u64::MAX,
        number: u64::MAX,
    });
    (
        key(scope, archive_state, first),
        key(scope, archive_state, end),
    )
}
