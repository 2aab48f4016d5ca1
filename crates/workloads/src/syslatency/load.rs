//! The loads, each a part that goes on beside the measurement.

use super::{Options, RunError};
use crate::sys::{self, Mapping, Pin, Region, Source};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Bytes of an object that is pinned anew.
const OBJECT_BYTES: u64 = 16 << 20;

/// Whatever goes on; it ends with this process at the latest.
#[derive(Default)]
pub(super) struct Loads {
    /// Memory that is kept.
    held: Vec<Held>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Memory that is kept by its pins, by a mapping, or by both.
struct Held {
    _pin: Option<Pin>,
    region: Option<Region>,
}

impl Held {
    fn give_back(self) {
        // A mapping that stays ends with this process.
        let _ = self.region.map(Region::unmap);
    }
}

impl Loads {
    /// Begins all that the options name; memory is filled when this returns.
    pub(super) fn begin(options: &Options, notes: &mut Vec<String>) -> Result<Self, RunError> {
        let mut loads = Self::default();
        if options.idle {
            return Ok(loads);
        }
        if options.touch > 0 {
            loads.held.push(Held {
                _pin: None,
                region: Some(shared(options.touch).map_err(RunError::at("--touch"))?),
            });
        }
        if options.pin > 0 {
            loads.held.push(pinned(options.pin).map_err(pin_failed)?);
        }
        if options.lock > 0 {
            let region = shared(options.lock).map_err(RunError::at("--lock"))?;
            let pin = sys::pin(&region).map_err(pin_failed)?;
            region.lock().map_err(RunError::at("--lock: mlock"))?;
            loads.held.push(Held {
                _pin: Some(pin),
                region: Some(region),
            });
        }
        if options.shmlock > 0 {
            let held = segment(options.shmlock, notes).map_err(RunError::at("--shmlock"))?;
            loads.held.push(held);
        }
        if options.churn > 0 {
            // Once by hand, so that a refusal is told.
            drop(pinned(OBJECT_BYTES.min(options.churn)).map_err(pin_failed)?);
            let bytes = options.churn;
            loads.start("churn", move |stop| churn(bytes, stop))?;
        }
        if options.busy {
            for cpu in sys::allowed_cpus().map_err(RunError::at("--busy"))? {
                loads.start("busy", move |stop| busy(cpu, stop))?;
            }
        }
        if options.background {
            let path = options.background_path.clone();
            loads.start("background", move |stop| background(Path::new(&path), stop))?;
        }
        Ok(loads)
    }

    fn start(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> Result<(), RunError> {
        let stop = Arc::clone(&self.stop);
        let thread = std::thread::Builder::new().name(name.to_owned());
        let started = thread.spawn(move || work(&stop));
        self.threads.push(started.map_err(RunError::at(name))?);
        Ok(())
    }

    /// Ends them all.
    pub(super) fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            // A load that has panicked has ended.
            let _ = thread.join();
        }
        self.held.into_iter().for_each(Held::give_back);
    }
}

fn pin_failed(error: io::Error) -> RunError {
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM) => RunError::Refused {
            reason: format!("io_uring, which pins memory, is not to be had: {error}"),
            hint: "allow it: sysctl kernel.io_uring_disabled=0, a kernel with CONFIG_IO_URING",
        },
        Some(libc::ENOMEM) => RunError::Refused {
            reason: "so much memory must not be pinned".to_owned(),
            hint: "run as root, or raise `ulimit -l`",
        },
        _ => RunError::Failed {
            what: "pinning memory with io_uring",
            error,
        },
    }
}

/// Shared memory of a file without a name, all of it written.
fn shared(bytes: u64) -> io::Result<Region> {
    let file = sys::memory_file()?;
    file.set_len(bytes)?;
    Region::map(
        bytes,
        Mapping {
            populate: true,
            ..Mapping::of(Source::Shared {
                file: &file,
                offset: 0,
                writable: true,
            })
        },
    )
}

/// Shared memory that is pinned and, like a device's, mapped by no process: only the pins keep it.
fn pinned(bytes: u64) -> io::Result<Held> {
    let region = shared(bytes)?;
    let pin = sys::pin(&region)?;
    region.unmap()?;
    Ok(Held {
        _pin: Some(pin),
        region: None,
    })
}

/// A segment that is locked as a whole, and pinned where the kernel can pin one.
fn segment(bytes: u64, notes: &mut Vec<String>) -> io::Result<Held> {
    let region = Region::map(
        bytes,
        Mapping {
            populate: true,
            ..Mapping::of(Source::SystemV)
        },
    )?;
    region.lock_segment()?;
    let pin = sys::pin(&region);
    if let Err(error) = &pin {
        notes.push(format!("the segment is locked and not pinned: {error}"));
    }
    Ok(Held {
        _pin: pin.ok(),
        region: Some(region),
    })
}

/// Pins a new object, and gives the oldest back once there are enough.
fn churn(bytes: u64, stop: &AtomicBool) {
    let object = OBJECT_BYTES.min(bytes);
    let mut objects: VecDeque<Held> = VecDeque::new();
    while !stop.load(Ordering::Relaxed) {
        if (objects.len() as u64 + 1) * object > bytes
            && let Some(oldest) = objects.pop_front()
        {
            oldest.give_back();
        }
        match pinned(object) {
            Ok(held) => objects.push_back(held),
            // Under pressure there may be no memory for a moment.
            Err(_) => std::thread::yield_now(),
        }
    }
    objects.into_iter().for_each(Held::give_back);
}

/// Uses a CPU up.
fn busy(cpu: usize, stop: &AtomicBool) {
    // Anywhere else it is busy as well.
    let _ = sys::run_on(&[cpu]);
    while !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// Reads all files of one file system below a directory, again and again.
fn background(path: &Path, stop: &AtomicBool) {
    let Ok(device) = fs::metadata(path).map(|found| found.dev()) else {
        return;
    };
    while !stop.load(Ordering::Relaxed) {
        let mut waiting = vec![path.to_owned()];
        while let Some(directory) = waiting.pop() {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            for entry in entries {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(found) = entry.metadata() else {
                    continue;
                };
                if found.is_dir() && found.dev() == device {
                    waiting.push(entry.path());
                } else if found.is_file() && found.len() > 0 {
                    read_whole(&entry.path(), found.len());
                }
            }
        }
    }
}

/// Maps a file with all its pages, as the original benchmark does.
fn read_whole(path: &Path, bytes: u64) {
    let Ok(file) = fs::File::open(path) else {
        return;
    };
    // A file that cannot be mapped is no load.
    let _ = Region::map(bytes, Mapping::read_whole(&file, 0)).and_then(Region::unmap);
}
