//! The local testbox: facts, settings and undo journal, guardian, monitors, runner
