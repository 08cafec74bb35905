//! Reads the `[[limit]]` tables of the configuration file.

use quota::{Limit, Policies};
use quota_service::LimitConfig;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::{Reader, scalar};

impl Reader<'_> {
    /// Reads every limit; reports the mistakes of each, and those of the limits as a set.
    pub(super) fn limits(&mut self, start: usize, value: &DeValue<'_>) {
        let DeValue::Array(tables) = value else {
            let message = "limits are a list of tables: write `[[limit]]` before each";
            return self.mistake(start, message.to_owned());
        };
        let mut limits: Vec<(usize, Limit)> = Vec::new();
        for table in tables.iter() {
            let start = table.span().start;
            match table.get_ref() {
                DeValue::Table(fields) => {
                    let read = self.limit(start, fields);
                    limits.extend(read.map(|limit| (start, limit)));
                }
                _ => self.mistake(start, "a limit must be a table: `[[limit]]`".to_owned()),
            }
        }
        let all = limits.iter().map(|(_, limit)| limit.clone()).collect();
        for mistake in Policies::default().next(all).err().unwrap_or_default() {
            let of = limits
                .iter()
                .rev()
                .find(|(_, limit)| *limit.name == *mistake.limit);
            self.mistake(of.map_or(start, |(start, _)| *start), mistake.to_string());
        }
        self.limits = limits.into_iter().map(|(_, limit)| limit).collect();
    }

    fn limit(&mut self, start: usize, fields: &DeTable<'_>) -> Option<Limit> {
        let mut written = LimitConfig::default();
        let before = self.mistakes.len();
        for (name, value) in fields {
            if let Err(reason) = put(&mut written, name.get_ref(), value) {
                let mistake = self.mistake_at(name.span().start, reason);
                let nearest = model::nearest(name.get_ref(), LimitConfig::FIELDS);
                let is_known = LimitConfig::FIELDS.contains(&name.get_ref().as_ref());
                self.mistakes.push(match nearest.filter(|_| !is_known) {
                    Some(nearest) => mistake.hint(format!("did you mean `{nearest}`?")),
                    None => mistake,
                });
            }
        }
        if self.mistakes.len() > before {
            return None;
        }
        match written.read() {
            Ok(limit) => Some(limit),
            Err(reasons) => {
                for reason in reasons {
                    self.mistake(start, format!("limit `{}`: {reason}", written.name));
                }
                None
            }
        }
    }
}

fn put(written: &mut LimitConfig, name: &str, value: &Spanned<DeValue<'_>>) -> Result<(), String> {
    let text = || {
        let text = match value.get_ref() {
            DeValue::Float(number) => Some(number.to_string()),
            _ => scalar(value),
        };
        text.ok_or_else(|| format!("`{name}` of a limit must be a single value"))
    };
    let count = || {
        let text = text()?;
        let wrong = |_| format!("`{name}`: `{text}` is not a whole number");
        text.parse::<u64>().map_err(wrong)
    };
    match name {
        "name" => written.name = text()?,
        "match" => written.pattern = text()?,
        "unit" => written.unit = text()?,
        "capacity" => written.capacity = Some(count()?),
        "refill" => written.refill = Some(text()?),
        "budget" => written.budget = Some(count()?),
        "every" => written.every = Some(text()?),
        "tz" => written.tz = Some(text()?),
        "mode" => written.mode = Some(text()?),
        "durability" => written.durability = Some(text()?),
        "factor" => written.factor = Some(text()?),
        "weight" => {
            let weight = u32::try_from(count()?).map_err(|_| format!("`{name}` is too large"))?;
            written.weight = Some(weight);
        }
        "on_unreachable" => written.on_unreachable = Some(text()?),
        "warn" => {
            let DeValue::Array(shares) = value.get_ref() else {
                return Err("`warn` must be a list of shares, like [0.8, 1.0]".to_owned());
            };
            let share = |share: &Spanned<DeValue<'_>>| match share.get_ref() {
                DeValue::Float(number) => Some(number.to_string()),
                _ => scalar(share),
            };
            let shares = shares.iter().map(share).collect::<Option<_>>();
            written.warn = shares.ok_or("`warn` must be a list of shares, like [0.8, 1.0]")?;
        }
        _ => return Err(format!("unknown field `{name}` of a limit")),
    }
    Ok(())
}
