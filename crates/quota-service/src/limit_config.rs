//! The text form of a limit, as in the configuration file and over HTTP.

use std::fmt;

use model::duration;
use quota::{
    Bucket, Durability, Every, Factor, Kind, Limit, Mode, Pattern, Unit, Unreachable, Zone,
};
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};

/// The fields of a limit; omitted ones are `None`. A limit has a capacity and a refill, or a
/// budget, or only a capacity: slots, for `concurrency` and `requests_in_flight`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitConfig {
    /// The limit's name.
    pub name: String,
    /// The subjects it applies to: `acme/*/*`, with `?run` appended to limit each run separately.
    #[serde(rename = "match")]
    pub pattern: String,
    /// The unit it counts.
    pub unit: String,
    /// The size of a bucket, or the number of slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// The refill rate: `10/s`, `40000/min`, `5/90s`, `7/3min`, `100/d`; `0/s` for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refill: Option<String>,
    /// The amount that may be spent in each calendar period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// The calendar period of a budget: minute, hour, day, week, month, never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// The time zone of the calendar: `UTC`, `+02:00`, `-05:30`, `Europe/Berlin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// `enforce`, `shadow` or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// `async` or `sync`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<String>,
    /// A number like `0.5`, or a ratio like `1/3`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "factor")]
    pub factor: Option<String>,
    /// Share among waiting takes; also multiplies the refill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Shares of the capacity at which to warn: `0.8`, as a number or a string.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "shares")]
    pub warn: Vec<String>,
    /// `degrade`, `deny` or `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unreachable: Option<String>,
}

const MODES: [(&str, Mode); 3] = [
    ("enforce", Mode::Enforce),
    ("shadow", Mode::Shadow),
    ("off", Mode::Off),
];
const DURABILITIES: [(&str, Durability); 2] =
    [("async", Durability::Async), ("sync", Durability::Sync)];
const UNREACHABLES: [(&str, Unreachable); 3] = [
    ("degrade", Unreachable::Degrade),
    ("deny", Unreachable::Deny),
    ("allow", Unreachable::Allow),
];

impl LimitConfig {
    /// The fields by name, in the order of documentation.
    pub const FIELDS: [&str; 14] = [
        "name",
        "match",
        "unit",
        "capacity",
        "refill",
        "budget",
        "every",
        "tz",
        "mode",
        "durability",
        "factor",
        "weight",
        "warn",
        "on_unreachable",
    ];

    /// Converts it to a limit, or returns every mistake in its fields. [`quota::Policies`] checks
    /// it against the other limits.
    pub fn read(&self) -> Result<Limit, Vec<String>> {
        let mut wrong = Vec::new();
        let pattern = Pattern::parse(&self.pattern).map_err(|error| error.to_string());
        let unit = Unit::parse(&self.unit).map_err(|error| error.to_string());
        let (pattern, unit) = (noted(pattern, &mut wrong), noted(unit, &mut wrong));
        let kind = noted(self.kind(), &mut wrong);
        let factor = self.factor.as_deref().map_or(Ok(Factor::ONE), parse_factor);
        let factor = noted(factor, &mut wrong);
        let mode = noted(word("mode", self.mode.as_deref(), &MODES), &mut wrong);
        let durability = word("durability", self.durability.as_deref(), &DURABILITIES);
        let durability = noted(durability, &mut wrong);
        let unreachable = word(
            "on_unreachable",
            self.on_unreachable.as_deref(),
            &UNREACHABLES,
        );
        let unreachable = noted(unreachable, &mut wrong);
        let mut warn = Vec::new();
        for share in &self.warn {
            warn.extend(noted(parse_share(share), &mut wrong));
        }
        match (pattern, unit, kind, factor, mode, durability, unreachable) {
            (
                Some(pattern),
                Some(unit),
                Some(kind),
                Some(factor),
                Some(mode),
                Some(durability),
                Some(on_unreachable),
            ) if wrong.is_empty() => Ok(Limit {
                name: self.name.as_str().into(),
                pattern,
                unit,
                kind,
                mode,
                durability,
                factor,
                weight: self.weight.unwrap_or(1),
                warn,
                on_unreachable,
            }),
            _ => Err(wrong),
        }
    }

