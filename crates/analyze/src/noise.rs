//! The noise memory: how much each metric varied in earlier plans, as a prior for new ones.
//!
//! [`run_sets`] boils the runs of one plan down to what is kept, [`NoiseMemory`] answers for a
//! metric. Figures of other clocks, instruments or units are never put together. Where the memory
//! is kept is not known here.

use kdyno_model::{
    BootId, CaseId, ClockKind, MetricName, PlanId, Residual, RunRow, RunSet, Scalar, SetFigure,
    VariantName,
};
use kdyno_stats::agreement::Agreement;
use kdyno_stats::judge::Scale;
use kdyno_stats::moderated::{BuildSpread, Prior};
use kdyno_stats::noise::{BootMean, between_boots, prior_of_sets, residual_of_blocks};
use kdyno_stats::{Summary, ttest};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What earlier run sets say of one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Prior of the variance within a side.
    pub within: Option<Prior>,
    /// Prior of the variance of a difference within a block.
    pub paired: Option<Prior>,
    /// How boots of the same variant differ.
    pub between_boots: Option<BuildSpread>,
    /// Run sets behind it.
    pub sets: usize,
    /// Runs behind it.
    pub runs: usize,
    /// Boots behind it; 0 when none is known.
    pub boots: usize,
}

/// What is remembered, ready to be asked.
#[derive(Clone, Debug, Default)]
pub struct NoiseMemory {
    places: HashMap<(String, CaseId), Place>,
}

/// The run sets of one case on one testbox.
#[derive(Clone, Debug, Default)]
struct Place {
    sets: Vec<RunSet>,
    /// Position of set and figure of each metric; in order, so that sums come out the same.
    by_metric: BTreeMap<MetricName, Vec<(usize, usize)>>,
    agreements: Vec<Agreements>,
}

/// How much the variances of all metrics of a place move that have this clock, instrument and
/// scale.
#[derive(Clone, Debug)]
struct Agreements {
    clock: ClockKind,
    instrument: String,
    logs: bool,
    within: Option<Agreement>,
    paired: Option<Agreement>,
}

/// Figures of one metric with their sets.
type OfMetric<'a> = Vec<(&'a RunSet, &'a SetFigure)>;
/// Variances with their degrees of freedom, one per plan.
type OfPlans = Vec<(f64, f64)>;

impl NoiseMemory {
    /// A memory of these run sets.
    #[must_use]
    pub fn new(sets: Vec<RunSet>) -> Self {
        let mut memory = Self::default();
        for set in sets {
            let key = (set.testbox.clone(), set.case.clone());
            let place = memory.places.entry(key).or_default();
            for (position, figure) in set.figures.iter().enumerate() {
                let metric = place.by_metric.entry(figure.metric.clone()).or_default();
                metric.push((place.sets.len(), position));
            }
            place.sets.push(set);
        }
        for place in memory.places.values_mut() {
            place.agreements = place.agree();
        }
        memory
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What is remembered of a metric whose figures have this clock, instrument and unit, on
    /// logarithms or not. `None` when no set has it.
    #[must_use]
    pub fn of(
        &self,
        testbox: &str,
        case: &CaseId,
        metric: &MetricName,
        (clock, instrument, unit): (ClockKind, &str, &str),
        logs: bool,
    ) -> Option<History> {
        if self.is_empty() {
            return None;
        }
        let place = self.places.get(&(testbox.to_owned(), case.clone()))?;
        let figures: OfMetric<'_> = place
            .figures(place.by_metric.get(metric)?)
            .filter(|(set, figure)| {
                set.clock == clock
                    && set.instrument == instrument
                    && figure.unit.as_str() == unit
                    && figure.logs == logs
            })
            .collect();
        let agreements = place
            .agreements
            .iter()
            .find(|of| of.clock == clock && of.instrument == instrument && of.logs == logs);
        (!figures.is_empty()).then(|| history(&figures, agreements))
    }
}

impl Place {
    fn figures(&self, positions: &[(usize, usize)]) -> impl Iterator<Item = (&RunSet, &SetFigure)> {
        positions.iter().filter_map(|(set, figure)| {
            let set = self.sets.get(*set)?;
            Some((set, set.figures.get(*figure)?))
        })
    }

