//! The job language: YAML events to cases, variants and an interleaved plan; the program catalog
