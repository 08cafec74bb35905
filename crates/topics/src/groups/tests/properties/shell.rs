//! The clients, and the shell that holds their answers until the records are durable.

use std::collections::BTreeMap;

use super::super::*;
use super::{CLIENTS, Event};

const REBALANCE_MS: u32 = 3_000;
const SESSION_MS: u32 = 6_000;

/// A client's own state.
#[derive(Clone, Debug, Default)]
pub(super) struct Client {
    /// Its member id; empty if it has none.
    member: String,
    pub(super) generation: i32,
    /// The members to assign, if it leads and has not assigned.
    candidates: Vec<String>,
    pub(super) has_assignment: bool,
    /// Its generation, or the one that it waits for.
    is_in: bool,
    waits: Option<Token>,
}

/// An accepted commit, at its position in the log.
#[derive(Clone, Copy, Debug)]
enum AcceptedCommit {
    Plain(u32, i64),
    Pending(ProducerId, u32, i64),
    End(ProducerId, bool),
}

/// An answer in transit.
enum Answer {
    Joined(Result<Joined, Refused>),
    Synced(Result<Synced, Refused>),
}

pub(super) struct Shell {
    options: Options,
    pub(super) groups: Groups,
    now_ms: u64,
    log: Vec<Record>,
    durable: usize,
    pub(super) clients: Vec<Client>,
    /// The waiting clients, and since when.
    waiting: BTreeMap<Token, (usize, u64)>,
    /// The answers, and how much of the log they depend on.
    answers: Vec<(usize, Token, usize, Answer)>,
    last: u64,
    /// The newest generation of any answer.
    pub(super) generation: i32,
    /// The assignments of each generation's leader, as far as members got them.
    views: BTreeMap<i32, String>,
    taken: Vec<(usize, AcceptedCommit)>,
    offset: i64,
}

fn options() -> Options {
    Options {
        initial_rebalance_delay_ms: 500,
        new_member_timeout_ms: 5_000,
        offsets_retention_ms: u64::MAX,
        members_max: 1_000,
        ..Options::default()
    }
}

/// Half of the clients are static members, and half of each get their id first.
fn instance(client: usize) -> Option<&'static str> {
    [None, Some("i"), None, Some("j")][client]
}

impl Shell {
    pub(super) fn new() -> Self {
        Self {
            options: options(),
            groups: Groups::new(options()),
            now_ms: 1,
            log: Vec::new(),
            durable: 0,
            clients: vec![Client::default(); CLIENTS],
            waiting: BTreeMap::new(),
            answers: Vec::new(),
            last: 0,
            generation: 0,
            views: BTreeMap::new(),
            taken: Vec::new(),
            offset: 0,
        }
    }

    pub(super) fn run(&mut self, event: &Event) {
        match *event {
            Event::Act { client } => self.act(client),
            Event::Commit {
                client,
                partition,
                ago,
            } => self.commit(client, partition, ago, None),
            Event::CommitInTransaction {
                client,
                partition,
                producer,
            } => {
                self.commit(client, partition, 0, Some(producer));
            }
            Event::End {
                producer,
                committed,
            } => self.end(producer, committed),
            Event::CommitAsNobody { partition } => self.commit_without_member(partition),
            Event::Leave { client } => self.leave(client),
            Event::Kill { client } => {
                // All clients lose their answers.
                self.clients[client] = Client::default();
            }
            Event::Disconnect { client } => self.clients[client].waits = None,
            Event::Settle => self.settle(),
            Event::Elapse { ms } => self.elapse(ms),
            Event::Flush => self.flush(),
            Event::Crash => {
                self.check_records();
                self.crash();
                self.check_records();
            }
        }
        self.check();
    }

    fn settle(&mut self) {
        for _ in 0..4 {
            for client in 0..CLIENTS {
                self.act(client);
            }
            self.flush();
            self.elapse(500);
        }
    }

    fn token(&mut self, client: usize) -> Token {
        self.last += 1;
        let token = Token(self.last);
        self.waiting.insert(token, (client, self.now_ms));
        self.clients[client].waits = Some(token);
        token
    }

    fn act(&mut self, client: usize) {
        let it = self.clients[client].clone();
        if it.waits.is_some() {
            return;
        }
        match (it.is_in, it.has_assignment) {
            (false, _) => self.join(client, &it.member),
            (true, false) => self.sync(client, &it),
            (true, true) => {
                let caller = caller(client, &it.member, it.generation);
                let answer = self.groups.heartbeat(caller, self.now_ms);
                // As with any answer before a crash, nothing depends on it.
                if let Err(refused) = answer {
                    self.receive_refusal(client, &refused);
                }
            }
        }
    }

