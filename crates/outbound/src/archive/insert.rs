//! Inserts a batch in one transaction with its mark.
//!
//! A row that the database rejects does not stop the archive: the batch is halved until the row is
//! found, the row is tried without the columns for queries, and if it is rejected again it goes to
//! the table `refused` with the reason.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use conversation_service::feed::{Batch, EventContent, Partition, Row};
use conversations::{Lifecycle, State};

use super::failure::{Failure, is_row_error};
use super::rows::{Columns, Form, INSERT, Message, jsonb, messages, time};
use super::session::{Session, Values};

/// Maximum number of rows deleted by one statement.
const DELETED_MAX: i64 = 10_000;

/// Result of writing a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BatchResult {
    /// Number of new messages inserted.
    pub(super) messages: u64,
    /// Number of rows moved to the table `refused`.
    pub(super) refused: u64,
    /// Number of conversations erased.
    pub(super) erased: u64,
}

/// Position of a partition in the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// First event that is not in the archive.
    pub(super) next: u64,
    /// Proof of the last event in the archive.
    pub(super) proof: Option<Vec<u8>>,
}

/// Returns the marks of a journal by partition.
pub(super) async fn marks(session: &Session, journal: u64) -> Result<BTreeMap<u64, Mark>, Failure> {
    let sql = "SELECT partition, next, proof FROM telpher.marks WHERE journal = $1";
    let rows = session.query(sql, &[&(journal as i64)]).await?;
    let mark = |row: tokio_postgres::Row| {
        let (partition, next): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let proof = row.try_get(2)?;
        let next = next as u64;
        Ok((partition as u64, Mark { next, proof }))
    };
    rows.into_iter().map(mark).collect()
}

/// Writes batches of one partition.
pub(super) struct PartitionWriter<'a> {
    pub(super) session: &'a Session,
    pub(super) journal: u64,
    pub(super) partition: &'a Partition,
}

