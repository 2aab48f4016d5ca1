//! Ctrl-C and its relatives as something that can be asked and polled.

use crate::sys;
use kdyno_model::TestboxError;
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whether the user, the terminal or the system asked us to stop.
///
/// Once asked it stays so: everything unwinds and puts the machine back. A second signal a moment
/// later ends the process at once, and its guardian puts the machine back. Signals that come
/// together count once: timeout(1) sends one to the process and one to its group.
#[derive(Clone, Debug)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    readable: Arc<UnixStream>,
}

impl Interrupt {
    /// Takes over SIGINT, SIGTERM and SIGHUP for this process, except those that it was started
    /// to ignore.
    ///
    /// # Errors
    /// When the signals cannot be taken over.
    pub fn install() -> Result<Self, TestboxError> {
        let cannot =
            |error: std::io::Error| TestboxError::new(format!("cannot handle signals: {error}"));
        let requested = Arc::new(AtomicBool::new(false));
        let (readable, writable) = UnixStream::pair().map_err(cannot)?;
        let (watched, again) = UnixStream::pair().map_err(cannot)?;
        let heard = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
        for signal in heard.into_iter().filter(|signal| !sys::is_ignored(*signal)) {
            signal_hook::flag::register(signal, Arc::clone(&requested)).map_err(cannot)?;
            for pipe in [&writable, &again] {
                let pipe = pipe.try_clone().map_err(cannot)?;
                signal_hook::low_level::pipe::register(signal, pipe).map_err(cannot)?;
            }
        }
        std::thread::Builder::new()
            .name("kdyno-interrupt".to_owned())
            .spawn(move || end_at_the_second(watched))
            .map_err(cannot)?;
        Ok(Self {
            requested,
            readable: Arc::new(readable),
        })
    }

    /// Whether we were asked to stop.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// A descriptor that becomes readable then, and stays so.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.readable.as_raw_fd()
    }
}

/// Signals closer together than this are one wish.
const TOGETHER: Duration = Duration::from_millis(300);

/// Ends the process when a signal follows the first one after a moment: it cannot unwind.
fn end_at_the_second(mut signals: impl Read) {
    let mut first = None;
    while let Ok(1) = signals.read(&mut [0]) {
        let first = *first.get_or_insert_with(Instant::now);
        if first.elapsed() > TOGETHER {
            std::process::exit(INTERRUPTED);
        }
    }
}

/// The exit status of a process that the user ended, as shells have it for SIGINT.
const INTERRUPTED: i32 = 130;
