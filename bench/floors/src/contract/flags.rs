//! `--name value` and `--name=value`, and a clear answer to anything else.

use std::str::FromStr;
use std::time::Duration;

use super::{Failure, Outcome};

const HINT: &str = "every flag is `--name value`; README.md beside the program lists them";

/// The flags of one command line, taken out one by one; what is left over is a mistake.
pub struct Flags {
    values: Vec<(String, String)>,
}

impl Flags {
    /// Splits a command line into flags.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Outcome<Flags> {
        let mut arguments = arguments.into_iter();
        let mut values: Vec<(String, String)> = Vec::new();
        while let Some(argument) = arguments.next() {
            let Some(flag) = argument.strip_prefix("--") else {
                return Err(Failure::usage(format!("{argument:?} is not a flag"), HINT));
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None => {
                    let value = arguments
                        .next()
                        .ok_or_else(|| Failure::usage(format!("--{flag} has no value"), HINT))?;
                    (flag.to_owned(), value)
                }
            };
            if values.iter().any(|(earlier, _)| *earlier == name) {
                return Err(Failure::usage(format!("--{name} is given twice"), HINT));
            }
            values.push((name, value));
        }
        Ok(Flags { values })
    }

    /// Takes a flag, if it was given.
    pub fn take<T: FromStr>(&mut self, name: &str) -> Outcome<Option<T>> {
        let Some(index) = self.values.iter().position(|(given, _)| given == name) else {
            return Ok(None);
        };
        let (_, value) = self.values.swap_remove(index);
        match value.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Failure::usage(
                format!("--{name} cannot be {value:?}"),
                HINT,
            )),
        }
    }

    /// Takes a flag that has to be given.
    pub fn require<T: FromStr>(&mut self, name: &str) -> Outcome<T> {
        self.take(name)?
            .ok_or_else(|| Failure::usage(format!("--{name} is missing"), HINT))
    }

    /// Takes a number and checks its range, both ends included.
    pub fn number(&mut self, name: &str, default: u64, min: u64, max: u64) -> Outcome<u64> {
        let value = self.take(name)?.unwrap_or(default);
        if (min..=max).contains(&value) {
            return Ok(value);
        }
        Err(Failure::usage(
            format!("--{name} {value} is not within {min} and {max}"),
            HINT,
        ))
    }

    /// Takes a number of seconds, fractions allowed, of at most an hour.
    pub fn seconds(&mut self, name: &str) -> Outcome<Option<Duration>> {
        match self.take::<f64>(name)? {
            None => Ok(None),
            Some(seconds) if (0.0..=3600.0).contains(&seconds) => {
                Ok(Some(Duration::from_secs_f64(seconds)))
            }
            Some(seconds) => Err(Failure::usage(
                format!("--{name} {seconds} is not within 0 and 3600"),
                "give seconds, fractions allowed",
            )),
        }
    }

    /// Ends the parsing: a flag nobody took is unknown.
    pub fn finish(self) -> Outcome<()> {
        match self.values.first() {
            None => Ok(()),
            Some((name, _)) => Err(Failure::usage(format!("--{name} is unknown here"), HINT)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Flags;

    fn flags(line: &str) -> super::Outcome<Flags> {
        Flags::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn both_spellings_of_a_flag_are_taken() {
        let mut flags = flags("--size 128 --mode=serial").unwrap();
        assert_eq!(flags.take::<u64>("size").unwrap(), Some(128));
        assert_eq!(flags.require::<String>("mode").unwrap(), "serial");
        assert_eq!(flags.take::<u64>("size").unwrap(), None);
        flags.finish().unwrap();
    }

    #[test]
    fn every_mistake_on_the_line_is_named() {
        let message = |outcome: super::Outcome<()>| outcome.unwrap_err().to_string();
        assert!(message(flags("stray").map(drop)).contains("\"stray\" is not a flag"));
        assert!(message(flags("--size").map(drop)).contains("--size has no value"));
        assert!(message(flags("--size 1 --size 2").map(drop)).contains("--size is given twice"));
        assert!(message(flags("--sise 1").unwrap().finish()).contains("--sise is unknown"));
        let number = |line| flags(line).unwrap().number("size", 1, 1, 9).map(drop);
        assert!(message(number("--size ten")).contains("--size cannot be \"ten\""));
        assert!(message(number("--size 10")).contains("--size 10 is not within 1 and 9"));
    }
}
