//! Role processes: how the suite starts them, and their side of the line protocol.

use std::io::{self, BufRead, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::child::{Actor, ChildError, Pin};

/// Error that ends a role.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Parameters of a role, passed as JSON on the command line.
pub trait RoleSpec: Serialize {
    /// Returns the name of the role.
    fn role(&self) -> &'static str;
}

/// The command line of a role.
#[derive(Serialize)]
struct Invocation<'a, S> {
    role: &'a str,
    #[serde(flatten)]
    spec: &'a S,
}

/// Starts our own executable in a role.
///
/// # Errors
/// When it cannot be started.
pub fn start(executable: &Path, spec: &impl RoleSpec, pin: Pin) -> Result<Actor, ChildError> {
    let role = spec.role();
    let spec = serde_json::to_string(&Invocation { role, spec }).unwrap_or_default();
    Actor::start(executable, ["bench-role", &spec], pin)
}

/// Writes one line of JSON to the suite.
///
/// # Errors
/// When the suite has ended.
pub fn write_line(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(value)?)?;
    out.flush()?;
    Ok(())
}

/// Returns the suite's next line, or `None` when the suite has ended.
///
/// # Errors
/// When the line cannot be read.
pub fn read_line() -> Result<Option<String>, Failure> {
    let mut line = String::new();
    let size = io::stdin().lock().read_line(&mut line)?;
    Ok((size > 0).then(|| line.trim().to_owned()))
}

/// Answers each of the suite's lines, on a thread of its own because reading blocks. The returned
/// receiver yields the result when the suite has ended.
pub fn answer_lines(
    mut answer: impl FnMut() -> Result<(), Failure> + Send + 'static,
) -> oneshot::Receiver<Result<(), Failure>> {
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        let outcome = loop {
            match read_line() {
                Ok(None) => break Ok(()),
                Ok(Some(_)) => {
                    if let Err(failure) = answer() {
                        break Err(failure);
                    }
                }
                Err(failure) => break Err(failure),
            }
        };
        // The receiver is gone if the role has failed meanwhile.
        let _ = ended.send(outcome);
    });
    end
}

/// Forwards the suite's lines from a thread of its own, so that the runtime can serve connections
/// meanwhile. The channel closes when the suite ends.
pub fn lines() -> mpsc::Receiver<()> {
    let (heard, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        while let Ok(Some(_)) = read_line() {
            if heard.blocking_send(()).is_err() {
                return;
            }
        }
    });
    lines
}

/// First line of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Address of the role, if it listens.
    pub address: Option<String>,
    /// Duration of the set-up.
    pub setup_ns: u64,
}

/// Makes a single-threaded runtime: the role's own cost is part of the measurement.
///
/// # Errors
/// When the kernel has no resources for it.
pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
