//! The quorum floor: three processes, and an answer when two of them have synced.
//!
//! ```text
//!              frames                 bytes                    write, fdatasync
//!  client ───────────────▸ leader ─────────────▸ follower 1 ─────────────────▸ file
//!  client ◂─────────────── leader ◂───────────── follower 1
//!              echoes         │     u64 position
//!                             ├───▸ follower 2 (the same)
//!                             └───▸ file: write, fdatasync, on a thread of its own
//! ```
//!
//! The log is the concatenation of all frames; a position in it counts bytes from 0. A node
//! acknowledges the position up to which its own file is synced. The second largest of the three
//! positions is committed, and a frame is echoed when it is committed as a whole. Every node
//! commits in groups: bytes that arrive during a sync share the next one. Nothing lingers, and
//! nothing is elected, compared or repaired: a node that fails ends the floor.

mod follower;
mod leader;
mod log;
mod peer;
mod waiting;

use std::process::Command;

use contract::{
    Address, Counts, Failure, Flags, Outcome, Serve, ZeroedFile, own_program, run_node,
};

use crate::socket::{Listener, Socket};

pub(crate) use follower::follow;

/// Followers of the leader.
const FOLLOWERS: usize = 2;

/// Serves as the leader, with two followers as processes of its own, until the parent goes.
pub(crate) fn serve(mut flags: Flags) -> Outcome<()> {
    let options = Serve::take(&mut flags)?;
    let dir: String = flags.require("dir")?;
    let file_mib = flags.number("file-mib", 256, 1, 64 << 10)?;
    let threads = flags.number("follower-threads", 1, 1, 2)?;
    let ahead = flags.number("ahead", 1, 1, 1024)? as usize;
    let counts = Counts::take(&mut flags)?;
    flags.finish()?;
    let path = ZeroedFile::path_in(dir.as_ref());
    let listener = Listener::bind(&options.listen)?;
    let mut files = listener.files();
    files.push(path.clone());

    run_node("leader", files, &counts, |children, ready| {
        let file = ZeroedFile::create(path, file_mib << 20)?;
        let mut followers = Vec::with_capacity(FOLLOWERS);
        for _ in 0..FOLLOWERS {
            let mut command = Command::new(own_program()?);
            command.args(["quorum", "follow", "--dir", &dir]);
            command.args(["--file-mib", &file_mib.to_string()]);
            command.args(["--threads", &threads.to_string()]);
            if let Some(path) = counts.path() {
                command.arg("--counts").arg(path);
            }
            followers.push(connect(&children.start(command)?)?);
        }
        ready(&listener.address()?)?;
        leader::lead(&listener, followers, file, ahead, counts.clone()).map_err(|error| {
            Failure::run(
                format!("cannot go on: {error}"),
                "does a follower still run, and is `ulimit -n` above the connections?",
            )
        })
    })
}

fn connect(address: &str) -> Outcome<Socket> {
    let address: Address = address
        .parse()
        .map_err(|_| Failure::run(format!("a follower listens at {address:?}"), "try again"))?;
    Socket::connect(&address)
}
