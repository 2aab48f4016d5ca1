//! `--aa`: how often the base differed from itself, over every plan that has a control.

use super::{comparison_of_plan, read_plan};
use crate::cli::CompareArgs;
use crate::context::{Context, Status};
use crate::index;
use kdyno_analyze::comparison::ControlCheck;
use kdyno_analyze::noise::NoiseMemory;
use kdyno_job::plan::Plan;
use kdyno_stats::counts::clopper_pearson;
use std::fmt::Write as _;

/// Level of the interval of a share.
const LEVEL: f64 = 0.95;

/// Prints one line per plan with a control, then the shares over all of them. Words choose plans
/// by their ids, testboxes or jobs.
pub(super) fn command(args: &CompareArgs, context: &mut Context) -> anyhow::Result<Status> {
    let mut out = String::new();
    let (mut headline, mut other) = ((0, 0), (0, 0));
    for plan in plans_with_control(&args.select, context)? {
        let rows = index::rows_of_plan(plan.id, context)?;
        let history = if args.no_history {
            NoiseMemory::default()
        } else {
            index::noise_memory(context, &rows)?
        };
        let comparison = comparison_of_plan(&rows, &plan, history);
        for table in &comparison.tables {
            for check in &table.controls {
                out.push_str(&line(&plan.id.short(), &table.name(), check));
                add(&mut headline, check.headline);
                add(&mut other, check.other);
            }
        }
    }
    if out.is_empty() {
        context.note("no plan has an A/A control; `kdyno run --aa JOB.yaml` makes one");
        return Ok(Status::CannotTell);
    }
    let _ = writeln!(out, "\nheadline metrics  {}", share(headline));
    let _ = writeln!(out, "other metrics     {}", share(other));
    out.push_str("by chance 5 % of unchanged metrics differ at p <= 0.05\n");
    context.out.write_all(out.as_bytes())?;
    context.out.flush()?;
    Ok(Status::Done)
}

fn plans_with_control(words: &[String], context: &mut Context) -> anyhow::Result<Vec<Plan>> {
    let home = context.home()?;
    let mut plans = Vec::new();
    for dir in home.plans()?.entries {
        match read_plan(&home, dir.id) {
            Ok(plan) => plans.push(plan),
            Err(error) => context.note(&format!("left out: {error}")),
        }
    }
    let named = |plan: &Plan| {
        let names = [plan.id.short(), plan.testbox.clone(), plan.job.clone()];
        words.is_empty() || words.iter().any(|word| names.contains(word))
    };
    Ok(plans
        .into_iter()
        .filter(|plan| plan.control.is_some() && named(plan))
        .collect())
}

fn add(sum: &mut (u64, u64), check: (u64, u64)) {
    sum.0 += check.0;
    sum.1 += check.1;
}

fn line(plan: &str, table: &str, check: &ControlCheck) -> String {
    format!(
        "{plan}  headline {} of {}  other {} of {}  {table}\n",
        check.headline.0, check.headline.1, check.other.0, check.other.1
    )
}

/// `3 of 120 differ: 2.5 % (0.5..7.1 %)`.
fn share((differing, tested): (u64, u64)) -> String {
    let percent = kdyno_stats::change::failure_percent((differing, tested));
    let interval = clopper_pearson(differing, tested, LEVEL);
    match (percent, interval) {
        (Some(percent), Some((low, high))) => format!(
            "{differing} of {tested} differ: {percent:.1} % ({:.1}..{:.1} %)",
            100.0 * low,
            100.0 * high
        ),
        _ => "none tested".to_owned(),
    }
}