    /// What the metrics tell together, by clock, instrument and scale.
    fn agree(&self) -> Vec<Agreements> {
        type Together = (Vec<OfPlans>, Vec<OfPlans>);
        let mut together: BTreeMap<(ClockKind, &str, bool), Together> = BTreeMap::new();
        for positions in self.by_metric.values() {
            // One name may stand for figures of several units.
            let mut metrics: BTreeMap<_, OfMetric<'_>> = BTreeMap::new();
            for (set, figure) in self.figures(positions) {
                let basis = (set.clock, set.instrument.as_str(), figure.logs);
                let metric = metrics.entry((basis, figure.unit.as_str())).or_default();
                metric.push((set, figure));
            }
            for ((basis, _), figures) in metrics {
                let (within, paired) = together.entry(basis).or_default();
                within.push(variances_within(&figures));
                paired.push(variances_of_pairs(&figures));
            }
        }
        let agreement = |of: &[OfPlans]| Agreement::of(of.iter().map(Vec::as_slice));
        let agreements = together.into_iter();
        agreements
            .map(|((clock, instrument, logs), (within, paired))| Agreements {
                clock,
                instrument: instrument.to_owned(),
                logs,
                within: agreement(&within),
                paired: agreement(&paired),
            })
            .collect()
    }
}

/// Variance within a side in each plan. Its sets are pooled: between plans is when variances
/// move. Sets that show none are left out.
fn variances_within(figures: &[(&RunSet, &SetFigure)]) -> OfPlans {
    let mut plans: BTreeMap<PlanId, (f64, f64)> = BTreeMap::new();
    for (set, figure) in figures {
        if let Some(variance) = figure.variance.filter(|variance| *variance > 0.0) {
            let (pooled, all) = plans.entry(set.plan).or_insert((0.0, 0.0));
            let df = f64::from(figure.runs) - 1.0;
            *all += df;
            *pooled += (variance - *pooled) * (df / *all);
        }
    }
    plans.into_values().collect()
}

/// Variance of a difference within a block in each plan. The sets of a plan share its residual:
/// together they stand for it once.
fn variances_of_pairs(figures: &[(&RunSet, &SetFigure)]) -> OfPlans {
    let mut plans: BTreeMap<PlanId, (f64, f64)> = BTreeMap::new();
    for (set, figure) in figures {
        if let Some(residual) = figure.residual {
            let of_plan = plans.entry(set.plan).or_insert((0.0, 0.0));
            // A difference of two runs of a block varies twice as much as one beside its block.
            of_plan.0 = 2.0 * residual.variance;
            of_plan.1 += residual.df;
        }
    }
    plans.into_values().collect()
}

fn history(figures: &[(&RunSet, &SetFigure)], of_case: Option<&Agreements>) -> History {
    let within = prior_of_sets(
        &variances_within(figures),
        of_case.and_then(|of| of.within.as_ref()),
    );
    let paired = prior_of_sets(
        &variances_of_pairs(figures),
        of_case.and_then(|of| of.paired.as_ref()),
    );
    let boots: BTreeSet<&BootId> = figures
        .iter()
        .filter_map(|(set, _)| set.boot_id.as_ref())
        .collect();
    History {
        within,
        paired,
        between_boots: within
            .and_then(|prior| between_boots(&groups_of_boots(figures), prior.variance)),
        sets: figures.len(),
        runs: figures.iter().map(|(_, f)| f.runs as usize).sum(),
        boots: boots.len(),
    }
}

/// The boots of each variant, kernel and build; the sets of one boot are put together.
fn groups_of_boots(figures: &[(&RunSet, &SetFigure)]) -> Vec<Vec<BootMean>> {
    type Group<'a> = (&'a VariantName, &'a str, Option<&'a str>);
    let mut groups: BTreeMap<Group<'_>, BTreeMap<&BootId, Vec<&SetFigure>>> = BTreeMap::new();
    for (set, figure) in figures {
        if let Some(boot) = &set.boot_id {
            let group = (
                &set.variant,
                set.kernel_release.as_str(),
                set.build_id.as_deref(),
            );
            let boots = groups.entry(group).or_default();
            boots.entry(boot).or_default().push(figure);
        }
    }
    let mean = |figures: Vec<&SetFigure>| {
        let runs: f64 = figures.iter().map(|f| f64::from(f.runs)).sum();
        BootMean {
            mean: figures
                .iter()
                .map(|f| f.mean * (f64::from(f.runs) / runs))
                .sum(),
            runs,
        }
    };
    groups
        .into_values()
        .map(|boots| boots.into_values().map(mean).collect())
        .collect()
}

/// The run sets of the measured runs of one plan.
#[must_use]
pub fn run_sets(rows: &[RunRow]) -> Vec<RunSet> {
    let rows: Vec<&RunRow> = rows
        .iter()
        .filter(|row| row.outcome.is_done() && !row.warm_up)
        .collect();
    let mut sets: BTreeMap<_, Vec<&RunRow>> = BTreeMap::new();
    for row in &rows {
        let key = (&row.testbox, &row.case.id, &row.variant, &row.boot_id);
        sets.entry(key).or_default().push(row);
    }
    let tables = block_tables(&rows);
    sets.into_values()
        .filter_map(|of_set| run_set(&of_set, &tables))
        .collect()
}