impl PartitionWriter<'_> {
    /// Writes a batch and moves the mark, which must be at `from`.
    pub(super) async fn write(
        &self,
        from: &Mark,
        batch: &Batch,
        proof: Option<Vec<u8>>,
    ) -> Result<BatchResult, Failure> {
        let mut written = BatchResult::default();
        for row in &batch.rows {
            if matches!(row.happened, EventContent::Erased) {
                self.delete(row.conversation).await?;
                written.erased += 1;
            }
        }
        self.session.run("BEGIN").await?;
        if !self.lock_mark(from).await? {
            self.session.run("ROLLBACK").await?;
            return Err(Failure::MarkMoved {
                partition: self.partition.name.clone(),
            });
        }
        self.insert_conversations(batch).await?;
        for row in &batch.rows {
            match &row.happened {
                EventContent::State(state) => written.refused += self.state(row, state).await?,
                EventContent::Erased => self.erased(row).await?,
                EventContent::Message { .. } | EventContent::Retracted { .. } => {}
            }
        }
        self.messages(&messages(&batch.rows), &mut written).await?;
        for row in &batch.rows {
            match &row.happened {
                EventContent::State(state) => {
                    if let Some(cleared) = state.cleared {
                        let seqs = 1..=cleared.through_seq;
                        self.delete_messages(row.conversation, seqs).await?;
                    }
                }
                EventContent::Retracted {
                    first_seq,
                    last_seq,
                } => {
                    let seqs = *first_seq..=*last_seq;
                    self.delete_messages(row.conversation, seqs).await?;
                }
                EventContent::Message { .. } | EventContent::Erased => {}
            }
        }
        self.move_mark(batch.next, proof).await?;
        self.session.run("COMMIT").await?;
        Ok(written)
    }

    /// Locks the mark, after inserting it if it is missing. Returns true if it is equal to `mark`.
    async fn lock_mark(&self, mark: &Mark) -> Result<bool, Failure> {
        let (journal, partition) = self.numbers();
        let made = "INSERT INTO telpher.marks (journal, partition, name, next)
            VALUES ($1, $2, $3, 0) ON CONFLICT (journal, partition) DO NOTHING";
        let name = &self.partition.name;
        let session = self.session;
        session.execute(made, &[&journal, &partition, name]).await?;
        let locked = "SELECT next FROM telpher.marks WHERE journal = $1 AND partition = $2
            FOR UPDATE";
        let rows = session.query(locked, &[&journal, &partition]).await?;
        let next: Option<i64> = rows.first().map(|row| row.try_get(0)).transpose()?;
        Ok(next == Some(mark.next as i64))
    }

    async fn move_mark(&self, next: u64, proof: Option<Vec<u8>>) -> Result<(), Failure> {
        let (journal, partition) = self.numbers();
        let sql = "UPDATE telpher.marks SET next = $3, proof = $4, moved_at = now()
            WHERE journal = $1 AND partition = $2";
        let next = next as i64;
        let values: Values<'_> = &[&journal, &partition, &next, &proof];
        self.session.execute(sql, values).await?;
        Ok(())
    }

    fn numbers(&self) -> (i64, i64) {
        (self.journal as i64, self.partition.number as i64)
    }

    /// Deletes the rows of a conversation in steps, because there may be many. Later rows in the
    /// batch do not belong to the erased conversation.
    async fn delete(&self, conversation: u64) -> Result<(), Failure> {
        let (journal, _) = self.numbers();
        for table in ["messages", "refused"] {
            let sql = format!(
                "DELETE FROM telpher.{table} WHERE ctid = ANY (ARRAY(SELECT ctid
                 FROM telpher.{table} WHERE journal = $1 AND conversation = $2 LIMIT $3))"
            );
            let conversation = conversation as i64;
            let values: Values<'_> = &[&journal, &conversation, &DELETED_MAX];
            while self.session.execute(&sql, values).await? > 0 {}
        }
        Ok(())
    }

    /// Deletes messages that were cleared or retracted. It follows the insertion of the batch's
    /// messages: some of them may have been read before the clear.
    async fn delete_messages(
        &self,
        conversation: u64,
        seqs: RangeInclusive<u64>,
    ) -> Result<(), Failure> {
        let (journal, _) = self.numbers();
        for table in ["messages", "refused"] {
            let sql = format!(
                "DELETE FROM telpher.{table}
                 WHERE journal = $1 AND conversation = $2 AND seq BETWEEN $3 AND $4"
            );
            let (first, last) = (*seqs.start() as i64, *seqs.end() as i64);
            let conversation = conversation as i64;
            let values: Values<'_> = &[&journal, &conversation, &first, &last];
            self.session.execute(&sql, values).await?;
        }
        Ok(())
    }

    /// Inserts a row for each conversation of the batch.
    async fn insert_conversations(&self, batch: &Batch) -> Result<(), Failure> {
        let (journal, _) = self.numbers();
        let first = batch.rows.first().map_or(0, |row| row.at_ms);
        let numbers: Vec<i64> = batch.names.keys().map(|it| *it as i64).collect();
        let names: Vec<&str> = batch.names.values().map(String::as_str).collect();
        let sql = "INSERT INTO telpher.conversations
                (journal, conversation, name, event, lifecycle, version, changed_at)
            SELECT $1, conversation, name, 0, 'open', 0, $4
            FROM unnest($2::bigint[], $3::text[]) AS new (conversation, name)
            ON CONFLICT (journal, conversation) DO NOTHING";
        let at = time(first);
        let values: Values<'_> = &[&journal, &numbers, &names, &at];
        self.session.execute(sql, values).await?;
        Ok(())
    }

    async fn erased(&self, row: &Row) -> Result<(), Failure> {
        let (journal, _) = self.numbers();
        let sql = "UPDATE telpher.conversations SET event = $3, lifecycle = 'erased',
                changed_at = $4, erased_at = $4, agent = NULL, metadata = NULL, metadata_raw = NULL
            WHERE journal = $1 AND conversation = $2";
        let (conversation, event) = (row.conversation as i64, row.event as i64);
        let at = time(row.at_ms);
        let values: Values<'_> = &[&journal, &conversation, &event, &at];
        self.session.execute(sql, values).await?;
        Ok(())
    }

    /// Writes a state. Returns the number of rows moved to `refused`.
    async fn state(&self, row: &Row, state: &State) -> Result<u64, Failure> {
        for form in [Form::Full, Form::Bare] {
            let tried = self.try_state(row, state, form);
            match self.attempt(tried).await? {
                Ok(_) => return Ok(0),
                Err(reason) if form == Form::Bare => {
                    let mut record = Vec::new();
                    state.encode(&mut record);
                    self.store_refused(row, 0, &record, &reason).await?;
                }
                Err(_) => {}
            }
        }
        Ok(1)
    }

    async fn try_state(&self, row: &Row, state: &State, form: Form) -> Result<u64, Failure> {
        let (journal, _) = self.numbers();
        let sql = "UPDATE telpher.conversations SET event = $3, lifecycle = $4, version = $5,
                changed_at = $6, agent = nullif($7, ''), metadata = $8::text::jsonb, metadata_raw = $9
            WHERE journal = $1 AND conversation = $2 AND lifecycle <> 'erased'";
        let (conversation, event) = (row.conversation as i64, row.event as i64);
        let (version, at) = (state.version as i64, time(row.at_ms));
        let metadata = jsonb(&state.metadata).filter(|_| form == Form::Full);
        let agent = match form {
            Form::Full => state.settings.agent.as_str(),
            Form::Bare => "",
        };
        let values: Values<'_> = &[
            &journal,
            &conversation,
            &event,
            &as_text(state.lifecycle),
            &version,
            &at,
            &agent,
            &metadata,
            &state.metadata,
        ];
        self.session.execute(sql, values).await
    }

    async fn messages(
        &self,
        messages: &[Message<'_>],
        written: &mut BatchResult,
    ) -> Result<(), Failure> {
        let mut left: Vec<(Range<usize>, Form)> = Vec::new();
        if !messages.is_empty() {
            left.push((0..messages.len(), Form::Full));
        }
        while let Some((range, form)) = left.pop() {
            let part = &messages[range.clone()];
            let reason = match self.attempt(self.try_messages(part, form)).await? {
                Ok(count) => {
                    written.messages += count;
                    continue;
                }
                Err(reason) => reason,
            };
            match (part, form) {
                ([message], Form::Bare) => {
                    let Message { row, seq, record } = message;
                    self.store_refused(row, *seq, record, &reason).await?;
                    written.refused += 1;
                }
                ([_], Form::Full) => left.push((range, Form::Bare)),
                _ => {
                    let middle = range.start + range.len() / 2;
                    left.push((middle..range.end, form));
                    left.push((range.start..middle, form));
                }
            }
        }
        Ok(())
    }

    async fn try_messages(&self, part: &[Message<'_>], form: Form) -> Result<u64, Failure> {
        let columns = Columns::new(part, form);
        let (journal, partition) = self.numbers();
        let values = columns.values(&journal, &partition);
        self.session.execute(INSERT, &values).await
    }

    /// Runs statements that the database may reject because of a row. A rejection is rolled back
    /// and its reason returned.
    async fn attempt(
        &self,
        work: impl Future<Output = Result<u64, Failure>>,
    ) -> Result<Result<u64, String>, Failure> {
        self.session.run("SAVEPOINT attempt").await?;
        match work.await {
            Ok(count) => {
                self.session.run("RELEASE SAVEPOINT attempt").await?;
                Ok(Ok(count))
            }
            Err(Failure::Database(error)) if is_row_error(&error) => {
                let back = "ROLLBACK TO SAVEPOINT attempt; RELEASE SAVEPOINT attempt";
                self.session.run(back).await?;
                Ok(Err(Failure::Database(error).to_string()))
            }
            Err(failure) => Err(failure),
        }
    }

    async fn store_refused(
        &self,
        row: &Row,
        seq: u64,
        record: &[u8],
        reason: &str,
    ) -> Result<(), Failure> {
        let (journal, partition) = self.numbers();
        let sql = "INSERT INTO telpher.refused
                (journal, partition, conversation, seq, event, at, reason, record)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (journal, conversation, seq) DO UPDATE
                SET event = $5, at = $6, reason = $7, record = $8, refused_at = now()";
        let conversation = row.conversation as i64;
        tracing::warn!(
            conversation,
            seq,
            reason,
            "the database rejected a row, it was stored in telpher.refused"
        );
        let (seq, event, at) = (seq as i64, row.event as i64, time(row.at_ms));
        let values: Values<'_> = &[
            &journal,
            &partition,
            &conversation,
            &seq,
            &event,
            &at,
            &reason,
            &record,
        ];
        self.session.execute(sql, values).await?;
        Ok(())
    }
}

fn as_text(lifecycle: Lifecycle) -> &'static str {
    match lifecycle {
        Lifecycle::Open => "open",
        Lifecycle::Archived => "archived",
        Lifecycle::Copying => "copying",
        Lifecycle::Erased => "erased",
    }
}
