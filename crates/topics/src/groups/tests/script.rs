//! Runs a script of [`check`](super::check) and writes its transcript.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::*;

pub(super) struct World {
    options: Options,
    groups: Groups,
    now_ms: u64,
    log: Vec<Record>,
    joins: u128,
    /// The waiting clients, by token.
    waiting: BTreeMap<Token, String>,
    next_token: u64,
    pub(super) out: String,
}

/// Splits the words of a line into options and others.
struct Words<'a> {
    plain: Vec<&'a str>,
    options: BTreeMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Self {
        let mut words = Self {
            plain: Vec::new(),
            options: BTreeMap::new(),
        };
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some((key, value)) => {
                    words.options.insert(key, value);
                }
                None => words.plain.push(word),
            }
        }
        words
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.options.get(key).copied()
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.text(key).map(|it| it.parse().unwrap())
    }

    fn has(&self, word: &str) -> bool {
        self.plain.contains(&word)
    }

    fn group(&self) -> &'a str {
        self.text("group").unwrap_or("g")
    }

    fn caller<'b>(&self, member: &'b str) -> Caller<'b>
    where
        'a: 'b,
    {
        Caller {
            group: self.group(),
            member,
            instance: self.text("static"),
            generation: i32::try_from(self.number("gen").unwrap_or(-1)).unwrap(),
        }
    }
}

/// Converts `a#1` to the engine's member id.
fn long(id: &str) -> String {
    match id.split_once('#') {
        Some((client, number)) => format!("{client}-00000000-0000-0000-0000-{number:0>12}"),
        None if id == "nobody" => String::new(),
        None => id.to_owned(),
    }
}

/// Converts a member id to the form `a#1`.
fn short(text: &str) -> String {
    let mut parts = text.split("-00000000-0000-0000-0000-");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_at(12);
        write!(out, "#{}{rest}", number.trim_start_matches('0')).unwrap();
    }
    out
}

pub(super) fn text(bytes: &[u8]) -> &str {
    match bytes {
        [] => "nothing",
        bytes => std::str::from_utf8(bytes).unwrap(),
    }
}

impl World {
    pub(super) fn new(options: Options) -> Self {
        Self {
            groups: Groups::new(options.clone()),
            options,
            now_ms: 0,
            log: Vec::new(),
            joins: 0,
            waiting: BTreeMap::new(),
            next_token: 0,
            out: String::new(),
        }
    }

    fn write_line(&mut self, line: &str) {
        writeln!(self.out, "{}", short(line)).unwrap();
    }

    pub(super) fn run(&mut self, line: &str) {
        let words = Words::new(line);
        let ids: Vec<String> = words.plain[1..].iter().map(|it| long(it)).collect();
        let mut out = Vec::new();
        match words.plain[0] {
            "at" => return self.at(words.plain[1].parse().unwrap()),
            "join" => return self.join(&words),
            "sync" => return self.sync(&words, &ids[0]),
            "beat" => {
                let answer = self.groups.heartbeat(words.caller(&ids[0]), self.now_ms);
                self.write_line(&format!("beat {}: {}", ids[0], plain(&answer)));
            }
            "leave" => {
                let leavers = words.plain[1..]
                    .iter()
                    .map(|it| it.split_once('/').unwrap_or((it, "")));
                let leavers: Vec<_> = leavers.map(|(id, instance)| (long(id), instance)).collect();
                let leavers: Vec<_> = leavers
                    .iter()
                    .map(|(member, instance)| Leaver {
                        member,
                        instance: (!instance.is_empty()).then_some(*instance),
                    })
                    .collect();
                let left = self
                    .groups
                    .leave(words.group(), &leavers, self.now_ms, &mut out);
                for (word, answer) in words.plain[1..].iter().zip(left) {
                    self.write_line(&format!("leave {word}: {}", plain(&answer)));
                }
            }
            "commit" | "txn" => return self.commit(&words),
            "end" => {
                let ending = match words.plain[2] {
                    "committed" => Ending::Commit,
                    _ => Ending::Abort,
                };
                let producer = ProducerId(words.plain[1].parse().unwrap());
                let (group, now_ms) = (words.group(), self.now_ms);
                self.groups
                    .end_transaction(group, producer, ending, now_ms, &mut out);
            }
            "forget" => {
                let partitions: Vec<_> = words.plain[1..].iter().map(|it| partition(it)).collect();
                let group = words.group();
                let answers = self
                    .groups
                    .delete_offsets(group, &partitions, self.now_ms, &mut out);
                self.each("forget", &words.plain[1..], answers);
            }
            "drop" => self
                .groups
                .forget_topic(words.plain[1], self.now_ms, &mut out),
            "delete" => {
                let answer = self.groups.delete(words.group(), &mut out);
                self.write_line(&format!("delete: {}", plain(&answer)));
            }
            "expire" => self.groups.expire(self.now_ms, &mut out),
            "restart" => self.restart(),
            "kept" => {
                let log = std::mem::take(&mut self.log);
                for record in &log {
                    self.write_line(&format!("kept: {}", describe_record(record)));
                }
                self.log = log;
            }
            "next" => {
                let next_ms = self.groups.next_ms();
                self.write_line(&format!("next: {next_ms:?}"));
            }
            "offsets" => self.offsets(words.group()),
            "describe" => self.describe(words.group()),
            "list" => {
                let listed = self.groups.list();
                let listed: Vec<_> = listed
                    .map(|it| format!("{} {:?} {}", it.group, it.protocol_type, it.state.name()))
                    .collect();
                self.write_line(&format!("list: {}", listed.join(", ")));
            }
            other => panic!("no such line: {other}"),
        }
        self.take(out);
    }

