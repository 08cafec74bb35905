//! What a process wrote, as the kernel counts it.

use std::fs;

/// Bytes that a process caused to be written to the disk so far: `write_bytes` of `/proc/PID/io`
/// (proc(5)). `None` when it has ended or may not be asked.
#[must_use]
pub fn written_bytes(pid: u32) -> Option<u64> {
    parse(&fs::read_to_string(format!("/proc/{pid}/io")).ok()?)
}

fn parse(io: &str) -> Option<u64> {
    let line = io
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_that_reached_the_disk_are_told_from_those_of_system_calls() {
        let io = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n";
        assert_eq!(parse(io), Some(4096));
        assert_eq!(parse("rchar: 1\n"), None);
        assert!(written_bytes(std::process::id()).is_some());
    }
}
