//! Appends of one connection to topics, which wait for the durability of their topic.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use model::ErrorCode;
use node::Ticket;
use node::records::{Appending, Told};
use node::topics::Durable;
use wire::AppendedRecords;

use super::answer_refusal;
use crate::native::outlet::{NativeOutlet, correlation};
use crate::topics::Refused;

/// The limits on waiting appends, and on their bytes; above either nothing is read.
const WAITING_MAX: usize = 8_192;
const WAITING_SIZE_MAX: usize = 8 << 20;

/// The waiting appends, in the order of the requests.
#[derive(Default)]
pub(super) struct Appends {
    waiting: VecDeque<Waiting>,
    size: usize,
}

struct Waiting {
    tag: Ticket,
    /// The record of the charge.
    charged: Durable,
    appending: Appending,
    size: usize,
}

impl Appends {
    pub(super) fn push(
        &mut self,
        tag: Ticket,
        charged: Durable,
        appending: Appending,
        size: usize,
    ) {
        self.size += size;
        self.waiting.push_back(Waiting {
            tag,
            charged,
            appending,
            size,
        });
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX || self.size >= WAITING_SIZE_MAX
    }

    /// Sends the answers that are known, in order; returns whether there were any.
    pub(super) fn poll(&mut self, cx: &Context<'_>, outlet: &NativeOutlet) -> bool {
        let mut has_answered = false;
        while let Some(oldest) = self.waiting.front_mut() {
            let Poll::Ready(told) = oldest.appending.poll_told(cx.waker()) else {
                break;
            };
            let Poll::Ready(charged) = oldest.charged.poll_durable(cx.waker()) else {
                break;
            };
            match charged.map_err(Refused::from).and_then(|()| places(told)) {
                Ok(places) => {
                    let at = correlation(oldest.tag);
                    outlet.push_answer(|out| {
                        AppendedRecords::encode(places.into_iter(), at, out);
                    });
                }
                Err(refused) => answer_refusal(outlet, oldest.tag, &refused),
            }
            self.size -= oldest.size;
            self.waiting.pop_front();
            has_answered = true;
        }
        has_answered
    }
}

/// Returns the partition and the offset of each record, if all were appended.
fn places(told: Vec<Told>) -> Result<Vec<(u32, u64)>, Refused> {
    let failed = told.iter().find_map(|it| it.offset.as_ref().err());
    let Some(failed) = failed else {
        let place = |told: Told| Some((told.partition, told.offset.ok()?));
        return Ok(told.into_iter().filter_map(place).collect());
    };
    let refused = Refused::from(failed.clone());
    let there = told.iter().filter(|it| it.offset.is_ok()).count();
    match there {
        0 => Err(refused),
        // A retry may append those again.
        there => {
            let count = told.len();
            let message = format!(
                "{there} of {count} records were appended; {}",
                refused.message
            );
            Err(Refused::new(ErrorCode::Unconfirmed, message))
        }
    }
}
