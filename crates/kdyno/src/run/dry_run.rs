//! `kdyno run --dry-run`: what would happen, and what stands in its way.

use super::progress::{duration_text, expected};
use super::settings_of;
use crate::context::{Context, Status};
use crate::show::command_text;
use kdyno_job::catalog::Catalog;
use kdyno_job::plan::Plan;
use kdyno_model::{Command, Setting, Work};
use kdyno_testbox::root::SysRoot;
use kdyno_testbox::settings::{self, SettingCheck};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Trials printed one by one before the rest is only counted.
const SHOWN_TRIALS: usize = 40;

/// Files of one setting that are printed.
const SHOWN_FILES: usize = 4;

/// Prints plan, changes, gaps and time. Ends well only when nothing stands in the way.
pub(super) fn print(
    plan: &Plan,
    catalog: &Catalog,
    context: &mut Context,
) -> anyhow::Result<Status> {
    let mut gaps = Vec::new();
    let mut text = format!(
        "{} on {}, kernel {}\n{} trials, seed {}; * is a warm-up\n",
        plan.job,
        plan.testbox,
        plan.kernel_release,
        plan.trials.len(),
        plan.seed
    );
    commands(plan, catalog, &mut text, &mut gaps)?;
    changes(plan, &mut text, &mut gaps)?;
    order(plan, &mut text)?;
    match expected(&plan.trials) {
        Some(time) => writeln!(text, "\ntakes about {}", duration_text(time))?,
        None => writeln!(
            text,
            "\nhow long it takes depends on the command; the first trials will tell"
        )?,
    }
    gaps.sort();
    gaps.dedup();
    for gap in &gaps {
        writeln!(text, "missing: {gap}")?;
    }
    context.out.write_all(text.as_bytes())?;
    context.out.flush()?;
    Ok(if gaps.is_empty() {
        Status::Done
    } else {
        Status::CannotTell
    })
}

fn commands(
    plan: &Plan,
    catalog: &Catalog,
    text: &mut String,
    gaps: &mut Vec<String>,
) -> std::fmt::Result {
    writeln!(text, "\ncommands")?;
    for ((case, variant), work) in distinct_work(plan) {
        writeln!(
            text,
            "  {case}  {variant}\n    {}",
            command_text(&work.command)
        )?;
        if work.rounds.at_most > 1 {
            writeln!(text, "    {}", rounds_text(work))?;
        }
        for (when, words) in around(work) {
            writeln!(
                text,
                "    {when}: {}",
                command_text(&Command::Argv(words.clone()))
            )?;
            gaps.extend(missing_program(words, work, catalog));
        }
        if let Command::Argv(words) = &work.command {
            gaps.extend(missing_program(words, work, catalog));
        }
    }
    Ok(())
}

fn changes(plan: &Plan, text: &mut String, gaps: &mut Vec<String>) -> std::fmt::Result {
    writeln!(text, "\nchanges on this machine, all put back at the end")?;
    let wanted = settings_of(plan);
    for setting in &wanted {
        match settings::check(&SysRoot::real(), setting) {
            Ok(checks) => {
                for check in checks.iter().take(SHOWN_FILES) {
                    writeln!(text, "  {}", change_text(setting, check))?;
                }
                if checks.len() > SHOWN_FILES {
                    let more = checks.len() - SHOWN_FILES;
                    writeln!(text, "  {}: and {more} files more", setting.key)?;
                }
                gaps.extend(checks.into_iter().filter_map(|check| {
                    let problem = check.problem?;
                    let hint = problem.hint.as_ref().map(|hint| format!("; {hint}"));
                    Some(format!("{problem}{}", hint.unwrap_or_default()))
                }));
            }
            Err(error) => {
                let hint = error.hint.as_ref().map(|hint| format!("; {hint}"));
                gaps.push(format!("{error}{}", hint.unwrap_or_default()));
            }
        }
    }
    if wanted.is_empty() {
        writeln!(text, "  none")?;
    }
    Ok(())
}

fn change_text(setting: &Setting, check: &SettingCheck) -> String {
    let path = check.path.display();
    match &check.now {
        Some(now) => format!("{path}: {now} -> {}", check.wanted),
        None => format!("{path}: {} {} for each trial", setting.key, check.wanted),
    }
}

fn order(plan: &Plan, text: &mut String) -> std::fmt::Result {
    writeln!(text, "\norder")?;
    for trial in plan.trials.iter().take(SHOWN_TRIALS) {
        let mark = if trial.warm_up { '*' } else { ' ' };
        let (index, block) = (trial.index, trial.block);
        writeln!(
            text,
            "  {index:>4}{mark} block {block:<4} {}  {}",
            trial.case.name(),
            trial.variant
        )?;
    }
    if plan.trials.len() > SHOWN_TRIALS {
        writeln!(text, "  and {} more", plan.trials.len() - SHOWN_TRIALS)?;
    }
    Ok(())
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

/// The commands around the measured one, in the order in which they are started.
fn around(work: &Work) -> impl Iterator<Item = (&'static str, &Vec<String>)> {
    let around = &work.around;
    let setup = around.setup.iter().map(|words| ("before", words));
    let server = around.server.iter().map(|s| ("beside", &s.words));
    let load = around.load.iter().map(|words| ("before", words));
    setup.chain(server).chain(load)
}

fn missing_program(words: &[String], work: &Work, catalog: &Catalog) -> Option<String> {
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
