//! The files that make a data directory a member's: its identity and the cluster's key.

use std::io::Write;
use std::path::{Path, PathBuf};

use cluster::{Addresses, Key};
use config::{Config, HostPort};
use console::{Exit, Failure};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use super::report_file;
use crate::journal::DIRECTORY;

/// File of the key in the data directory.
pub const KEY_FILE: &str = "cluster.key";

/// File of the identity in the data directory.
const FILE: &str = "cluster.json";

/// Random bytes of a key.
const KEY_SIZE: usize = 32;

/// A member's identity.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Identity {
    /// The cluster: the journal id of its founder, 16 hexadecimal digits.
    cluster: String,
    /// The id of this node.
    pub(crate) id: u64,
    /// True while the node leaves the cluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_leaving: bool,
}

impl Identity {
    pub(crate) fn new(cluster: u64, id: u64) -> Identity {
        Identity {
            cluster: format!("{cluster:016x}"),
            id,
            is_leaving: false,
        }
    }

    /// Returns the cluster as a number.
    pub(crate) fn cluster(&self) -> Option<u64> {
        u64::from_str_radix(&self.cluster, 16).ok()
    }

    /// Writes the identity into a data directory, at once or not at all.
    pub(crate) fn write(&self, data: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        write_file(data, FILE, format!("{text}\n").as_bytes())
    }
}

/// Makes a data directory that of a node alone: removes the key of its cluster, the reports of the
/// members, and then its identity.
pub(super) fn remove(data: &Path) -> Result<(), Failure> {
    for name in [KEY_FILE, report_file::NAME, FILE] {
        let path = data.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("cannot remove {}: {error}", path.display());
                return Err(Failure::new(Exit::Failed, message));
            }
            _ => {}
        }
    }
    let synced = std::fs::File::open(data).and_then(|it| it.sync_all());
    synced.map_err(|error| {
        let message = format!("cannot sync {}: {error}", data.display());
        Failure::new(Exit::Failed, message)
    })
}

/// Puts the identity, which was written into a journal that became that of the node by one rename, at
/// its place in the data directory. Without one there, nothing changes.
fn adopt(data: &Path, journal: &Path) -> Result<(), Failure> {
    match std::fs::rename(journal.join(FILE), data.join(FILE)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(unreadable(&journal.join(FILE), error))
        }
        _ => Ok(()),
    }
}

/// Returns the identity of a data directory; `None` if it is not a member's.
pub(crate) fn identity(data: &Path) -> Result<Option<Identity>, Failure> {
    adopt(data, &data.join(DIRECTORY))?;
    let path = data.join(FILE);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&path, error)),
    };
    let identity: Identity =
        serde_json::from_slice(&text).map_err(|error| unreadable(&path, error))?;
    match identity.cluster() {
        Some(_) => Ok(Some(identity)),
        None => Err(unreadable(&path, "`cluster` is not a hexadecimal number")),
    }
}

/// Returns the path of the cluster's key.
pub(super) fn key_path(config: &Config) -> PathBuf {
    let default = || config.data.dir.join(KEY_FILE);
    config.cluster.key.clone().unwrap_or_else(default)
}

/// Reads the cluster's key.
pub(super) fn read_key(path: &Path) -> Result<Key, Failure> {
    let hint = "copy the key of the cluster from the node that began it: --cluster-key FILE";
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, error).hint(hint))?;
    let bytes = decode_hex(text.trim());
    let bytes = bytes.ok_or_else(|| unreadable(path, "not hexadecimal digits").hint(hint))?;
    Key::new(&bytes).map_err(|error| unreadable(path, error).hint(hint))
}

/// Copies the key into a data directory, so that the next start finds it.
pub(super) fn keep_key(from: &Path, data: &Path) -> Result<(), Failure> {
    let bytes = std::fs::read(from).map_err(|error| unreadable(from, error))?;
    write_file(data, KEY_FILE, &bytes)
}

