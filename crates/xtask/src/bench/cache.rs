//! Fills free memory with cached files before a benchmark.
//!
//! A hypervisor that takes free memory back from a virtual machine must give every page again when
//! it is used next. On such a machine a program that writes files pays for the memory that earlier
//! programs freed: its copy into the page cache was measured at a sixth of the normal speed. With
//! memory full of cached files, new pages are those of old files, as on a server that has run for
//! a while.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};

/// Files of the builds: many, and of no use in memory while a benchmark runs.
const FILES: &str = "target";

/// Part of the memory that may stay free.
const FREE_PART: u64 = 32;

/// Reads files until little memory is free.
pub(super) fn fill() -> Result<()> {
    let total = meminfo("MemTotal")?;
    let wanted = total / FREE_PART;
    read_folder(Path::new(FILES), wanted)?;
    let free = meminfo("MemFree")?;
    eprintln!("   memory: {} of {} MiB free", free >> 20, total >> 20);
    Ok(())
}

/// Reads the files of a folder, and returns whether no more than the wanted memory is free.
fn read_folder(folder: &Path, wanted: u64) -> Result<bool> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = entry.path();
        let is_full = if kind.is_dir() {
            read_folder(&path, wanted)?
        } else if kind.is_file() {
            read_file(&path).with_context(|| path.display().to_string())?;
            meminfo("MemFree")? <= wanted
        } else {
            false
        };
        if is_full {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read_file(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut piece = vec![0; 1 << 20];
    while file.read(&mut piece)? > 0 {}
    Ok(())
}

/// Returns a size of `/proc/meminfo` in bytes.
fn meminfo(name: &str) -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    parse(&text, name).with_context(|| format!("/proc/meminfo has no {name}"))
}

fn parse(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line
        .strip_prefix(':')?
        .trim()
        .strip_suffix(" kB")?
        .parse()
        .ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_found_by_its_whole_name() {
        let text = "MemTotal:       24684420 kB\nMemFree:          312332 kB\n";
        assert_eq!(parse(text, "MemFree"), Some(312_332 * 1024));
        assert_eq!(parse(text, "Mem"), None);
        assert_eq!(parse(text, "Cached"), None);
    }
}
