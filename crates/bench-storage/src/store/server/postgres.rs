//! PostgreSQL: a cluster for one run, and pgbench with its log of every transaction.
//!
//! pgbench logs the end and the duration of each transaction. Transactions that end within our
//! window are counted, so pgbench's own start and end are not.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Server;
use crate::store::{Matrix, message};
use bench::tally::Tally;
use bench::workload::child::{Actor, ChildError, Pin};
use bench::workload::error::WorkloadError;
use bench::workload::surroundings::PATIENCE;

const USER: &str = "bench";
const DATABASE: &str = "postgres";
const TABLE: &str = "CREATE TABLE messages (id bigserial PRIMARY KEY, conversation int NOT NULL, body text NOT NULL)";

/// Time that pgbench runs before and after the window: it connects first, and ends by itself.
const MARGIN: Duration = Duration::from_secs(2);

/// Creates a cluster and starts its server.
pub(super) fn start(programs: &Path, directory: &Path, port: u16) -> Result<Actor, WorkloadError> {
    let data = directory.join("data").display().to_string();
    let user = ServerUser::of(directory).map_err(WorkloadError::Directory)?;
    let initdb = [
        "-D",
        &data,
        "-U",
        USER,
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale",
        "C",
        "--no-sync",
    ];
    finish(user.start(&programs.join("initdb"), &initdb)?)?;
    let (port, directory) = (port.to_string(), directory.display().to_string());
    let server = [
        "-D",
        &data,
        "-p",
        &port,
        "-k",
        &directory,
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "fsync=on",
        "-c",
        "max_connections=1100",
    ];
    Ok(user.start(&programs.join("postgres"), &server)?)
}

/// Creates the table when the server accepts commands.
pub(super) fn prepare(programs: &Path, port: u16) -> Result<(), WorkloadError> {
    let port = port.to_string();
    let arguments = [
        "-h",
        "127.0.0.1",
        "-p",
        &port,
        "-U",
        USER,
        "-d",
        DATABASE,
        "-c",
        TABLE,
    ];
    let psql = || -> Result<(), ChildError> {
        finish(Actor::start(
            &programs.join("psql"),
            arguments,
            Pin::Nowhere,
        )?)
    };
    // The server listens shortly before it is ready.
    for _ in 0..50 {
        if psql().is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(psql()?)
}

/// User and group of the server, which refuses to run as root.
struct ServerUser(Option<(u32, u32)>);

impl ServerUser {
    /// Returns no change of user, or for root an unprivileged user, who becomes the owner of the
    /// directory.
    fn of(directory: &Path) -> std::io::Result<Self> {
        if fs::metadata(directory)?.uid() != 0 {
            return Ok(Self(None));
        }
        let passwd = fs::read_to_string("/etc/passwd")?;
        let ids = ids(&passwd, "postgres").or_else(|| ids(&passwd, "nobody"));
        let (uid, gid) = ids.ok_or(std::io::ErrorKind::NotFound)?;
        chown(directory, Some(uid), Some(gid))?;
        Ok(Self(Some((uid, gid))))
    }

    fn start(&self, program: &Path, arguments: &[&str]) -> Result<Actor, ChildError> {
        let Some((uid, gid)) = self.0 else {
            return Actor::start(program, arguments, Pin::Nowhere);
        };
        let program = program.display().to_string();
        let (uid, gid) = (uid.to_string(), gid.to_string());
        // `setpriv` becomes the program, so the pid stays the same.
        let user = ["--reuid", &uid, "--regid", &gid, "--clear-groups", &program];
        Actor::start(
            Path::new("setpriv"),
            [&user, arguments].concat(),
            Pin::Nowhere,
        )
    }
}

/// Returns user id and group id of a name in `/etc/passwd`.
fn ids(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let line = passwd
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Waits for a program to end with success.
fn finish(mut actor: Actor) -> Result<(), ChildError> {
    actor.finish_within(PATIENCE)
}

/// A running pgbench.
pub(in crate::store) struct Pgbench {
    actor: Actor,
    logs: PathBuf,
    /// Total duration of its run.
    runs: Duration,
}

/// Start and end of a window by the wall clock, which the log uses.
pub(in crate::store) struct Window {
    pub(in crate::store) open_us: u64,
    pub(in crate::store) close_us: u64,
}

/// Starts pgbench with a client for each message in flight.
pub(in crate::store) fn pgbench(
    server: &Server,
    matrix: &Matrix,
) -> Result<Pgbench, WorkloadError> {
    let script = server.directory().join("insert.sql");
    let insert = format!(
        "\\set conversation random(1, {})\nINSERT INTO messages (conversation, body) VALUES (:conversation, '{}');\n",
        matrix.vus,
        message::text(matrix.size as usize, 0)
    );
    fs::write(&script, insert).map_err(WorkloadError::Directory)?;
    let logs = server.directory().join("log");
    let runs = matrix.ramp + matrix.window + 2 * MARGIN;
    let port = server.address.rsplit(':').next().unwrap_or_default();
    let (script, log) = (script.display().to_string(), logs.display().to_string());
    let (clients, seconds) = (matrix.in_flight().to_string(), runs.as_secs().to_string());
    let threads = matrix.in_flight().min(2).to_string();
    let arguments = [
        "-h",
        "127.0.0.1",
        "-p",
        port,
        "-U",
        USER,
        "-n",
        "-M",
        "prepared",
        "-c",
        &clients,
        "-j",
        &threads,
        "-T",
        &seconds,
        "-f",
        &script,
        "-l",
        "--log-prefix",
        &log,
        DATABASE,
    ];
    let actor = Actor::start(&server.programs().join("pgbench"), arguments, Pin::Nowhere)?;
    Ok(Pgbench { actor, logs, runs })
}

impl Pgbench {
    pub(in crate::store) fn pid(&self) -> u32 {
        self.actor.pid()
    }

    pub(in crate::store) fn check_alive(&mut self) -> Result<(), ChildError> {
        self.actor.check_alive()
    }

    /// Returns the time from pgbench's start to the opening of the window.
    pub(in crate::store) fn warm_up(matrix: &Matrix) -> Duration {
        matrix.ramp + MARGIN
    }

    /// Waits for its end, and counts its transactions in the window.
    pub(in crate::store) fn finish(mut self, window: &Window) -> Result<Tally, WorkloadError> {
        self.actor.finish_within(self.runs + PATIENCE)?;
        let directory = self.logs.parent().unwrap_or(Path::new("."));
        let mut tally = Tally::new();
        for entry in fs::read_dir(directory).map_err(WorkloadError::Directory)? {
            let path = entry.map_err(WorkloadError::Directory)?.path();
            let is_log = path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("log."));
            if is_log {
                let text = fs::read_to_string(&path).map_err(WorkloadError::Directory)?;
                count(&text, window, &mut tally)?;
            }
        }
        Ok(tally)
    }
}

impl Window {
    /// Opens a window now.
    pub(in crate::store) fn open() -> Self {
        let open_us = wall_us();
        Self {
            open_us,
            close_us: open_us,
        }
    }

    pub(in crate::store) fn close(&mut self) {
        self.close_us = wall_us();
    }
}

fn wall_us() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "pgbench's log has the wall time")]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as u64)
}