    fn join(&mut self, client: usize, member: &str) {
        let token = self.token(client);
        let join = Join {
            group: "g",
            member,
            instance: instance(client),
            client_id: ["a", "b", "c", "d"][client],
            client_host: "h",
            session_timeout_ms: SESSION_MS,
            rebalance_timeout_ms: REBALANCE_MS,
            protocol_type: "consumer",
            protocols: vec![Protocol {
                name: "range".into(),
                metadata: Arc::from(*b"m"),
            }],
            topics: None,
            random: u128::from(token.0),
            identity_first: client < 2,
            may_skip_assignment: client == 1,
        };
        let mut out = Vec::new();
        self.groups.join(token, join, self.now_ms, &mut out);
        self.take(out);
    }

    /// Every leader makes a different assignment, and each member's part names the member.
    fn sync(&mut self, client: usize, it: &Client) {
        let token = self.token(client);
        let assigned = |member: &String| format!("{}:{member}", token.0);
        let assignments: Vec<_> = it.candidates.iter().map(assigned).collect();
        let assignments = it.candidates.iter().zip(&assignments);
        let assignments: Vec<_> = assignments
            .map(|(m, it)| (m.as_str(), it.as_bytes()))
            .collect();
        let ask = Synchronize {
            caller: caller(client, &it.member, it.generation),
            protocol_type: Some("consumer"),
            protocol: Some("range"),
            assignments: &assignments,
        };
        let mut out = Vec::new();
        self.groups.sync(token, &ask, self.now_ms, &mut out);
        self.take(out);
    }

    fn commit(&mut self, client: usize, partition: u32, ago: i32, producer: Option<ProducerId>) {
        let it = self.clients[client].clone();
        if it.member.is_empty() || it.generation <= ago {
            return;
        }
        let generation = it.generation - ago;
        let caller = caller(client, &it.member, generation);
        if self.commit_as(caller, partition, producer) {
            assert_eq!(
                generation, self.generation,
                "a commit of another generation was taken"
            );
        }
    }

    fn commit_without_member(&mut self, partition: u32) {
        let caller = Caller {
            group: "g",
            member: "",
            instance: None,
            generation: -1,
        };
        let listed = self.groups.list().next();
        let has_members = listed.is_some_and(|it| it.state != State::Empty);
        let is_taken = self.commit_as(caller, partition, None);
        assert_eq!(is_taken, !has_members);
    }

    fn commit_as(
        &mut self,
        caller: Caller<'_>,
        partition: u32,
        producer: Option<ProducerId>,
    ) -> bool {
        self.offset += 1;
        let mark = Mark {
            topic: "t",
            partition,
            offset: self.offset,
            leader_epoch: 0,
            metadata: "",
        };
        let mut out = Vec::new();
        let (now_ms, marks) = (self.now_ms, [mark]);
        let answer = match producer {
            None => self.groups.commit(caller, &marks, None, now_ms, &mut out),
            Some(producer) => self
                .groups
                .commit_in_transaction(producer, caller, &marks, now_ms, &mut out),
        };
        assert_eq!(out.len(), usize::from(answer.is_ok()));
        if answer.is_ok() {
            let taken = match producer {
                None => AcceptedCommit::Plain(partition, self.offset),
                Some(producer) => AcceptedCommit::Pending(producer, partition, self.offset),
            };
            self.taken.push((self.log.len() + 1, taken));
        }
        self.take(out);
        answer.is_ok()
    }

    fn end(&mut self, producer: ProducerId, committed: bool) {
        let ending = match committed {
            true => Ending::Commit,
            false => Ending::Abort,
        };
        let mut out = Vec::new();
        self.groups
            .end_transaction("g", producer, ending, self.now_ms, &mut out);
        let taken = AcceptedCommit::End(producer, committed);
        self.taken.push((self.log.len() + out.len(), taken));
        self.take(out);
    }

    fn leave(&mut self, client: usize) {
        let it = std::mem::take(&mut self.clients[client]);
        let leaver = Leaver {
            member: &it.member,
            instance: instance(client),
        };
        let mut out = Vec::new();
        let now_ms = self.now_ms;
        let left = self.groups.leave("g", &[leaver], now_ms, &mut out);
        assert_eq!(left.len(), 1);
        self.take(out);
    }

    fn elapse(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        while let Some(at_ms) = self.groups.next_ms()
            && at_ms <= until_ms
        {
            assert!(at_ms > self.now_ms, "what is due is done");
            self.now_ms = at_ms;
            let mut out = Vec::new();
            self.groups.tick(at_ms, &mut out);
            self.take(out);
        }
        self.now_ms = until_ms;
    }

    fn take(&mut self, decisions: Vec<Decision>) {
        for decision in decisions {
            let (token, answer) = match decision {
                Decision::Keep(record) => {
                    self.log.push(record);
                    continue;
                }
                Decision::Joined { token, answer } => {
                    if let Ok(joined) = &answer {
                        assert!(joined.generation >= self.generation, "generations go on");
                        self.generation = joined.generation;
                    }
                    (token, Answer::Joined(answer))
                }
                Decision::Synced { token, answer } => (token, Answer::Synced(answer)),
            };
            let (client, _) = self.waiting.remove(&token).expect("it waits for an answer");
            self.answers.push((self.log.len(), token, client, answer));
        }
    }

