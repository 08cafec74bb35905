//! The clocks that are read and the processor that is run on.

use std::io;
use std::mem::MaybeUninit;

use super::{Failure, Outcome};

/// Nanoseconds of the monotonic clock, whose zero means nothing.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of processor time, user and system, that all threads of this process have used.
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Binds this thread, and every thread it starts from now on, to one processor.
pub fn pin(cpu: usize) -> Outcome<()> {
    let hint = "give a number below that of the processors, as `nproc` prints it";
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(Failure::usage(format!("there is no processor {cpu}"), hint));
    }
    #[expect(unsafe_code, reason = "sched_setaffinity has no safe wrapper in std")]
    // SAFETY: the set is a plain bit field for which zero is valid, `cpu` is inside it, and the
    // call reads exactly the size that is stated.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if result == 0 {
        return Ok(());
    }
    Err(Failure::run(
        format!(
            "cannot run on processor {cpu}: {}",
            io::Error::last_os_error()
        ),
        hint,
    ))
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    #[expect(
        unsafe_code,
        reason = "std reads neither processor time nor bare nanoseconds"
    )]
    // SAFETY: the kernel fills the timespec before it is read; both clocks always exist on Linux.
    let time = unsafe {
        let result = libc::clock_gettime(clock, time.as_mut_ptr());
        assert_eq!(result, 0, "clock {clock} cannot be read");
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_advance_while_work_is_done() {
        let (time, cpu) = (monotonic_ns(), process_cpu_ns());
        let mut sum = 0u64;
        while process_cpu_ns() == cpu {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(monotonic_ns() > time);
    }

    #[test]
    fn a_processor_that_cannot_exist_is_refused() {
        assert!(pin(libc::CPU_SETSIZE as usize).is_err());
    }
}
