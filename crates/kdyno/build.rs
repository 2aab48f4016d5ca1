//! Links the binary at a fixed address.
//!
//! A position-independent one of this size has some twenty thousand relocations, which touch
//! ninety pages before `main`: page faults that a workload would report as its own.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
