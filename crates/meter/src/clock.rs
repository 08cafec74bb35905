//! The clocks of the machine: monotonic time, CPU time of any process, and the wall date.
//!
//! Readings of the real clocks are the purpose of this crate, and all of them go through this
//! module. All values are nanoseconds of kernel clocks. The monotonic clock is the machine's, so
//! readings of different processes can be compared.

use std::io;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::DateTime;

/// The largest process id Linux gives out (`PID_MAX_LIMIT`).
const PID_MAX: u32 = 4 * 1024 * 1024;

/// Nanoseconds of the machine's monotonic clock: comparable between processes, not between boots.
///
/// # Panics
/// Never on Linux: the monotonic clock always exists.
#[must_use]
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).expect("the monotonic clock exists")
}

/// Milliseconds since 1970-01-01 UTC, as records carry them.
///
/// # Panics
/// Never on Linux: the wall clock always exists.
#[must_use]
pub fn unix_ms() -> i64 {
    let ns = read(libc::CLOCK_REALTIME).expect("the wall clock exists");
    (ns / 1_000_000).cast_signed()
}

/// Returns the CPU time of this process so far: all threads, user and system.
///
/// # Panics
/// Never on Linux: a process can always read its own clock.
#[must_use]
pub fn own_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID).expect("the own CPU clock exists")
}

/// The CPU-time clock of a running process.
#[derive(Debug, Clone, Copy)]
pub struct CpuClock {
    id: libc::clockid_t,
}

impl CpuClock {
    /// Opens the clock of a process.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn of(pid: u32) -> io::Result<Self> {
        // A clock id contains the pid in its upper bits. 0 would select this process, and a pid
        // above the kernel's limit would select another clock.
        if pid == 0 || pid > PID_MAX {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        let pid = pid.cast_signed();
        let mut id: libc::clockid_t = 0;
        #[expect(
            unsafe_code,
            reason = "POSIX offers foreign CPU clocks only as a C function"
        )]
        // SAFETY: `id` is a valid place for the result; the call keeps no pointer.
        let code = unsafe { libc::clock_getcpuclockid(pid, &raw mut id) };
        if code == 0 {
            Ok(Self { id })
        } else {
            Err(io::Error::from_raw_os_error(code))
        }
    }

    /// Returns the CPU time used so far: all threads, user and system.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn read_ns(self) -> io::Result<u64> {
        read(self.id)
    }
}

/// Returns the smallest step in which a CPU clock was seen to advance, in nanoseconds. It is the
/// kernel's stated resolution, or more where that is not true (some sandboxes count in scheduler
/// ticks). Found once per process by spinning for at most 50 ms.
pub fn cpu_step_ns() -> u64 {
    static STEP: OnceLock<u64> = OnceLock::new();
    *STEP.get_or_init(|| {
        let deadline = now_ns() + 50_000_000;
        let mut last = own_cpu_ns();
        let mut smallest = 50_000_000;
        let mut steps = 0;
        while steps < 100 && now_ns() < deadline {
            let next = own_cpu_ns();
            if next > last {
                smallest = smallest.min(next - last);
                steps += 1;
            }
            last = next;
        }
        smallest
    })
}

fn read(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    #[expect(unsafe_code, reason = "the standard library reads no CPU clocks")]
    // SAFETY: `time` is a valid place for the result; the call keeps no pointer.
    let code = unsafe { libc::clock_gettime(clock, &raw mut time) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// A moment of wall time in UTC, to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utc {
    unix_s: u64,
}

impl Utc {
    /// Returns the current moment.
    #[must_use]
    pub fn now() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a report carries the date it was made"
        )]
        let now = SystemTime::now();
        Self::from_unix_s(
            now.duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        )
    }

    /// Returns the moment `unix_s` seconds after 1970-01-01 00:00:00.
    #[must_use]
    pub fn from_unix_s(unix_s: u64) -> Self {
        Self { unix_s }
    }

    /// Formats the moment as `2026-06-26 08:01:47`.
    #[must_use]
    pub fn display(self) -> String {
        self.moment().format("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// Formats the moment as `20260626T080147Z`, which sorts by time in file names.
    #[must_use]
    pub fn compact(self) -> String {
        self.moment().format("%Y%m%dT%H%M%SZ").to_string()
    }

    fn moment(self) -> DateTime<chrono::Utc> {
        let seconds = i64::try_from(self.unix_s).ok();
        let moment = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
        moment.unwrap_or(DateTime::<chrono::Utc>::MAX_UTC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, expected) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_782_460_907, "2026-06-26 08:01:47"),
            (4_107_542_399, "2100-02-28 23:59:59"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(Utc::from_unix_s(unix_s).display(), expected);
        }
        assert_eq!(
            Utc::from_unix_s(1_782_460_907).compact(),
            "20260626T080147Z"
        );
    }

    #[test]
    fn cpu_clock_of_another_process_is_readable_until_it_ends() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("a shell");
        let clock = CpuClock::of(child.id()).unwrap();
        let before = clock.read_ns().unwrap();
        // The child does nothing but burn CPU, so its clock must pass any mark.
        while clock.read_ns().unwrap() < before + 1_000_000 {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(clock.read_ns().is_err());
        assert!(CpuClock::of(child.id()).is_err());
    }

    #[test]
    fn an_impossible_pid_is_not_our_own_process() {
        for pid in [0, PID_MAX + 1, u32::MAX >> 1, u32::MAX] {
            assert_eq!(
                CpuClock::of(pid).unwrap_err().raw_os_error(),
                Some(libc::ESRCH),
                "{pid}"
            );
        }
    }

    #[test]
    fn the_own_clocks_advance() {
        let (wall, cpu) = (now_ns(), own_cpu_ns());
        while own_cpu_ns() == cpu {}
        assert!(now_ns() > wall);
        assert!(cpu_step_ns() > 0);
    }
}
