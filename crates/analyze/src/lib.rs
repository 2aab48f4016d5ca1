//! Compare, tables and renderers; pure, no I/O
