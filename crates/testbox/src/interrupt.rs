//! Ctrl-C and its relatives as something that can be asked and polled.

use kdyno_model::TestboxError;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user, the terminal or the system asked us to stop.
///
/// Once asked it stays so: everything unwinds and puts the machine back. A second signal ends the
/// process at once, and its guardian puts the machine back.
#[derive(Clone, Debug)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    readable: Arc<UnixStream>,
}

impl Interrupt {
    /// Takes over SIGINT, SIGTERM and SIGHUP for this process.
    ///
    /// # Errors
    /// When the signals cannot be taken over.
    pub fn install() -> Result<Self, TestboxError> {
        let cannot =
            |error: std::io::Error| TestboxError::new(format!("cannot handle signals: {error}"));
        let requested = Arc::new(AtomicBool::new(false));
        let (readable, writable) = UnixStream::pair().map_err(cannot)?;
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // The order matters: the first signal finds the flag unset and passes.
            let again = Arc::clone(&requested);
            signal_hook::flag::register_conditional_shutdown(signal, 130, again).map_err(cannot)?;
            signal_hook::flag::register(signal, Arc::clone(&requested)).map_err(cannot)?;
            let writable = writable.try_clone().map_err(cannot)?;
            signal_hook::low_level::pipe::register(signal, writable).map_err(cannot)?;
        }
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