    fn flush(&mut self) {
        self.durable = self.log.len();
        for (_, token, client, answer) in std::mem::take(&mut self.answers) {
            // Not if it was killed, or has left, since its request.
            if self.clients[client].waits == Some(token) {
                self.clients[client].waits = None;
                self.receive(client, answer);
            }
        }
    }

    fn receive(&mut self, client: usize, answer: Answer) {
        match answer {
            Answer::Joined(Ok(joined)) => {
                let leads = joined.leader == joined.member && !joined.skip_assignment;
                let candidates = joined.members.iter().map(|it| it.member.to_string());
                self.clients[client] = Client {
                    member: joined.member.to_string(),
                    generation: joined.generation,
                    candidates: candidates.filter(|_| leads).collect(),
                    is_in: true,
                    ..Client::default()
                };
            }
            Answer::Synced(Ok(synced)) => {
                let it = &mut self.clients[client];
                it.has_assignment = true;
                let assignment = script::text(&synced.assignment).to_owned();
                let (view, member) = assignment.split_once(':').expect("something is assigned");
                let is_static = instance(client).is_some();
                assert!(
                    is_static || member == it.member,
                    "what is assigned is for another"
                );
                let view = view.to_owned();
                let known = self.views.entry(it.generation).or_insert(view.clone());
                assert_eq!(*known, view, "two are told different things");
            }
            Answer::Joined(Err(refused)) | Answer::Synced(Err(refused)) => {
                self.receive_refusal(client, &refused);
            }
        }
    }

    fn receive_refusal(&mut self, client: usize, refused: &Refused) {
        let it = &mut self.clients[client];
        match refused {
            Refused::MemberIdRequired { member } => it.member = member.to_string(),
            Refused::RebalanceInProgress => it.is_in = false,
            Refused::IllegalGeneration { .. } => it.is_in = false,
            Refused::UnknownMember | Refused::FencedInstance => *it = Client::default(),
            other => panic!("a client is never told: {other}"),
        }
        it.has_assignment = false;
    }

    /// Records that were not durable are lost, and all clients lose their answers.
    fn crash(&mut self) {
        self.log.truncate(self.durable);
        self.taken.retain(|(place, _)| *place <= self.durable);
        self.answers.clear();
        self.waiting.clear();
        for client in &mut self.clients {
            client.waits = None;
        }
        self.groups = restored(&self.options, &self.log, self.now_ms);
        let mut generations = self.log.iter().rev().filter_map(|it| match it {
            Record::Group(snapshot) => Some(snapshot.generation),
            _ => None,
        });
        self.generation = generations.next().unwrap_or(0);
    }

    fn check(&self) {
        for (client, since_ms) in self.waiting.values() {
            let waited_ms = self.now_ms - since_ms;
            assert!(
                waited_ms <= u64::from(REBALANCE_MS),
                "{client} waits for {waited_ms} ms"
            );
        }
        let committed: BTreeMap<u32, i64> = self
            .groups
            .all_committed("g")
            .map(|(_, partition, it)| (partition, it.offset))
            .collect();
        assert_eq!(committed, self.expected());
    }

    /// The records restore the same groups, and so do rewritten ones.
    pub(super) fn check_records(&self) {
        let records: Vec<_> = self.groups.records().collect();
        let round_trip = restored(&self.options, &self.log, self.now_ms);
        assert_eq!(round_trip.records().collect::<Vec<_>>(), records);
        let anew = restored(&self.options, &records, self.now_ms);
        assert_eq!(anew.records().collect::<Vec<_>>(), records);
    }

    /// Returns the newest valid commit of each partition.
    fn expected(&self) -> BTreeMap<u32, i64> {
        let mut counts = Vec::new();
        for (index, (_, taken)) in self.taken.iter().enumerate() {
            match *taken {
                AcceptedCommit::Plain(partition, offset) => counts.push((index, partition, offset)),
                AcceptedCommit::Pending(producer, partition, offset) => {
                    let later = self.taken[index..].iter().find_map(|(_, it)| match it {
                        AcceptedCommit::End(ended, committed) if *ended == producer => {
                            Some(*committed)
                        }
                        _ => None,
                    });
                    if later == Some(true) {
                        counts.push((index, partition, offset));
                    }
                }
                AcceptedCommit::End(..) => {}
            }
        }
        counts.sort_unstable();
        let counts = counts.into_iter();
        counts
            .map(|(_, partition, offset)| (partition, offset))
            .collect()
    }
}

fn caller<'a>(client: usize, member: &'a str, generation: i32) -> Caller<'a> {
    Caller {
        group: "g",
        member,
        instance: instance(client),
        generation,
    }
}
