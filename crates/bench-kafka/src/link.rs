//! Producer connection to one broker: waiting batches, and requests in flight.

use std::collections::VecDeque;

use bytes::Bytes;
use kafka::{decode_response, encode_request, produce, take_frame};

use super::batches::{Batch, BatchRules, Clocks, Lane, take};
use super::message::MessageGenerator;
use super::session::{CLIENT_ID, FRAME_SIZE_MAX, error_name};
use super::socket::Socket;
use bench::workload::role::Failure;

/// Parameters of the produce requests on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkSettings {
    pub(super) version: i16,
    pub(super) acks: i16,
    pub(super) rules: BatchRules,
    /// Maximum requests in flight.
    pub(super) requests_max: usize,
}

/// Timeout that is sent to the broker.
const TIMEOUT_MS: i32 = 30_000;

/// A producer connection.
#[derive(Debug)]
pub(super) struct Link {
    socket: Socket,
    terms: LinkSettings,
    lanes: Vec<Lane>,
    flights: VecDeque<Flight>,
    /// Request whose memory is reused.
    request: produce::Request,
    next_correlation_id: i32,
    /// Batches whose memory is reused.
    spare: Vec<Batch>,
    /// Number of requests sent.
    pub(super) requests: u64,
}

/// A request in flight.
#[derive(Debug)]
struct Flight {
    correlation_id: i32,
    batches: Vec<Batch>,
}

/// Outcome of a batch: its offset, or a stable word for the failure.
pub(super) type Outcome = (Batch, Result<i64, String>);

/// Failure of an acknowledgement with a negative offset.
const NEGATIVE_OFFSET: &str = "negative-offset";

impl Link {
    pub(super) fn new(socket: Socket, topic: &str, terms: LinkSettings, lanes: Vec<Lane>) -> Self {
        let request = produce::Request {
            acks: terms.acks,
            timeout_ms: TIMEOUT_MS,
            topic_data: vec![produce::Topic {
                name: topic.to_owned(),
                ..produce::Topic::default()
            }],
            ..produce::Request::default()
        };
        Self {
            socket,
            terms,
            lanes,
            flights: VecDeque::new(),
            request,
            next_correlation_id: 0,
            spare: Vec::new(),
            requests: 0,
        }
    }

    pub(super) fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Adds a message of `size` bytes to the lane at index `lane`.
    pub(super) fn push(
        &mut self,
        lane: usize,
        maker: &mut MessageGenerator,
        slot: u32,
        size: usize,
        now: Clocks,
    ) {
        let rules = &self.terms.rules;
        self.lanes[lane].push(maker, slot, size, now, rules, &mut self.spare);
    }

    /// Returns when the first lingering batch must leave, if the connection has room.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let due = |lane: &Lane| lane.due_ns(&self.terms.rules);
        match self.has_room() {
            true => self.lanes.iter().filter_map(due).min(),
            false => None,
        }
    }

    fn has_room(&self) -> bool {
        // Without responses, the socket's buffer decides when more may leave.
        match self.terms.acks {
            0 => self.socket.is_flushed(),
            _ => self.flights.len() < self.terms.requests_max,
        }
    }

    /// Sends all batches that may leave. Without acks, a batch is done when it has left.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(super) fn send(&mut self, now_ns: u64, done: &mut Vec<Outcome>) -> Result<(), Failure> {
        // The rest of earlier requests leaves first, and may make room.
        self.socket.flush()?;
        while self.has_room() {
            let rules = &self.terms.rules;
            let batches = take(self.lanes.iter_mut(), now_ns, rules, &mut self.request);
            if batches.is_empty() {
                break;
            }
            let correlation_id = self.next_correlation_id;
            self.next_correlation_id = correlation_id.wrapping_add(1);
            encode_request(
                self.socket.outbox.bytes(),
                self.terms.version,
                correlation_id,
                Some(CLIENT_ID),
                &self.request,
            )?;
            self.requests += 1;
            if let Some(topic) = self.request.topic_data.first_mut() {
                topic.partition_data.clear();
            }
            if self.terms.acks == 0 {
                let somewhere = |batch| (batch, Ok(-1));
                done.extend(batches.into_iter().map(somewhere));
                self.socket.flush()?;
                continue;
            }
            self.flights.push_back(Flight {
                correlation_id,
                batches,
            });
        }
        Ok(self.socket.flush()?)
    }

    /// Receives responses, and adds the outcome of every batch in them to `done`.
    ///
    /// # Errors
    /// When the connection is lost, or a response matches no request.
    pub(super) fn receive(&mut self, done: &mut Vec<Outcome>) -> Result<(), Failure> {
        self.socket
            .fill()
            .map_err(|error| format!("the broker is gone: {error}"))?;
        while let Some(frame) = take_frame(&mut self.socket.inbox, FRAME_SIZE_MAX)? {
            self.answered(&frame, done)?;
        }
        Ok(())
    }

    fn answered(&mut self, frame: &Bytes, done: &mut Vec<Outcome>) -> Result<(), Failure> {
        let (correlation_id, response) =
            decode_response::<produce::Request>(frame, self.terms.version)
                .map_err(|error| format!("Produce: {error}"))?;
        let flight = self.flights.pop_front();
        let flight = flight.filter(|flight| flight.correlation_id == correlation_id);
        let flight = flight.ok_or("the broker sent a response without a request")?;
        for batch in flight.batches {
            let partition = self.lanes.iter().find(|lane| lane.is(batch.lane));
            let partition = partition.map(Lane::partition);
            // A broker may answer in any order.
            let mut answers = response
                .responses
                .iter()
                .flat_map(|one| &one.partition_responses);
            let answer = answers.find(|answer| Some(answer.index) == partition);
            let outcome = match answer {
                Some(answer) if answer.error_code.is_error() => Err(error_name(answer.error_code)),
                Some(answer) if answer.base_offset < 0 => Err(NEGATIVE_OFFSET.to_owned()),
                Some(answer) => Ok(answer.base_offset),
                None => Err("unanswered".to_owned()),
            };
            done.push((batch, outcome));
        }
        Ok(())
    }

    /// Waits until the broker has processed all requests without acks: it handles the requests of a
    /// connection in order, and answers this one.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(super) fn drain(&mut self) -> Result<(), Failure> {
        if self.terms.acks != 0 {
            return Ok(());
        }
        let request = kafka::api_versions::Request::default();
        self.socket.wait()?;
        encode_request(self.socket.outbox.bytes(), 0, 0, Some(CLIENT_ID), &request)?;
        self.socket.flush()?;
        while take_frame(&mut self.socket.inbox, FRAME_SIZE_MAX)?.is_none() {
            self.socket.fill()?;
        }
        Ok(())
    }

    /// Takes back a batch to reuse its memory.
    pub(super) fn reuse(&mut self, mut batch: Batch) {
        batch.slots.clear();
        self.spare.push(batch);
    }
}
