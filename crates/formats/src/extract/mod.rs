//! The extraction engine.
//!
//! Missing is not zero: a stream that no line gave makes no reading. A figure that is printed
//! but is no finite number makes the run a failed one and is named, since the program itself
//! says that something went wrong.

mod derive;
mod lines;
mod machine;

use kdyno_model::{
    ClockKind, ExtractRules, FailReason, Measurement, MetricName, MetricRule, Reading, Role, Unit,
    Value,
};

/// What a program printed.
#[derive(Clone, Copy, Debug)]
pub struct RawOutput<'a> {
    /// Standard output of all rounds.
    pub stdout: &'a [u8],
    /// Standard error of all rounds.
    pub stderr: &'a [u8],
}

/// Readings and what is wrong with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extracted {
    /// Everything that could be read: the program's metrics, its resource usage, what the
    /// monitors saw, what watching cost.
    pub readings: Vec<Reading>,
    /// Why the run has failed although the program ended well.
    pub problem: Option<FailReason>,
}

/// A catalog entry holds a rule that cannot be followed.
#[derive(Debug, thiserror::Error)]
#[error("the extraction rule `{pattern}` of {prefix} is broken: {reason}")]
pub struct RulesError {
    /// The testcase.
    pub prefix: String,
    /// The regular expression.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Reads everything that a run yields.
///
/// # Errors
/// [`RulesError`] when a rule is no regular expression. Whatever the program printed is no error.
pub fn extract(
    rules: &ExtractRules,
    raw: RawOutput<'_>,
    measurement: &Measurement,
) -> Result<Extracted, RulesError> {
    let found = lines::scan(rules, raw, measurement)?;
    let mut out = Sink {
        prefix: &rules.prefix,
        clock: measurement.clock,
        readings: Vec::new(),
    };
    derive::keyed(rules, &found, &mut out);
    derive::derived(rules, &found, measurement, &mut out);
    let problem = match &found.bad_figure {
        Some(figure) => Some(FailReason::BadFigure(figure.clone())),
        None if rules.figures_required && out.readings.is_empty() => Some(FailReason::NoMetric),
        None => missing_headline(rules, &found, &out),
    };
    machine::usage(rules, measurement, &mut out);
    machine::monitors(measurement, &mut out);
    machine::overhead(measurement, &mut out);
    machine::throttling(measurement, &mut out);
    Ok(Extracted {
        readings: out.readings,
        problem,
    })
}

/// A headline metric that the rules name and the run did not give: it must not be missed in
/// silence.
fn missing_headline(
    rules: &ExtractRules,
    found: &lines::Found,
    out: &Sink<'_>,
) -> Option<FailReason> {
    const SHOWN: usize = 10;
    let given = |rule: &&MetricRule| {
        let name = format!("{}.{}", rules.prefix, rule.name);
        out.readings
            .iter()
            .any(|reading| reading.metric.as_str() == name)
    };
    let mut headline = rules
        .metrics
        .iter()
        .filter(|rule| rule.role == Role::Headline);
    let missing = headline.find(|rule| !given(rule))?;
    let printed: Vec<&str> = found
        .keys
        .iter()
        .take(SHOWN)
        .map(|keyed| keyed.key.as_str())
        .collect();
    let seen = if printed.is_empty() {
        String::new()
    } else {
        format!(" (printed: {})", printed.join(", "))
    };
    Some(FailReason::BadFigure(format!(
        "printed no figure for `{}`{seen}",
        missing.name
    )))
}

/// Collects readings; what is not finite or has no valid name never gets in.
struct Sink<'a> {
    prefix: &'a str,
    clock: ClockKind,
    readings: Vec<Reading>,
}

/// A reading about to be collected.
struct Draft<'a> {
    unit: &'a Unit,
    better: kdyno_model::Better,
    role: Role,
}

impl Sink<'_> {
    /// A metric of the program: the prefix goes in front.
    fn program(&mut self, name: &str, draft: &Draft<'_>, value: Value) {
        if let Ok(metric) = MetricName::new(format!("{}.{name}", self.prefix)) {
            self.push(metric, draft, value);
        }
    }

    fn push(&mut self, metric: MetricName, draft: &Draft<'_>, value: Value) {
        if value.check().is_ok() {
            self.readings.push(Reading {
                metric,
                unit: draft.unit.clone(),
                better: draft.better,
                role: draft.role,
                clock: self.clock,
                value,
            });
        }
    }
}
