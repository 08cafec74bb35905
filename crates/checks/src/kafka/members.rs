//! Groups with one member each, over its own connection, that sends heartbeats.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use kafka::consumer_protocol::Subscription;
use kafka::{ErrorCode, RequestBody, heartbeat, join_group, sync_group};

use bench::workload::role::Failure;
use bench_kafka::session::{Session, error_name};

/// Heartbeat interval and session timeout: the defaults of Kafka's clients.
const HEARTBEAT: Duration = Duration::from_secs(3);
const SESSION_TIMEOUT_MS: i32 = 45_000;

const PROTOCOL_TYPE: &str = "consumer";
const PROTOCOL: &str = "range";

/// Members of all groups.
pub(super) struct Members(Vec<Member>);

struct Member {
    session: Session,
    group: String,
    id: String,
    generation: i32,
}

/// Members that send heartbeats until [`Heartbeats::end`].
pub(super) struct Heartbeats {
    end: Sender<()>,
    thread: JoinHandle<Result<(), Failure>>,
}

impl Members {
    /// Connects `count` members and joins each to its own group. All send their requests before any
    /// waits for a response, because a broker may delay the first member of a group.
    pub(super) fn join(address: &str, topic: &str, count: u32) -> Result<Self, Failure> {
        let member = |number| {
            Ok(Member {
                session: Session::open(address)?,
                group: format!("telpher-bench-member-{number}"),
                id: String::new(),
                generation: -1,
            })
        };
        let members = (0..count).map(member).collect::<Result<_, Failure>>();
        let mut members = Self(members?);
        let mut subscription = Vec::new();
        let wanted = Subscription {
            topics: vec![topic.to_owned()],
            ..Subscription::default()
        };
        wanted.encode(0, &mut subscription)?;
        let subscription = Bytes::from(subscription);
        // A member first gets its id, then joins with it.
        for code in [ErrorCode::MemberIdRequired, ErrorCode::None] {
            let joined = members.ask_all(|member| member.join(&subscription))?;
            for (member, answer) in members.0.iter_mut().zip(joined) {
                expect(answer.error_code, code)?;
                member.id = answer.member_id;
                member.generation = answer.generation_id;
            }
        }
        for answer in members.ask_all(Member::sync)? {
            expect(answer.error_code, ErrorCode::None)?;
        }
        Ok(members)
    }

    fn ask_all<R: RequestBody>(
        &mut self,
        request: impl Fn(&Member) -> R,
    ) -> Result<Vec<R::Response>, Failure> {
        let mut versions = Vec::with_capacity(self.0.len());
        for member in &mut self.0 {
            let request = request(member);
            versions.push(member.session.send(&request)?);
        }
        let answers = self.0.iter_mut().zip(versions);
        let receive = |(member, version): (&mut Member, i16)| member.session.receive::<R>(version);
        answers.map(receive).collect()
    }

    /// Sends heartbeats until [`Heartbeats::end`].
    pub(super) fn stay(mut self) -> Heartbeats {
        let (end, ended) = mpsc::channel();
        let thread = thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(HEARTBEAT) {
                for answer in self.ask_all(Member::heartbeat)? {
                    expect(answer.error_code, ErrorCode::None)?;
                }
            }
            Ok(())
        });
        Heartbeats { end, thread }
    }
}

impl Heartbeats {
    /// Stops without leaving the groups. Fails if the broker rejected a heartbeat.
    pub(super) fn end(self) -> Result<(), Failure> {
        drop(self.end);
        let ended = self.thread.join();
        ended.map_err(|_| "the members' thread panicked")?
    }
}

impl Member {
    fn join(&self, subscription: &Bytes) -> join_group::Request {
        join_group::Request {
            group_id: self.group.clone(),
            session_timeout_ms: SESSION_TIMEOUT_MS,
            rebalance_timeout_ms: SESSION_TIMEOUT_MS,
            member_id: self.id.clone(),
            protocol_type: PROTOCOL_TYPE.to_owned(),
            protocols: vec![join_group::Protocol {
                name: PROTOCOL.to_owned(),
                metadata: subscription.clone(),
            }],
            ..join_group::Request::default()
        }
    }

    /// The only member is the leader and assigns itself nothing.
    fn sync(&self) -> sync_group::Request {
        sync_group::Request {
            group_id: self.group.clone(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            protocol_type: Some(PROTOCOL_TYPE.to_owned()),
            protocol_name: Some(PROTOCOL.to_owned()),
            assignments: vec![sync_group::Assignment {
                member_id: self.id.clone(),
                assignment: Bytes::new(),
            }],
            ..sync_group::Request::default()
        }
    }

    fn heartbeat(&self) -> heartbeat::Request {
        heartbeat::Request {
            group_id: self.group.clone(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            ..heartbeat::Request::default()
        }
    }
}

fn expect(code: ErrorCode, expected: ErrorCode) -> Result<(), Failure> {
    match code == expected {
        true => Ok(()),
        false => Err(format!("the broker answers a member with {}", error_name(code)).into()),
    }
}
