//! When a program ends: a server with its parent, a load generator in time, both tidily.

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process;
use std::thread;
use std::time::Duration;

use super::{Failure, Outcome};

/// Ends this process with 0, having removed `files`, when stdin reaches its end or SIGTERM or
/// SIGINT arrives. Call it before any other thread starts, for they inherit the signal mask, and
/// when nothing is left that could fail: a stdin that has ended would hide it.
pub fn end_with_parent(files: Vec<PathBuf>) {
    end_with_signal(files.clone());
    end_with_input(files);
}

/// The part of [`end_with_parent`] for a server that first has something to do that takes time:
/// before any other thread starts.
pub fn end_with_signal(files: Vec<PathBuf>) {
    end_with_signal_after(files, || ());
}

/// Like [`end_with_signal`]; calls `first` before the files are removed.
pub(super) fn end_with_signal_after(files: Vec<PathBuf>, first: impl FnOnce() + Send + 'static) {
    on_signal(move || {
        first();
        end(&files, 0)
    });
}

/// The other part: when that is done.
pub fn end_with_input(files: Vec<PathBuf>) {
    end_with_input_after(files, || ());
}

/// Like [`end_with_input`]; calls `first` before the files are removed.
pub(super) fn end_with_input_after(files: Vec<PathBuf>, first: impl FnOnce() + Send + 'static) {
    thread::spawn(move || {
        wait_for_end(&mut io::stdin().lock());
        first();
        end(&files, 0)
    });
}

/// Removes `files` and ends this process with 1 when SIGTERM or SIGINT arrives before it is done.
/// Call it before any other thread starts, for they inherit the signal mask.
pub fn remove_when_stopped(files: Vec<PathBuf>) {
    on_signal(move || end(&files, 1));
}

/// Removes `files` and ends this process with 1 when it has not ended within `patience`.
pub fn limit(patience: Duration, files: Vec<PathBuf>) {
    thread::spawn(move || {
        thread::sleep(patience);
        let _ = writeln!(
            io::stderr(),
            "the run did not end within {patience:?}\nhint: is the server still answering?"
        );
        end(&files, 1)
    });
}

/// Tells the parent that the server answers at `address`.
pub fn announce(address: &impl std::fmt::Display) -> Outcome<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "READY {address}")
        .and_then(|()| out.flush())
        .map_err(|error| Failure::run(format!("stdout: {error}"), "keep stdout open"))
}

/// Reads and ignores what comes until the input ends or fails.
fn wait_for_end(input: &mut impl Read) {
    let mut ignored = [0; 4096];
    loop {
        match input.read(&mut ignored) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn end(files: &[PathBuf], code: i32) -> ! {
    for file in files {
        let _ = fs::remove_file(file);
    }
    process::exit(code)
}

fn on_signal(then: impl FnOnce() + Send + 'static) {
    #[expect(unsafe_code, reason = "std has no signals")]
    // SAFETY: the set lives on this stack and is initialised before it is used.
    let set = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGTERM);
        libc::sigaddset(&mut set, libc::SIGINT);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    };
    thread::spawn(move || {
        let mut signal = 0;
        #[expect(unsafe_code, reason = "std has no signals")]
        // SAFETY: both references are valid for the call, and the set is blocked in every thread.
        let result = unsafe { libc::sigwait(&set, &mut signal) };
        if result == 0 {
            then();
        }
    });
}
