//! The index over run directories: portable SQL behind a synchronous face
