//! The method `backup` of the node's own agent.
//!
//! It writes to a path on this machine that the client chooses. Therefore the client must be an
//! administrator, and the path must not exist.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use access::Principal;
use access::tokens::FILE_NAME;
use client::{Fault, Request, Server};
use door::{Gate, Refused};
use http_api::time::push_rfc3339;
use journal::Journal;
use journal::backup::{self, CopyStats};
use journal::disk::{Disk as _, RealDisk};
use model::ErrorCode;
use node::Node;
use parking_lot::Mutex;
use platform::Disk as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::journal::{DIRECTORY, wait_until_filed};
use super::mailboxes;
use crate::doctor::Finding;

/// The request of a backup.
#[derive(Debug, Deserialize, Serialize)]
pub struct Backup {
    /// An absolute path on the node's machine that does not exist yet.
    pub path: PathBuf,
    /// A bearer token of an administrator; empty to use the connection's own token.
    pub token: String,
}

/// The data that a backup copies.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) journal: Arc<Journal>,
    /// The node's data directory.
    pub(super) data: PathBuf,
    pub(super) gate: Arc<dyn Gate>,
    /// The node is a member of a cluster.
    pub(super) is_member: bool,
    /// The backups that were made.
    pub(super) backups: Backups,
}

/// The backups of a node since its start.
#[derive(Clone, Debug, Default)]
pub(super) struct Backups(Arc<Mutex<Option<LastBackup>>>);

/// The last backup of a node since its start.
#[derive(Clone, Debug)]
pub(crate) struct LastBackup {
    /// When it ended, in milliseconds since 1970-01-01 UTC.
    unix_ms: u64,
    path: PathBuf,
    /// Its size in bytes, or why it failed.
    outcome: Result<u64, String>,
}

impl Backups {
    /// Returns the last one.
    pub(super) fn last(&self) -> Option<LastBackup> {
        self.0.lock().clone()
    }
}

impl LastBackup {
    /// Returns the finding about the last backup, if there is one.
    pub(crate) fn finding(last: Option<&Self>) -> Finding {
        const CHECK: &str = "backup";
        let Some(last) = last else {
            return Finding::ok(CHECK, "no backup was made since the start of the node");
        };
        let mut at = Vec::new();
        push_rfc3339(&mut at, last.unix_ms);
        let (at, path) = (String::from_utf8_lossy(&at), last.path.display());
        match &last.outcome {
            Ok(bytes) => Finding::ok(CHECK, format!("{path}, {bytes} bytes, made at {at}"))
                .figures(json!({ "unix_ms": last.unix_ms, "bytes": bytes })),
            Err(reason) => Finding::warn(
                CHECK,
                format!("the backup to {path} failed at {at}: {reason}"),
                format!("repeat it: telpher backup {path}"),
            ),
        }
    }
}

/// Adds the method to the agent.
pub(super) fn method(server: Server, node: &Node, source: Source) -> Server {
    let node = node.clone();
    server.handle("backup", move |request: Request| {
        let (node, source) = (node.clone(), source.clone());
        let caller = mailboxes::principal(&node, &request);
        async move {
            let caller = caller?;
            let made = move || answer(&node, &source, &caller, &request.body);
            let made = tokio::task::spawn_blocking(made).await;
            match made {
                Ok(answer) => answer.map(|value| value.to_string()),
                Err(error) => Err(Fault::new(format!("the backup failed: {error}"))),
            }
        }
    })
}