/// Makes a key in a data directory, unless there is one.
pub(super) fn make_key(data: &Path) -> Result<(), Failure> {
    if data.join(KEY_FILE).exists() {
        return Ok(());
    }
    let mut bytes = [0; KEY_SIZE];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Failure::new(Exit::Failed, "the system has no random bytes"))?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    write_file(data, KEY_FILE, format!("{hex}\n").as_bytes())
}

/// Returns the addresses at which others reach this node.
pub(super) fn addresses(config: &Config) -> Result<Addresses, Failure> {
    let text = |it: &Option<HostPort>| it.as_ref().map(HostPort::to_string);
    let cluster = &config.cluster;
    let link = text(&cluster.advertised).or_else(|| text(&cluster.listen));
    let link = link.ok_or_else(|| {
        Failure::new(
            Exit::Usage,
            "`cluster.listen` is `none`, but this node is a member",
        )
        .hint("choose an address for the other members: --cluster-listen HOST:PORT")
    })?;
    let name = rustix::system::uname();
    let addresses = Addresses {
        name: name.nodename().to_string_lossy().into_owned(),
        link,
        kafka: text(&config.kafka.advertised).or_else(|| text(&config.kafka.listen)),
        http: text(&config.http.listen),
        native: text(&config.native.listen),
    };
    let named = [
        ("cluster.listen", Some(&addresses.link)),
        ("kafka.listen", addresses.kafka.as_ref()),
        ("http.listen", addresses.http.as_ref()),
        ("native.listen", addresses.native.as_ref()),
    ];
    for (key, address) in named {
        if address.is_some_and(|it| it.ends_with(":0")) {
            let message = format!("`{key}`: a member needs a port that stays the same, not 0");
            return Err(Failure::new(Exit::Usage, message));
        }
    }
    Ok(addresses)
}

/// Writes a file for the owner only, with a rename at the end.
pub(super) fn write_file(data: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    use std::os::unix::fs::OpenOptionsExt;
    let write = || {
        let unfinished = data.join(format!("{name}.new"));
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = file.open(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&unfinished, data.join(name))?;
        std::fs::File::open(data)?.sync_all()
    };
    write().map_err(|error: std::io::Error| {
        let path = data.join(name);
        Failure::new(
            Exit::Failed,
            format!("cannot write {}: {error}", path.display()),
        )
    })
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::new(
        Exit::Failed,
        format!("cannot read {}: {error}", path.display()),
    )
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits
        .map(|pair| byte(pair).filter(|_| pair.len() == 2))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_and_key_are_read_as_written() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(identity(dir.path()).unwrap(), None);
        let written = Identity::new(0xC1, 3);
        written.write(dir.path()).unwrap();
        assert_eq!(identity(dir.path()).unwrap(), Some(written));
        make_key(dir.path()).unwrap();
        let path = dir.path().join(KEY_FILE);
        let first = std::fs::read(&path).unwrap();
        make_key(dir.path()).unwrap();
        assert_eq!(
            std::fs::read(&path).unwrap(),
            first,
            "a key is never replaced"
        );
        read_key(&path).unwrap();
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn identity_of_an_interrupted_join_is_found_in_the_journal() {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join(DIRECTORY);
        std::fs::create_dir(&journal).unwrap();
        let written = Identity::new(0xC1, 3);
        written.write(&journal).unwrap();
        assert_eq!(identity(dir.path()).unwrap(), Some(written.clone()));
        assert!(!journal.join(FILE).exists());
        assert_eq!(identity(dir.path()).unwrap(), Some(written));
    }

    #[test]
    fn damaged_files_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "{\"cluster\":\"x\",\"id\":1}").unwrap();
        let refused = identity(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("cluster.json"), "{refused}");
        let path = dir.path().join(KEY_FILE);
        for text in ["", "0", "zz", "00ff", "\u{e9}\u{e9}"] {
            std::fs::write(&path, text).unwrap();
            assert!(read_key(&path).is_err(), "{text:?}");
        }
    }
}
