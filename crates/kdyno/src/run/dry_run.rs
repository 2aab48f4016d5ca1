//! `kdyno run --dry-run`: what would happen, and what stands in its way.

use super::progress::{duration_text, expected};
use super::settings_of;
use crate::context::{Context, Status};
use crate::show::command_text;
use kdyno_job::catalog::Catalog;
use kdyno_job::plan::Plan;
use kdyno_model::{Command, Work};
use kdyno_testbox::root::SysRoot;
use kdyno_testbox::settings;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Trials printed one by one before the rest is only counted.
const SHOWN_TRIALS: usize = 40;

/// Prints plan, changes, gaps and time. Ends well only when nothing stands in the way.
pub(super) fn print(
    plan: &Plan,
    catalog: &Catalog,
    context: &mut Context,
) -> anyhow::Result<Status> {
    let mut gaps = Vec::new();
    let out = &mut context.out;
    writeln!(
        out,
        "{} on {}, kernel {}",
        plan.job, plan.testbox, plan.kernel_release
    )?;
    writeln!(
        out,
        "{} trials, seed {}; * is a warm-up",
        plan.trials.len(),
        plan.seed
    )?;
    writeln!(out, "\ncommands")?;
    for ((case, variant), work) in distinct_work(plan) {
        writeln!(
            out,
            "  {case}  {variant}\n    {}",
            command_text(&work.command)
        )?;
        if work.rounds.at_most > 1 {
            writeln!(out, "    {}", rounds_text(work))?;
        }
        gaps.extend(missing_program(work, catalog));
    }
    writeln!(out, "\nchanges on this machine, all put back at the end")?;
    let wanted = settings_of(plan);
    for setting in &wanted {
        match settings::check(&SysRoot::real(), setting) {
            Ok(check) => {
                writeln!(
                    out,
                    "  {}: {} -> {}",
                    check.path.display(),
                    check.now,
                    check.wanted
                )?;
                if let Some(problem) = check.problem {
                    let hint = problem
                        .hint
                        .as_ref()
                        .map(|hint| format!("; {hint}"))
                        .unwrap_or_default();
                    gaps.push(format!("{problem}{hint}"));
                }
            }
            Err(error) => gaps.push(error.to_string()),
        }
    }
    if wanted.is_empty() {
        writeln!(out, "  none")?;
    }
    writeln!(out, "\norder")?;
    for trial in plan.trials.iter().take(SHOWN_TRIALS) {
        let mark = if trial.warm_up { '*' } else { ' ' };
        writeln!(
            out,
            "  {:>4}{mark} block {:<4} {}  {}",
            trial.index,
            trial.block,
            trial.case.name(),
            trial.variant
        )?;
    }
    if plan.trials.len() > SHOWN_TRIALS {
        writeln!(out, "  and {} more", plan.trials.len() - SHOWN_TRIALS)?;
    }
    match expected(&plan.trials) {
        Some(time) => writeln!(out, "\ntakes about {}", duration_text(time))?,
        None => writeln!(
            out,
            "\nhow long it takes depends on the command; the first trials will tell"
        )?,
    }
    gaps.sort();
    gaps.dedup();
    for gap in &gaps {
        writeln!(out, "missing: {gap}")?;
    }
    out.flush()?;
    Ok(if gaps.is_empty() {
        Status::Done
    } else {
        Status::CannotTell
    })
}

fn distinct_work(plan: &Plan) -> BTreeMap<(String, String), &Work> {
    let key = |trial: &kdyno_model::Trial| (trial.case.name(), trial.variant.to_string());
    plan.trials
        .iter()
        .map(|trial| (key(trial), &trial.work))
        .collect()
}

fn rounds_text(work: &Work) -> String {
    match work.rounds.until_ms {
        Some(ms) => format!(
            "again and again for {} s, at most {} times",
            ms / 1000,
            work.rounds.at_most
        ),
        None => format!("{} times", work.rounds.at_most),
    }
}

fn missing_program(work: &Work, catalog: &Catalog) -> Option<String> {
    let Command::Argv(words) = &work.command else {
        return None;
    };
    let program = words.first()?;
    if is_executable(program, work) {
        return None;
    }
    let tool = catalog
        .get(&work.program)
        .and_then(|entry| entry.tool.as_ref());
    let hint = tool
        .map(|tool| format!("; {}", tool.hint))
        .unwrap_or_default();
    Some(format!("the program `{program}`{hint}"))
}

/// Looks a program up as execvp does.
fn is_executable(program: &str, work: &Work) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let fine = |path: &Path| {
        path.metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        let base = work
            .directory
            .as_ref()
            .map(PathBuf::from)
            .unwrap_or_default();
        return fine(&base.join(program));
    }
    let path = work
        .environment
        .get("PATH")
        .map(std::ffi::OsString::from)
        .or_else(|| std::env::var_os("PATH"));
    path.is_some_and(|path| std::env::split_paths(&path).any(|dir| fine(&dir.join(program))))
}