    /// Returns the text form of a limit.
    pub fn of(limit: &Limit) -> Self {
        let mut written = Self {
            name: limit.name.to_string(),
            pattern: limit.pattern.to_string(),
            unit: limit.unit.to_string(),
            mode: unless_default(limit.mode, &MODES),
            durability: unless_default(limit.durability, &DURABILITIES),
            on_unreachable: unless_default(limit.on_unreachable, &UNREACHABLES),
            weight: Some(limit.weight).filter(|weight| *weight != 1),
            factor: Some(limit.factor)
                .filter(|factor| *factor != Factor::ONE)
                .map(|factor| {
                    let (numerator, denominator) = factor.parts();
                    format!("{numerator}/{denominator}")
                }),
            warn: limit.warn.iter().map(|share| print_share(*share)).collect(),
            ..Self::default()
        };
        match limit.kind {
            Kind::Bucket(bucket) => {
                written.capacity = Some(bucket.capacity);
                written.refill = Some(print_refill(bucket.amount, bucket.period_ns));
            }
            Kind::Slots { capacity } => written.capacity = Some(capacity),
            Kind::Budget {
                amount,
                every,
                zone,
            } => {
                written.budget = Some(amount);
                written.every = Some(every.as_str().to_owned());
                written.tz = Some(zone)
                    .filter(|zone| *zone != Zone::UTC)
                    .map(|zone| zone.to_string());
            }
        }
        written
    }

    fn kind(&self) -> Result<Kind, String> {
        match (self.capacity, &self.refill, self.budget) {
            (Some(capacity), Some(refill), None) if self.every.is_none() => {
                let (amount, period_ns) = parse_refill(refill)?;
                Ok(Kind::Bucket(Bucket {
                    capacity,
                    amount,
                    period_ns,
                }))
            }
            (Some(capacity), None, None) if self.every.is_none() => Ok(Kind::Slots { capacity }),
            (None, None, Some(amount)) => Ok(Kind::Budget {
                amount,
                every: word("every", self.every.as_deref(), &Every::WORDS).and_then(|every| {
                    match self.every {
                        Some(_) => Ok(every),
                        None => Err("a `budget` says `every` what it begins anew".to_owned()),
                    }
                })?,
                zone: self.tz.as_deref().map_or(Ok(Zone::UTC), parse_zone)?,
            }),
            _ => Err(
                "a limit has `capacity` and `refill`, or `budget` and `every`, or `capacity` \
                      alone for slots"
                    .to_owned(),
            ),
        }
    }
}

fn noted<T>(read: Result<T, String>, wrong: &mut Vec<String>) -> Option<T> {
    read.map_err(|reason| wrong.push(reason)).ok()
}

/// Parses one of a few words; an absent field has the first one.
fn word<T: Copy>(field: &str, text: Option<&str>, words: &[(&str, T)]) -> Result<T, String> {
    let Some(text) = text else {
        return Ok(words[0].1);
    };
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("`{field}`: `{text}` is none of {}", known.join(", "))
    })
}

fn unless_default<T: Copy + PartialEq>(value: T, words: &[(&str, T)]) -> Option<String> {
    let found = words.iter().skip(1).find(|(_, known)| *known == value);
    found.map(|(word, _)| (*word).to_owned())
}

/// Parses `10/s`, `40000/min` or `5/90s` as an amount and a period in nanoseconds.
pub fn parse_refill(text: &str) -> Result<(u64, u64), String> {
    let wrong =
        || format!("`refill`: invalid rate `{text}`: use 10/s, 40000/min, 5/90s, 7/3min or 100/d");
    let (amount, period) = text.split_once('/').ok_or_else(wrong)?;
    let amount = amount
        .trim()
        .replace('_', "")
        .parse()
        .map_err(|_| wrong())?;
    let period = match period.trim() {
        "min" | "minute" => "1m",
        "second" => "1s",
        "hour" => "1h",
        "d" | "day" => "24h",
        "ns" | "us" | "ms" | "s" | "m" | "h" => &format!("1{}", period.trim()),
        other => other,
    };
    let period = duration::parse(period).map_err(|_| wrong())?;
    Ok((
        amount,
        u64::try_from(period.as_nanos()).map_err(|_| wrong())?,
    ))
}

fn print_refill(amount: u64, period_ns: u64) -> String {
    let period = duration::print(std::time::Duration::from_nanos(period_ns));
    match period.as_str() {
        "1m" => format!("{amount}/min"),
        period => format!(
            "{amount}/{}",
            period.strip_prefix('1').filter(is_unit).unwrap_or(period)
        ),
    }
}

fn is_unit(text: &&str) -> bool {
    !text.starts_with(|first: char| first.is_ascii_digit())
}

/// Parses `0.5`, `2` or `1/3`.
pub fn parse_factor(text: &str) -> Result<Factor, String> {
    let wrong =
        || format!("`factor`: `{text}` is no factor: write one like 0.5 or 1/3, up to 1000");
    let (numerator, denominator) = match text.split_once('/') {
        Some((numerator, denominator)) => {
            let read = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
            (read(numerator)?, read(denominator)?)
        }
        None => decimal(text).ok_or_else(wrong)?,
    };
    let part = |part| u32::try_from(part).map_err(|_| wrong());
    Factor::new(part(numerator)?, part(denominator)?).map_err(|_| wrong())
}

