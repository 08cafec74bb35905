//! Records of cells. Each has the kind in force when it was written, as limits may have changed
//! since.

use super::Malformed;
use super::bytes::{FieldReader, Write};
use crate::cell::Cell;
use crate::key::Key;
use crate::limit::{Kind, LimitId};
use crate::plan::Plan;
use crate::rules::{Rules, stored_prefix};
use crate::subject::Subject;
use crate::table::Table;

const OVERRIDDEN: u8 = 1;

/// The record of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRecord<'a> {
    /// The cell's key.
    pub key: Key<'a>,
    /// The stored state.
    pub(crate) cell: Cell,
    /// The kind by which the state was computed.
    pub(crate) kind: Kind,
}

/// Appends a cell to a record of cells. Cells of slots are left out: they follow from the holds.
pub fn encode_cell(rules: &Rules, key: Key<'_>, cell: &Cell, out: &mut Vec<u8>) {
    let Some(index) = rules.policies.index(key.limit) else {
        return;
    };
    let change = match cell.is_overridden {
        true => rules.overrides.get(&(key.limit, stored_prefix(key.prefix))),
        false => None,
    };
    let base = *rules.kind(index);
    let kind = change.map_or(base, |change| change.kind(base));
    if matches!(kind, Kind::Slots { .. }) {
        return;
    }
    CellRecord {
        key,
        cell: *cell,
        kind,
    }
    .encode(out);
}

impl Plan {
    /// Appends the cells of an admitted take, in their current state, to a record of cells.
    pub fn encode_cells(&self, rules: &Rules, subject: &Subject<'_>, out: &mut Vec<u8>) {
        let taken = self.steps.iter().filter(|step| step.shadowed.is_none());
        for (step, (cell, _)) in taken.filter_map(|step| Some((step, step.now.as_ref()?))) {
            encode_cell(rules, step.key(rules, subject), cell, out);
        }
    }
}

impl CellRecord<'_> {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let Self { key, cell, kind } = self;
        out.extend_from_slice(&key.limit.0.to_le_bytes());
        out.push(if cell.is_overridden { OVERRIDDEN } else { 0 });
        out.push(cell.warned);
        out.extend_from_slice(&cell.amount.to_le_bytes());
        out.extend_from_slice(&cell.at.to_le_bytes());
        out.kind(kind);
        out.text16(&stored_prefix(key.prefix));
    }

    /// Restores the cell under the current rules, which have been in force since `since_ns`. A
    /// clock that was stepped back while the node was down adds no refill and blocks no takes.
    pub fn restore(self, rules: &Rules, since_ns: u64, table: &mut Table, now_ns: u64) {
        let Self {
            key,
            mut cell,
            kind,
        } = self;
        let Some(index) = rules.policies.index(key.limit) else {
            return;
        };
        let (base, dial) = (*rules.kind(index), rules.dial(index));
        let change = rules.overrides.get(&(key.limit, stored_prefix(key.prefix)));
        let wanted = change.map_or(base, |change| change.kind(base));
        cell.is_overridden = change.is_some();
        if matches!(kind, Kind::Bucket(_)) {
            cell.at = cell.at.min(dial.own_ns(now_ns));
        }
        if kind != wanted {
            cell.accrue(&kind, dial, since_ns.min(now_ns));
            cell.reconfigure(&kind, &wanted, dial, now_ns);
        }
        cell.clamp_period(&wanted, dial, now_ns);
        table.restore(key, cell);
    }
}

/// Decodes a record of cells.
pub fn decode_cells(bytes: &[u8]) -> impl Iterator<Item = Result<CellRecord<'_>, Malformed>> {
    let mut rest = FieldReader::new(bytes, "cells");
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over || rest.is_empty() {
            return None;
        }
        let decoded = decode_cell(&mut rest);
        is_over = decoded.is_err();
        Some(decoded)
    })
}

fn decode_cell<'a>(rest: &mut FieldReader<'a>) -> Result<CellRecord<'a>, Malformed> {
    let limit = LimitId(rest.u32()?);
    let (flags, warned) = (rest.u8()?, rest.u8()?);
    let (amount, at) = (rest.i128()?, rest.u64()?);
    let kind = rest.kind()?;
    let key = Key::from_bytes(limit, rest.text16()?.as_bytes());
    Ok(CellRecord {
        key: key.ok_or(rest.malformed())?,
        cell: Cell {
            amount,
            at,
            limit,
            warned,
            is_overridden: flags & OVERRIDDEN != 0,
            is_dirty: false,
        },
        kind,
    })
}