/// Parses `client number latency_us script epoch_s epoch_us`, one line for each finished
/// transaction. A failed transaction has a word in place of the latency.
fn count(log: &str, window: &Window, tally: &mut Tally) -> Result<(), WorkloadError> {
    for line in log.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        let Some((seconds, micros)) = number(4).zip(number(5)) else {
            return Err(WorkloadError::Node(format!(
                "invalid line in pgbench's log: `{line}`"
            )));
        };
        let done_us = seconds * 1_000_000 + micros;
        if !(window.open_us..=window.close_us).contains(&done_us) {
            continue;
        }
        tally.sent();
        match number(2) {
            Some(took_us) => tally.answered((done_us - took_us) * 1_000, done_us * 1_000),
            None => tally.failed(fields.get(2).copied().unwrap_or("failed")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_that_end_in_the_window_are_counted_with_their_latency() {
        let log =
            "0 1 5000 0 100 0\n3 1 7000 0 100 500000\n3 2 failed 0 100 600000\n0 2 9000 0 102 0\n";
        let window = Window {
            open_us: 100_200_000,
            close_us: 101_000_000,
        };
        let mut tally = Tally::new();
        count(log, &window, &mut tally).unwrap();
        let measured = tally.over(800_000_000);
        assert_eq!(
            (measured.sent, measured.completed, measured.errors["failed"]),
            (2, 1, 1)
        );
        assert_eq!(measured.check(), Ok(()));
        let latency_ns = measured.service.unwrap().quantile(0.5);
        assert!(latency_ns.abs_diff(7_000_000) < 10_000, "{latency_ns}");
        assert!(count("nonsense", &window, &mut Tally::new()).is_err());
    }

    #[test]
    fn user_and_group_ids_are_found_by_exact_user_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgres:x:104:106::/var/lib:/bin/bash\n";
        assert_eq!(ids(passwd, "postgres"), Some((104, 106)));
        assert_eq!(ids(passwd, "post"), None);
    }
}
