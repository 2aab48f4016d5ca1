//! `kdyno restore`: the last resort after a crash of kdyno and of its guardian.

use crate::context::{Context, Status};
use kdyno_model::{Recovery, Testbox};
use kdyno_testbox::{LocalOptions, LocalTestbox, root::SysRoot, state_dir};

/// Undoes what the journals of dead runs say.
pub fn command(context: &mut Context) -> anyhow::Result<Status> {
    let mut testbox = LocalTestbox::new(LocalOptions {
        root: SysRoot::real(),
        state_dir: state_dir(),
        program: crate::run::running_image(),
        name: None,
        interrupt: None,
    })?;
    let recovery = testbox.recover()?;
    let lines = describe(&recovery);
    if kdyno_testbox::root_has_something_to_restore() {
        context.note("a run of root left something to restore: run `kdyno restore` as root");
    }
    if lines.is_empty() {
        writeln!(context.out, "nothing to restore")?;
    }
    for line in lines {
        writeln!(context.out, "{line}")?;
    }
    context.out.flush()?;
    Ok(Status::Done)
}

/// What a recovery did, a line each.
pub fn describe(recovery: &Recovery) -> Vec<String> {
    let restored = recovery
        .restored
        .iter()
        .map(|what| format!("restored {what}"));
    let removed = recovery
        .removed
        .iter()
        .map(|what| format!("removed {what}"));
    let left = recovery
        .left_alone
        .iter()
        .map(|what| format!("left alone {what} (somebody else changed it meanwhile)"));
    restored.chain(removed).chain(left).collect()
}
