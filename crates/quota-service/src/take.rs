//! Decides takes on the caller's thread.

use std::sync::Arc;
use std::time::Duration;

use quota::record::{self, TakeRecord};
use quota::{Cost, Decision, Denied, Hold, HoldId, Plan, Refused, Rules, Settled};

use super::desk::Desk;
use super::events::EventKind;
use super::outcome::{DecidedTake, Denial, HoldGrant, Note, Outcome, Take, Turn, id_of};
use super::waiting_take::TakeProgress;
use crate::cells::{LockedShard, RecentTake, SHARDS};
use crate::service::Quotas;

/// Maximum length of a take id, in bytes.
const ID_SIZE_MAX: usize = 255;

impl<'a> Quotas<'a> {
    /// Decides a take, or begins to ask the shared store that has its cells. The desk then holds
    /// the state of its limits.
    pub fn take(self, desk: &mut Desk, take: &Take<'_>) -> TakeProgress {
        if let Some(shared) = &self.state().shared {
            return self.take_shared(shared, desk, take);
        }
        let now_ns = self.current_ns();
        let rules = self.state().rules.read();
        TakeProgress::Done(self.take_local(&rules, desk, take, now_ns))
    }

    /// Decides takes in order, all at the same time unless the store is asked; calls `each` with
    /// one result after another.
    pub fn take_batch<'t>(
        self,
        desk: &mut Desk,
        takes: impl IntoIterator<Item = Take<'t>>,
        mut each: impl FnMut(&Desk, TakeProgress),
    ) {
        if let Some(shared) = &self.state().shared {
            for take in takes {
                let begun = self.take_shared(shared, desk, &take);
                each(desk, begun);
            }
            return;
        }
        let now_ns = self.current_ns();
        let rules = self.state().rules.read();
        for take in takes {
            let taken = self.take_local(&rules, desk, &take, now_ns);
            each(desk, TakeProgress::Done(taken));
        }
    }

    /// Decides a take whose cells are local.
    pub(super) fn take_local(
        self,
        rules: &Arc<Rules>,
        desk: &mut Desk,
        take: &Take<'_>,
        now_ns: u64,
    ) -> DecidedTake {
        self.take_by(rules, desk, take, Turn::NotWaiting, now_ns)
    }

    pub(super) fn take_by(
        self,
        rules: &Arc<Rules>,
        desk: &mut Desk,
        take: &Take<'_>,
        turn: Turn,
        now_ns: u64,
    ) -> DecidedTake {
        let taken = self.take_once(rules, desk, take, turn, now_ns);
        // A waiting take may be denied many times: count and report it only at its end.
        if turn != Turn::Mine || !matches!(taken.outcome, Outcome::Denied(_)) {
            self.count(desk, &taken);
        }
        taken
    }

    fn take_once(
        self,
        rules: &Arc<Rules>,
        desk: &mut Desk,
        take: &Take<'_>,
        turn: Turn,
        now_ns: u64,
    ) -> DecidedTake {
        desk.begin(rules, now_ns);
        if let Err(refused) = self.plan(rules, &mut desk.plan, take, turn) {
            return DecidedTake::at_once(Outcome::Refused(refused));
        }
        let is_noted = take.hold.is_some() || take.id.is_some();
        let home = is_noted.then(|| rules.home_of(&take.subject));
        if turn == Turn::NotWaiting
            && let Some((denied, _)) =
                self.behind_others(rules, &mut desk.plan, &take.subject, None, now_ns)
        {
            return self.denied(rules, take, &denied, now_ns);
        }
        loop {
            if let Some(home) = home {
                desk.plan.add_table(home);
            }
            // A single table is the common case, and needs no list.
            let decided = match *desk.plan.tables() {
                [table] => {
                    let mut locked = [LockedShard(self.state().shard(table))];
                    self.decide(rules, desk, take, home, &mut locked, now_ns)
                }
                _ => {
                    let mut locked = self.lock(&desk.plan);
                    self.decide(rules, desk, take, home, &mut locked, now_ns)
                }
            };
            match decided {
                TakeDecision::Taken(taken) => return taken,
                TakeDecision::Denied(denied) => return self.denied(rules, take, &denied, now_ns),
                TakeDecision::NoRoom(step) => desk.plan.overflow(rules, step),
            }
        }
    }

    /// Decides with all needed shards locked, and appends the records that must precede the answer.
    fn decide(
        self,
        rules: &Arc<Rules>,
        desk: &mut Desk,
        take: &Take<'_>,
        home: Option<u16>,
        locked: &mut [LockedShard<'_>],
        now_ns: u64,
    ) -> TakeDecision {
        let home = home.and_then(|home| desk.plan.tables().binary_search(&home).ok());
        if let (Some(home), Some(id)) = (home, take.id)
            && let Some(known) = locked[home]
                .0
                .recent
                .get(&id_of(&take.subject, id))
                .copied()
        {
            quota::look(rules, &mut desk.plan, &take.subject, locked, now_ns);
            let is_sync = desk.plan.is_sync(rules);
            return TakeDecision::Taken(self.repeated(known, take, is_sync));
        }
        if take.hold.is_some()
            && let Some(full) = home.and_then(|home| locked[home].0.holds.check_room().err())
        {
            return TakeDecision::Taken(DecidedTake::unavailable(&full.to_string()));
        }
        match quota::decide(rules, &mut desk.plan, &take.subject, locked, now_ns) {
            Decision::Admitted => {}
            Decision::Denied(denied) => return TakeDecision::Denied(denied),
            Decision::NoRoom(step) => return TakeDecision::NoRoom(step),
            Decision::Refused(refused) => {
                return TakeDecision::Taken(DecidedTake::at_once(Outcome::Refused(refused)));
            }
            Decision::Halted { prefix, reason } => {
                return TakeDecision::Taken(DecidedTake::at_once(Outcome::Halted {
                    prefix,
                    reason,
                }));
            }
        }
        let note = home.map(|home| self.note(rules, &desk.plan, take, &mut locked[home], now_ns));
        let hold = note.as_ref().and_then(|note| note.hold);
        let durable = match self.append_take(rules, desk, take, note.as_ref()) {
            Ok(durable) => durable,
            Err(reason) => {
                if let (Some(home), Some(hold)) = (home, hold) {
                    locked[home].0.holds.remove(hold.id);
                }
                self.undo(rules, desk, take, locked, now_ns);
                return TakeDecision::Taken(DecidedTake::unavailable(&reason));
            }
        };
        if let (Some(home), Some(note)) = (home, note) {
            self.remember(&mut locked[home], note, durable.is_some(), now_ns);
        }
        // A hold counts when it ends, with its true cost.
        if take.hold.is_none()
            && let Some(locked) = locked.first_mut()
        {
            let costs = desk.plan.costs(rules);
            self.count_costs(rules, &take.subject, costs, &mut locked.0, now_ns);
        }
        self.tell_warned(rules, desk, take);
        self.need_sweep();
        TakeDecision::Taken(DecidedTake {
            outcome: Outcome::Admitted {
                hold,
                is_repeat: false,
            },
            durable,
            is_degraded: false,
        })
    }

    /// Creates the hold, and the records of it and of the id.
    pub(super) fn note(
        self,
        rules: &Rules,
        plan: &Plan,
        take: &Take<'_>,
        home: &mut LockedShard<'_>,
        now_ns: u64,
    ) -> Note {
        let mut note = Note::default();
        let mut until_ns = now_ns;
        if let Some(lasting) = take.hold {
            until_ns = now_ns.saturating_add(self.hold_ns(lasting));
            let id = self.next_hold(rules.home_of(&take.subject));
            let hold = Hold {
                subject: take.subject.to_string().into(),
                principal: take.principal.unwrap_or_default().into(),
                charges: plan.charges(rules),
                deadline_ns: until_ns,
            };
            let mut bytes = Vec::new();
            record::encode_hold(id, &hold, &mut bytes);
            note.records.push((record::HOLD, bytes));
            home.0.holds.insert(id, hold);
            self.note_due(until_ns);
            note.hold = Some(HoldGrant {
                id,
                deadline_ns: until_ns,
            });
        }
        note.cost_digest = cost_digest(take.costs);
        if let Some(id) = take.id {
            let id = id_of(&take.subject, id);
            let mut bytes = Vec::new();
            let taken = TakeRecord {
                until_ns,
                hold: note.hold.map(|hold| (hold.id, hold.deadline_ns)),
                cost_digest: note.cost_digest,
                id: &id,
            };
            taken.encode(&mut bytes);
            note.records.push((record::TAKEN, bytes));
            note.id = Some((id, until_ns));
        }
        note
    }

    /// Remembers a take id; if it is not written yet, it is written a moment later.
    pub(super) fn remember(
        self,
        home: &mut LockedShard<'_>,
        note: Note,
        is_written: bool,
        now_ns: u64,
    ) {
        let shard = &mut home.0;
        if let Some((id, until_ns)) = note.id {
            let taken = RecentTake {
                hold: note.hold,
                cost_digest: note.cost_digest,
            };
            shard.recent.insert(&id, taken, until_ns, now_ns);
        }
        if !is_written && self.is_persistent() {
            shard.unwritten.extend(note.records);
        }
    }

    /// Returns the lifetime of a hold, in nanoseconds.
    pub(super) fn hold_ns(self, lasting: Duration) -> u64 {
        u64::try_from(lasting.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Refuses a hold that ends at once, or lasts longer than `quota.hold_max`.
    fn check_hold(self, hold: Option<Duration>) -> Result<(), Refused> {
        let Some(hold) = hold else { return Ok(()) };
        let hold_max = self.state().options.hold_max;
        match hold {
            Duration::ZERO => Err(Refused::HoldTooShort),
            hold if hold > hold_max => Err(Refused::HoldTooLong { hold, hold_max }),
            _ => Ok(()),
        }
    }

    /// Plans a take, or returns why it is invalid.
    pub(super) fn plan(
        self,
        rules: &Rules,
        plan: &mut Plan,
        take: &Take<'_>,
        turn: Turn,
    ) -> Result<(), Refused> {
        let is_id = |id: &str| (1..=ID_SIZE_MAX).contains(&id.len());
        if take.id.is_some_and(|id| !is_id(id)) {
            return Err(Refused::Id);
        }
        self.check_hold(take.hold)?;
        rules.plan(plan, &take.subject, take.costs)?;
        match plan.has_slots(rules) {
            Some(unit) if take.hold.is_none() && turn != Turn::AtDoor => {
                Err(Refused::HoldNeeded { unit })
            }
            _ => Ok(()),
        }
    }

    /// Returns an unguessable hold id. Its lowest bits are the hold's shard.
    fn next_hold(self, home: u16) -> HoldId {
        let entropy = &self.service.platform.ports.entropy;
        let (high, low) = (entropy.next_u64(), entropy.next_u64());
        let random = u128::from(high) << 64 | u128::from(low);
        let id = random - random % u128::from(SHARDS) + u128::from(home);
        // 0 means no hold.
        HoldId(id.max(1))
    }

    /// Returns the first answer again; the record of it may not be durable yet.
    pub(super) fn repeated(self, known: RecentTake, take: &Take<'_>, is_sync: bool) -> DecidedTake {
        if known.cost_digest != 0 && known.cost_digest != cost_digest(take.costs) {
            return DecidedTake::at_once(Outcome::Refused(Refused::IdReused));
        }
        DecidedTake {
            outcome: Outcome::Admitted {
                hold: known.hold,
                is_repeat: true,
            },
            durable: if is_sync {
                self.everything_so_far()
            } else {
                None
            },
            is_degraded: false,
        }
    }

    /// Refunds a take that could not be stored. All its cells are still locked.
    fn undo(
        self,
        rules: &Rules,
        desk: &mut Desk,
        take: &Take<'_>,
        locked: &mut [LockedShard<'_>],
        now_ns: u64,
    ) {
        let hold = Hold {
            subject: take.subject.to_string().into(),
            principal: Box::default(),
            charges: desk.plan.charges(rules),
            deadline_ns: now_ns,
        };
        let tables = desk.plan.tables().to_vec();
        rules.plan_settle(&mut desk.plan, &take.subject, &hold, Settled::Cancelled);
        tables
            .into_iter()
            .for_each(|table| desk.plan.add_table(table));
        // This cannot fail for lack of room: the cells exist, as they are still locked.
        let _ = quota::settle(rules, &mut desk.plan, &take.subject, &hold, locked, now_ns);
    }

    pub(super) fn denied(
        self,
        rules: &Rules,
        take: &Take<'_>,
        denied: &Denied,
        now_ns: u64,
    ) -> DecidedTake {
        let limit = rules.limit(denied.index);
        self.state().denied.lock().count(take.subject.name());
        self.tell(take.subject.name(), || EventKind::Denied {
            limit: limit.name.clone(),
        });
        DecidedTake::at_once(Outcome::Denied(Denial::new(limit, denied, now_ns)))
    }

    fn tell_warned(self, rules: &Rules, desk: &Desk, take: &Take<'_>) {
        for warned in desk.warned() {
            self.tell(take.subject.name(), || EventKind::Threshold {
                limit: rules.limit(warned.index).name.clone(),
                share: warned.share,
            });
        }
    }
}

/// The result of one attempt with all shards locked.
enum TakeDecision {
    Taken(DecidedTake),
    Denied(Denied),
    NoRoom(usize),
}

/// Digest of a list of costs: the sum of the hashes of each unit with its count, so that the order
/// does not matter. Never 0. It is stored, and must never change.
fn cost_digest(costs: &[Cost]) -> u64 {
    let of = |(unit, count): &Cost| {
        let bytes = unit.as_str().bytes().chain([0]).chain(count.to_le_bytes());
        model::fnv1a_64(bytes)
    };
    let sum = costs.iter().map(of).fold(0, u64::wrapping_add);
    sum.max(1)
}
