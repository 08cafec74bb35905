//! The servers as processes.

use std::process::{Command, Stdio};

/// Its stdin has ended before it begins, which is a reason to end well, and there is no directory for
/// its file, which is not: many times over, for one thread reads and another one fills the file.
#[test]
fn a_server_that_cannot_begin_says_so_whatever_its_stdin() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floors"));
    command.args(["durable-echo", "serve", "--listen", "127.0.0.1:0"]);
    command.args(["--dir", "/nowhere"]).stdin(Stdio::null());
    for round in 0..200 {
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "round {round}: {said}");
        assert!(said.contains("cannot fill /nowhere/"), "{said}");
        assert!(said.contains("hint:"), "{said}");
        assert!(output.stdout.is_empty(), "round {round}");
    }
}

#[test]
fn a_server_ends_well_with_its_stdin() {
    let dir = std::env::temp_dir().join(format!("floors-serve-{}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_floors"));
    command.args(["durable-echo", "serve", "--listen", "127.0.0.1:0"]);
    command.args(["--file-mib", "1", "--dir"]).arg(&dir);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let left = std::fs::read_dir(&dir).unwrap().count();
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(left, 0);
}
