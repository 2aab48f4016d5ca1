//! What a comparison comes to as an exit status.

use crate::cli::{CompareArgs, FailOn};
use crate::context::Status;
use kdyno_analyze::Comparison;
use kdyno_analyze::looks::standings;
use kdyno_stats::judge::Verdict;

/// The status that the options ask for; `compared` says whether some run gave figures.
pub(super) fn status(comparison: &Comparison, compared: bool, args: &CompareArgs) -> Status {
    let verdicts = headline_verdicts(comparison);
    let has = |wanted: Verdict| verdicts.contains(&wanted);
    let nothing_judged = verdicts.is_empty();
    if args.bisect_exit {
        return if has(Verdict::Regressed) {
            Status::Regression
        } else if nothing_judged || has(Verdict::Unclear) || has(Verdict::Changed) {
            Status::BisectSkip
        } else {
            Status::Done
        };
    }
    if args.fail_on.contains(&FailOn::Regression) && has(Verdict::Regressed) {
        return Status::Regression;
    }
    let unclear = nothing_judged || has(Verdict::Unclear);
    if !compared || args.fail_on.contains(&FailOn::Unclear) && unclear {
        return Status::CannotTell;
    }
    Status::Done
}

/// What a bisection that is to skip a commit should know.
pub(super) fn why_skipped(comparison: &Comparison) -> &'static str {
    let verdicts = headline_verdicts(comparison);
    if verdicts.is_empty() {
        "skip: no headline metric was judged"
    } else if verdicts.contains(&Verdict::Unclear) {
        "skip: a headline metric is unclear; more runs may tell"
    } else {
        "skip: a headline metric changed and nobody said which direction is good; \
         give --better, or `metrics: {NAME: {better: lower}}` in the job"
    }
}

/// Verdicts of headline metrics and of failures.
fn headline_verdicts(comparison: &Comparison) -> Vec<Verdict> {
    let metrics = standings(comparison).into_iter().map(|s| s.verdict);
    let failures = comparison.tables.iter().flat_map(|table| &table.failures);
    // A few failures that prove nothing make no metric unclear.
    let of_failures = failures
        .flat_map(|row| &row.cells)
        .filter_map(|cell| Some(cell.judged.as_ref()?.judgement.verdict))
        .filter(|verdict| *verdict == Verdict::Regressed);
    metrics.chain(of_failures).collect()
}