/// Parses a number with up to six decimal places as a ratio in lowest terms.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || whole.len() > 6
        || part.len() > 6
        || !is_number(whole)
        || !is_number(part)
    {
        return None;
    }
    let mut denominator = 10_u64.pow(part.len() as u32);
    let mut numerator: u64 = format!("{whole}{part}").parse().ok()?;
    for factor in [2, 5] {
        while numerator.is_multiple_of(factor)
            && denominator.is_multiple_of(factor)
            && denominator > 1
        {
            (numerator, denominator) = (numerator / factor, denominator / factor);
        }
    }
    Some((numerator, denominator))
}

fn parse_share(text: &str) -> Result<u16, String> {
    let wrong = || format!("`warn`: `{text}` is no share: write one like 0.8, up to 1");
    let (numerator, denominator) = decimal(text).ok_or_else(wrong)?;
    match numerator * 1_000 / denominator {
        share if numerator * 1_000 % denominator == 0 && share <= 1_000 => Ok(share as u16),
        _ => Err(wrong()),
    }
}

fn print_share(share: u16) -> String {
    match share {
        1_000 => "1".to_owned(),
        share => format!("0.{share:03}").trim_end_matches('0').to_owned(),
    }
}

fn parse_zone(text: &str) -> Result<Zone, String> {
    Zone::parse(text).map_err(|error| format!("`tz`: `{text}` is {error}"))
}

/// A number or a text.
struct Numeral(String);

impl<'de> Deserialize<'de> for Numeral {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumeralVisitor).map(Self)
    }
}

struct NumeralVisitor;

impl Visitor<'_> for NumeralVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a string")
    }

    fn visit_u64<E>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

fn shares<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let shares = Vec::<Numeral>::deserialize(deserializer)?;
    Ok(shares.into_iter().map(|Numeral(share)| share).collect())
}

fn factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let factor = Option::<Numeral>::deserialize(deserializer)?;
    Ok(factor.map(|Numeral(factor)| factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket() -> LimitConfig {
        LimitConfig {
            name: "agent".to_owned(),
            pattern: "*/*/*".to_owned(),
            unit: "requests".to_owned(),
            capacity: Some(100),
            refill: Some("10/s".to_owned()),
            ..LimitConfig::default()
        }
    }

    #[test]
    fn a_limit_is_shown_as_it_was_written() {
        let budget = LimitConfig {
            capacity: None,
            refill: None,
            budget: Some(50_000_000),
            every: Some("day".to_owned()),
            tz: Some("-05:30".to_owned()),
            durability: Some("sync".to_owned()),
            mode: Some("shadow".to_owned()),
            factor: Some("1/3".to_owned()),
            weight: Some(3),
            warn: vec!["0.8".to_owned(), "1".to_owned()],
            on_unreachable: Some("deny".to_owned()),
            ..bucket()
        };
        let slots = LimitConfig {
            refill: None,
            ..bucket()
        };
        let local = LimitConfig {
            tz: Some("Europe/Berlin".to_owned()),
            ..budget.clone()
        };
        for written in [bucket(), budget, local, slots] {
            assert_eq!(LimitConfig::of(&written.read().unwrap()), written);
        }
    }

    #[test]
    fn rates_are_read_in_every_form() {
        for (text, rate) in [
            ("10/s", (10, 1_000_000_000)),
            ("40_000/min", (40_000, 60_000_000_000)),
            ("5/90s", (5, 90_000_000_000)),
            ("1/day", (1, 86_400_000_000_000)),
            ("7/3min", (7, 180_000_000_000)),
            ("7/3m", (7, 180_000_000_000)),
            ("100/2d", (100, 172_800_000_000_000)),
        ] {
            assert_eq!(parse_refill(text), Ok(rate), "{text}");
            assert_eq!(parse_refill(&print_refill(rate.0, rate.1)), Ok(rate));
        }
        for text in ["10", "/s", "x/s", "1/fortnight", "-1/s", "1.5/s"] {
            assert!(parse_refill(text).is_err(), "{text}");
        }
    }

    #[test]
    fn all_errors_of_one_limit_are_reported_at_once() {
        let written = LimitConfig {
            pattern: "a//b".to_owned(),
            unit: "Req".to_owned(),
            budget: Some(1),
            factor: Some("half".to_owned()),
            mode: Some("on".to_owned()),
            warn: vec!["80%".to_owned(), "0.0001".to_owned()],
            ..bucket()
        };
        assert_eq!(written.read().unwrap_err().len(), 7);
    }
}