    fn at(&mut self, until_ms: u64) {
        while let Some(at_ms) = self.groups.next_ms()
            && at_ms <= until_ms
        {
            assert!(at_ms > self.now_ms, "what was due was done");
            self.now_ms = at_ms;
            let mut out = Vec::new();
            self.groups.tick(at_ms, &mut out);
            if !out.is_empty() {
                self.write_line(&format!("at {at_ms}"));
            }
            self.take(out);
        }
        self.now_ms = until_ms;
    }

    fn token(&mut self, what: String) -> Token {
        self.next_token += 1;
        let token = Token(self.next_token);
        self.waiting.insert(token, what);
        token
    }

    fn join(&mut self, words: &Words<'_>) {
        self.joins += 1;
        let client = words.plain[1];
        let member = words.text("as").map(long).unwrap_or_default();
        let protocols = words.text("with").unwrap_or("range:m");
        let protocols = protocols.split(',').filter_map(|it| it.split_once(':'));
        let topics = words.text("topics").map(|it| it.split(','));
        let join = Join {
            group: words.group(),
            member: &member,
            instance: words.text("static"),
            client_id: client,
            client_host: "host",
            session_timeout_ms: u32::try_from(words.number("session").unwrap_or(10_000)).unwrap(),
            rebalance_timeout_ms: u32::try_from(words.number("rebalance").unwrap_or(30_000))
                .unwrap(),
            protocol_type: words.text("type").unwrap_or("consumer"),
            protocols: protocols
                .map(|(name, metadata)| Protocol {
                    name: name.into(),
                    metadata: metadata.as_bytes().into(),
                })
                .collect(),
            topics: topics.map(|it| it.map(Box::from).collect()),
            random: self.joins,
            identity_first: words.has("first"),
            may_skip_assignment: words.has("skip"),
        };
        let token = self.token(format!("join {client}"));
        let mut out = Vec::new();
        self.groups.join(token, join, self.now_ms, &mut out);
        self.take(out);
    }

    fn sync(&mut self, words: &Words<'_>, member: &str) {
        let assignments = words.options.iter().filter(|(key, _)| key.contains('#'));
        let assignments: Vec<_> = assignments.map(|(key, it)| (long(key), *it)).collect();
        let assignments: Vec<_> = assignments
            .iter()
            .map(|(member, it)| (member.as_str(), it.as_bytes()))
            .collect();
        let token = self.token(format!("sync {member}"));
        let ask = Synchronize {
            caller: words.caller(member),
            protocol_type: words.text("type"),
            protocol: words.text("protocol"),
            assignments: &assignments,
        };
        let mut out = Vec::new();
        self.groups.sync(token, &ask, self.now_ms, &mut out);
        self.take(out);
    }

    fn commit(&mut self, words: &Words<'_>) {
        let (what, rest) = words.plain.split_first().unwrap();
        let marks = words.options.iter().filter(|(key, _)| key.contains('/'));
        let marks: Vec<Mark<'_>> = marks
            .map(|(key, offset)| {
                let (topic, partition) = partition(key);
                Mark {
                    topic,
                    partition,
                    offset: offset.parse().unwrap(),
                    leader_epoch: 0,
                    metadata: words.text("note").unwrap_or_default(),
                }
            })
            .collect();
        let (now_ms, mut out) = (self.now_ms, Vec::new());
        let answers = match (*what, rest) {
            ("commit", [member]) => {
                let (member, until_ms) = (long(member), words.number("until"));
                let until_ms = until_ms.map(i64::cast_unsigned);
                let caller = words.caller(&member);
                self.groups
                    .commit(caller, &marks, until_ms, now_ms, &mut out)
            }
            (_, [producer, member]) => {
                let (member, producer) = (long(member), ProducerId(producer.parse().unwrap()));
                let caller = words.caller(&member);
                self.groups
                    .commit_in_transaction(producer, caller, &marks, now_ms, &mut out)
            }
            other => panic!("not a commit: {other:?}"),
        };
        let keys = words.options.keys().copied();
        let keys: Vec<_> = keys.filter(|it| it.contains('/')).collect();
        self.each(what, &keys, answers);
        self.take(out);
    }

