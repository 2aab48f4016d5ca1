//! The run directory: format version, writer, reader, verify