/// Makes a backup if the caller is an administrator or the request has an administrator's token.
fn answer(node: &Node, source: &Source, caller: &Principal, body: &[u8]) -> Result<Value, Fault> {
    let invalid = |message: String| Fault::with_code(ErrorCode::InvalidArgument, message);
    let backup_request: Backup =
        serde_json::from_slice(body).map_err(|error| invalid(error.to_string()))?;
    let is_admin = match backup_request.token.is_empty() {
        true => caller.is_admin(),
        false => {
            let pass = source.gate.admit(&backup_request.token);
            let unknown =
                |error: Refused| Fault::with_code(ErrorCode::Unauthenticated, error.to_string());
            pass.map_err(unknown)?.principal().is_admin()
        }
    };
    if !is_admin {
        let message = "a backup needs an administrator's token";
        return Err(Fault::with_code(ErrorCode::Denied, message));
    }
    if source.is_member {
        // A backup seals the line, which would let go of log that other members may need.
        let message = "a member of a cluster cannot be backed up while it runs yet: stop a member \
                       that does not lead, copy its data directory, and start it again";
        return Err(Fault::with_code(ErrorCode::InvalidArgument, message));
    }
    if !backup_request.path.is_absolute() {
        return Err(invalid(format!(
            "{} is not absolute",
            backup_request.path.display()
        )));
    }
    let made = make(source, &backup_request.path);
    let outcome = made.as_ref().map(|copied| copied.bytes);
    *source.backups.0.lock() = Some(LastBackup {
        unix_ms: node.ports().clock.unix_ms(),
        path: backup_request.path.clone(),
        outcome: outcome.map_err(|fault| fault.message.clone()),
    });
    let copied = made?;
    Ok(json!({
        "path": backup_request.path.display().to_string(),
        "linked": copied.linked,
        "copied": copied.copied,
        "bytes": copied.bytes,
        "filed": copied.filed.0,
    }))
}

/// Copies everything under a temporary name, and renames the copy at the end. A backup under its
/// final name is therefore complete.
fn make(source: &Source, target: &Path) -> Result<CopyStats, Fault> {
    if target.symlink_metadata().is_ok() {
        let message = format!("{} exists already", target.display());
        return Err(Fault::with_code(ErrorCode::InvalidArgument, message));
    }
    let position = source.journal.seal();
    wait_until_filed(&source.journal, position)
        .map_err(|reason| Fault::with_code(ErrorCode::Unavailable, reason))?;
    let mut name = target.as_os_str().to_owned();
    name.push(".unfinished");
    let unfinished = PathBuf::from(name);
    let created = std::fs::create_dir(&unfinished);
    created.map_err(|error| not_created(target, &error))?;
    let copied = fill(source, &unfinished).and_then(|copied| {
        let renamed = std::fs::rename(&unfinished, target).and_then(|()| sync_parent(target));
        renamed.map_err(|error| failed(target, &error))?;
        Ok(copied)
    });
    if copied.is_err() {
        // The incomplete copy is removed; the first error is reported.
        let _ = std::fs::remove_dir_all(&unfinished);
    }
    copied
}

fn fill(source: &Source, target: &Path) -> Result<CopyStats, Fault> {
    let (from, to) = (source.data.join(DIRECTORY), target.join(DIRECTORY));
    let link = |path: &str| std::fs::hard_link(from.join(path), to.join(path));
    let copied = backup::copy(&RealDisk::new(&from), &RealDisk::new(&to), &link)
        .map_err(|error| Fault::new(error.to_string()))?;
    // The backup includes the tokens, so that a restored node accepts the same clients.
    let disk = platform::RealDisk;
    let tokens = disk.read(&source.data.join(FILE_NAME));
    if let Some(bytes) = tokens.map_err(|error| Fault::new(error.to_string()))? {
        let written = disk.write(&target.join(FILE_NAME), &bytes);
        written.map_err(|error| Fault::new(error.to_string()))?;
    }
    RealDisk::new(target)
        .sync_dir("")
        .map_err(|error| failed(target, &error))?;
    Ok(copied)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => std::fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

fn not_created(target: &Path, error: &io::Error) -> Fault {
    let parent = target.parent().unwrap_or(target).display();
    match error.kind() {
        io::ErrorKind::NotFound => Fault::with_code(
            ErrorCode::InvalidArgument,
            format!("the directory {parent} does not exist on the node's machine"),
        ),
        io::ErrorKind::PermissionDenied => Fault::with_code(
            ErrorCode::Denied,
            format!("the node's user has no permission to write to {parent}"),
        ),
        _ => failed(target, error),
    }
}

fn failed(path: &Path, error: &io::Error) -> Fault {
    Fault::new(format!("{}: {error}", path.display()))
}