fn run_set(rows: &[&RunRow], tables: &HashMap<Figures<'_>, Table>) -> Option<RunSet> {
    let first = rows.first()?;
    let mut values: Vec<(&Scalar, Vec<f64>)> = Vec::new();
    let mut position: HashMap<&MetricName, usize> = HashMap::new();
    for scalar in rows.iter().flat_map(|row| &row.scalars) {
        let place = *position.entry(&scalar.metric).or_insert_with(|| {
            values.push((scalar, Vec::new()));
            values.len() - 1
        });
        if let Some((_, of_metric)) = values.get_mut(place) {
            of_metric.push(scalar.value);
        }
    }
    let figures = values.into_iter().filter_map(|(scalar, values)| {
        let table = tables.get(&(first.testbox.as_str(), &first.case.id, &scalar.metric));
        figure(scalar, &values, table)
    });
    Some(RunSet {
        plan: first.plan,
        testbox: first.testbox.clone(),
        case: first.case.id.clone(),
        variant: first.variant.clone(),
        kernel_release: first.kernel_release.clone(),
        build_id: first.build_id.clone(),
        boot_id: first.boot_id.clone(),
        clock: first.clock,
        instrument: first.instrument.clone(),
        start_unix_ns: rows.iter().map(|row| row.start_unix_ns).min()?,
        figures: figures.collect(),
    })
}

fn figure(scalar: &Scalar, values: &[f64], table: Option<&Table>) -> Option<SetFigure> {
    // A metric of which one variant has zeros is compared without logarithms.
    let logs = table.map_or_else(|| is_ratio(scalar, values), |table| table.logs);
    let on_scale = if logs {
        ttest::logs(values)?
    } else {
        values.to_vec()
    };
    let summary = Summary::of(&on_scale)?;
    Some(SetFigure {
        metric: scalar.metric.clone(),
        unit: scalar.unit.clone(),
        logs,
        runs: u32::try_from(summary.n).ok()?,
        mean: summary.mean,
        variance: summary
            .sample_sd
            .map(|sd| sd * sd)
            .filter(|v| v.is_finite()),
        residual: table.and_then(|table| table.residual),
    })
}

fn is_ratio(scalar: &Scalar, values: &[f64]) -> bool {
    Scale::of(values, &[], scalar.metric.changes_absolutely()) == Scale::Ratio
}

/// Testbox, case and metric.
type Figures<'a> = (&'a str, &'a CaseId, &'a MetricName);

/// What the blocks of a plan say of one metric.
struct Table {
    logs: bool,
    residual: Option<Residual>,
}

/// The residual of every metric from the blocks that all variants completed.
fn block_tables<'a>(rows: &[&'a RunRow]) -> HashMap<Figures<'a>, Table> {
    let mut values: HashMap<Figures<'a>, Blocks<'a>> = HashMap::new();
    for row in rows {
        for scalar in &row.scalars {
            let place = (row.testbox.as_str(), &row.case.id, &scalar.metric);
            let blocks = values.entry(place).or_default();
            blocks.logs = Some(blocks.logs.unwrap_or(true) && is_ratio(scalar, &[scalar.value]));
            blocks.variants.insert(&row.variant);
            blocks.sets.insert((&row.variant, row.boot_id.as_ref()));
            let of_block = blocks.values.entry(row.block).or_default();
            of_block.insert(&row.variant, scalar.value);
        }
    }
    values
        .into_iter()
        .map(|(place, blocks)| (place, blocks.table()))
        .collect()
}

/// The values of one metric by block and variant.
#[derive(Default)]
struct Blocks<'a> {
    logs: Option<bool>,
    variants: BTreeSet<&'a VariantName>,
    /// Variant and boot of each run set that has the metric.
    sets: BTreeSet<(&'a VariantName, Option<&'a BootId>)>,
    values: BTreeMap<u32, BTreeMap<&'a VariantName, f64>>,
}

impl Blocks<'_> {
    fn table(self) -> Table {
        let logs = self.logs.unwrap_or(false);
        let complete: Vec<Vec<f64>> = self
            .values
            .into_values()
            .filter(|row| row.len() == self.variants.len())
            .map(|row| {
                let on_scale = |v: f64| if logs { v.ln() } else { v };
                row.into_values().map(on_scale).collect()
            })
            .collect();
        // A plan that was resumed after a reboot has more sets than variants.
        let sets = f64::from(u32::try_from(self.sets.len()).unwrap_or(u32::MAX));
        Table {
            logs,
            residual: residual_of_blocks(&complete).map(|(variance, df)| Residual {
                variance,
                df: df / sets,
            }),
        }
    }
}
