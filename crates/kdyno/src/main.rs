//! The kdyno binary.
fn main() {}
