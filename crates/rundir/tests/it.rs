//! Plans and runs on a real file system.

#[path = "it/damage.rs"]
mod damage;
#[path = "it/full.rs"]
mod full;
#[path = "it/import.rs"]
mod import;
#[path = "it/listing.rs"]
mod listing;
#[path = "it/roundtrip.rs"]
mod roundtrip;
#[path = "it/sample.rs"]
mod sample;
