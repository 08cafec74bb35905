//! The options of `serve` and `load`, the same for every program.

use std::str::FromStr;
use std::time::Duration;

use super::{Address, Failure, Flags, Outcome, pin};

/// How requests follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One request at a time, awaited.
    Serial,
    /// A sliding window of requests, each awaited.
    Concurrent,
    /// A sliding window driven by completions, the cheapest way a library has.
    Callback,
    /// Messages without replies.
    Publish,
}

impl Mode {
    /// The word on the command line and in the report.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Serial => "serial",
            Mode::Concurrent => "concurrent",
            Mode::Callback => "callback",
            Mode::Publish => "publish",
        }
    }
}

impl FromStr for Mode {
    type Err = ();

    fn from_str(word: &str) -> Result<Mode, ()> {
        [
            Mode::Serial,
            Mode::Concurrent,
            Mode::Callback,
            Mode::Publish,
        ]
        .into_iter()
        .find(|mode| mode.word() == word)
        .ok_or(())
    }
}

/// What ends the measured window: after it no request is issued, and the last reply closes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// A length of time.
    Time(Duration),
    /// A number of requests over all connections.
    Requests(u64),
}

/// The options of `serve`.
#[derive(Debug)]
pub struct Serve {
    /// Where to listen.
    pub listen: Address,
}

impl Serve {
    /// Takes the options and runs on the processor they name.
    pub fn take(flags: &mut Flags) -> Outcome<Serve> {
        take_cpu(flags)?;
        Ok(Serve {
            listen: flags.require("listen")?,
        })
    }
}

/// The options of `load`.
#[derive(Debug)]
pub struct Load {
    /// Where the server listens.
    pub connect: Address,
    /// How requests follow each other.
    pub mode: Mode,
    /// Requests in flight on each connection.
    pub in_flight: usize,
    /// Bytes of payload in every request and every reply.
    pub size: usize,
    /// What ends the window.
    pub bound: Bound,
    /// How long the same load runs before the window, all of it answered before the window opens.
    pub warmup: Duration,
    /// Connections, each with its own window of requests.
    pub connections: usize,
}

impl Load {
    /// Takes the options and runs on the processor they name.
    pub fn take(flags: &mut Flags) -> Outcome<Load> {
        take_cpu(flags)?;
        let load = Load {
            connect: flags.require("connect")?,
            mode: flags.require("mode")?,
            in_flight: flags.number("in-flight", 1, 1, 1 << 20)? as usize,
            size: flags.number("size", 128, 0, 16 << 20)? as usize,
            bound: take_bound(flags)?,
            warmup: flags
                .seconds("warmup-seconds")?
                .unwrap_or(Duration::from_millis(500)),
            connections: flags.number("connections", 1, 1, 10_000)? as usize,
        };
        if load.mode == Mode::Serial && load.in_flight > 1 {
            return Err(Failure::usage(
                format!(
                    "serial mode has one request in flight, not {}",
                    load.in_flight
                ),
                "use --mode concurrent, or leave out --in-flight",
            ));
        }
        Ok(load)
    }

    /// Refuses a mode that the program cannot offer.
    pub fn refuse(&self, mode: Mode, why: &str) -> Outcome<()> {
        if self.mode != mode {
            return Ok(());
        }
        Err(Failure::usage(
            format!("there is no mode {} here: {why}", mode.word()),
            "take another",
        ))
    }

    /// The requests that connection `index` may send, given the bound.
    pub fn share(&self, index: usize) -> u64 {
        let connections = self.connections as u64;
        match self.bound {
            Bound::Time(_) => u64::MAX,
            Bound::Requests(total) => {
                total / connections + u64::from((index as u64) < total % connections)
            }
        }
    }

    /// A time by which the whole run is over unless something hangs.
    pub fn patience(&self) -> Duration {
        let window = match self.bound {
            Bound::Time(window) => window,
            Bound::Requests(_) => Duration::from_secs(600),
        };
        self.warmup + window + Duration::from_secs(30)
    }
}

fn take_bound(flags: &mut Flags) -> Outcome<Bound> {
    let seconds = flags.seconds("seconds")?;
    let requests = flags.take::<u64>("requests")?;
    match (seconds, requests) {
        (Some(window), None) if !window.is_zero() => Ok(Bound::Time(window)),
        (None, Some(total)) if total > 0 => Ok(Bound::Requests(total)),
        _ => Err(Failure::usage(
            "the window has no end",
            "give either --seconds or --requests, and more than zero of it",
        )),
    }
}

fn take_cpu(flags: &mut Flags) -> Outcome<()> {
    match flags.take("cpu")? {
        Some(cpu) => pin(cpu),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(line: &str) -> Outcome<Load> {
        let mut flags = Flags::parse(line.split_whitespace().map(str::to_owned))?;
        let load = Load::take(&mut flags)?;
        flags.finish()?;
        Ok(load)
    }

    #[test]
    fn requests_are_shared_without_losing_one() {
        let line = "--connect 127.0.0.1:1 --mode concurrent --requests 10 --connections 4";
        let load = load(line).unwrap();
        let shares: Vec<u64> = (0..4).map(|index| load.share(index)).collect();
        assert_eq!(shares, [3, 3, 2, 2]);
    }

    #[test]
    fn a_window_needs_exactly_one_end() {
        for bound in [
            "",
            "--seconds 1 --requests 1",
            "--seconds 0",
            "--requests 0",
        ] {
            let line = format!("--connect 127.0.0.1:1 --mode serial {bound}");
            assert!(load(&line).is_err(), "{bound:?} was accepted");
        }
    }

    #[test]
    fn serial_mode_refuses_a_window() {
        assert!(load("--connect 127.0.0.1:1 --mode serial --seconds 1 --in-flight 2").is_err());
    }
}