    /// Writes one line if all succeeded or the request was refused, or else one for each.
    fn each(
        &mut self,
        what: &str,
        keys: &[&str],
        answers: Result<Vec<Result<(), Refused>>, Refused>,
    ) {
        match answers {
            Ok(answers) if answers.iter().all(Result::is_ok) => {
                self.write_line(&format!("{what}: ok"))
            }
            Ok(answers) => {
                for (key, answer) in keys.iter().zip(answers) {
                    self.write_line(&format!("{what} {key}: {}", plain(&answer)));
                }
            }
            Err(refused) => self.write_line(&format!("{what}: {refused}")),
        }
    }

    fn take(&mut self, decisions: Vec<Decision>) {
        for decision in decisions {
            match decision {
                Decision::Keep(record) => self.log.push(round_trip(&record)),
                Decision::Joined { token, answer } => {
                    let who = self.waiting.remove(&token).unwrap();
                    let answer = answer.map_or_else(|it| it.to_string(), |it| joined(&it));
                    self.write_line(&format!("{who}: {answer}"));
                }
                Decision::Synced { token, answer } => {
                    let who = self.waiting.remove(&token).unwrap();
                    let answer = answer.map_or_else(
                        |it| it.to_string(),
                        |it| {
                            format!(
                                "{} of {} {}",
                                text(&it.assignment),
                                it.protocol_type,
                                it.protocol
                            )
                        },
                    );
                    self.write_line(&format!("{who}: {answer}"));
                }
            }
        }
    }

    fn restart(&mut self) {
        let expected: Vec<Record> = self.groups.records().collect();
        self.groups = restored(&self.options, &self.log, self.now_ms);
        assert_eq!(self.groups.records().collect::<Vec<_>>(), expected);
        let anew = restored(&self.options, &expected, self.now_ms);
        assert_eq!(anew.records().collect::<Vec<_>>(), expected);
        self.waiting.clear();
    }

    fn offsets(&mut self, group: &str) {
        let offsets = self
            .groups
            .all_committed(group)
            .map(|(topic, partition, it)| {
                let found = self.groups.committed(group, topic, partition);
                assert_eq!(found, Some(it));
                let unstable = self.groups.is_unstable(group, topic, partition);
                let note = if unstable { " (unstable)" } else { "" };
                let metadata = match &*it.metadata {
                    "" => String::new(),
                    text => format!(" {text:?}"),
                };
                format!("{topic}/{partition}={}{metadata}{note}", it.offset)
            });
        let offsets: Vec<_> = offsets.collect();
        match offsets.is_empty() {
            true => self.write_line("offsets: none"),
            false => self.write_line(&format!("offsets: {}", offsets.join(" "))),
        }
    }

    fn describe(&mut self, group: &str) {
        let Some(it) = self.groups.describe(group) else {
            return self.write_line("describe: Dead");
        };
        let state = it.state.name();
        self.write_line(&format!(
            "describe: {state} {:?} {:?}",
            it.protocol_type, it.protocol
        ));
        for it in it.members {
            let (metadata, assignment) = (text(&it.metadata), text(&it.assignment));
            let instance = it.instance.as_deref().unwrap_or("-");
            let client = format!("{}@{}", it.client_id, it.client_host);
            self.write_line(&format!(
                "{} {instance} {client} {metadata} {assignment}",
                it.member
            ));
        }
    }
}

fn partition(word: &str) -> (&str, u32) {
    let (topic, partition) = word.split_once('/').unwrap();
    (topic, partition.parse().unwrap())
}

fn plain(answer: &Result<(), Refused>) -> String {
    match answer {
        Ok(()) => "ok".to_owned(),
        Err(refused) => refused.to_string(),
    }
}

fn joined(it: &Joined) -> String {
    let mut out = format!(
        "{} in {} of {} {}, {} leads",
        it.member, it.generation, it.protocol_type, it.protocol, it.leader
    );
    for it in &it.members {
        let instance = it.instance.as_deref().map(|it| format!("({it})"));
        write!(
            out,
            " {}{}:{}",
            it.member,
            instance.unwrap_or_default(),
            text(&it.metadata)
        )
        .unwrap();
    }
    if it.skip_assignment {
        out.push_str(", assigned already");
    }
    out
}

fn describe_record(record: &Record) -> String {
    match record {
        Record::Group(it) => {
            let members: Vec<_> = it.members.iter().map(|(id, _)| id.to_string()).collect();
            let members = members.join(" ");
            format!(
                "{} in {} since {}: {members}",
                it.group, it.generation, it.since_ms
            )
        }
        Record::Committed(it) => format!("{} {:?}", it.group, marks(it)),
        Record::Pending {
            producer,
            marks: it,
        } => {
            format!("{} {:?} of {}", it.group, marks(it), producer.0)
        }
        Record::Ended {
            group,
            producer,
            ending,
        } => format!("{group} {} {ending:?}", producer.0),
        Record::Forgotten { group, partitions } => format!("{group} forgets {partitions:?}"),
        Record::Gone { group } => format!("{group} is gone"),
    }
}

fn marks(it: &Marks) -> Vec<(&str, u32, i64)> {
    let marks = it.marks.iter();
    marks
        .map(|it| (&*it.topic, it.partition, it.offset))
        .collect()
}
