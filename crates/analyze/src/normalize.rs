//! Figures on a scale where one variant's median is 0 and another's is 1, per machine.
//!
//! Both ends of the scale are measured on the machine itself, so that their uncertainty belongs
//! to the figure (Fieller's interval of the medians). Where the ends do not differ there is no
//! scale and no figure.

use crate::comparison::{Cell, Comparison};
use kdyno_model::{Role, VariantName};
use kdyno_stats::Summary;
use kdyno_stats::index::{Index, NoIndex, normalise_medians};
use kdyno_stats::judge::ALPHA;
use kdyno_stats::random_effects::{CONVERGED, Heterogeneity, Pooled, hartung_knapp, heterogeneity};

/// One case and metric over machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalized {
    /// `testcase/params`.
    pub case: String,
    /// The metric.
    pub metric: String,
    /// One row per machine and variant that is neither end of the scale.
    pub rows: Vec<NormalizedRow>,
}

/// One variant on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct NormalizedRow {
    /// The machine.
    pub testbox: String,
    /// The variant.
    pub variant: String,
    /// The runs on the scale, or why there is no scale.
    pub scaled: Result<Scaled, NoIndex>,
}

/// Runs on the scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaled {
    /// One value per run.
    pub summary: Summary,
    /// Percent of the runs above 1.
    pub above_one: f64,
    /// The median with its uncertainty and that of both ends.
    pub index: Index,
}

/// What is left of what the second end brings about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effectiveness {
    /// Not to be told from the zero end.
    Eliminated,
    /// Between both ends.
    Reduced,
    /// Not to be told from the end that is 1.
    None,
    /// Beyond the end that is 1.
    Worse,
    /// Not to be told from either end.
    Unclear,
}

impl Effectiveness {
    /// The word in tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Eliminated => "eliminated",
            Self::Reduced => "reduced",
            Self::None => "none",
            Self::Worse => "worse",
            Self::Unclear => "unclear",
        }
    }

    /// Whether the effect is smaller than at the end that is 1.
    #[must_use]
    pub fn confirms(self) -> bool {
        matches!(self, Self::Eliminated | Self::Reduced)
    }

    /// By the interval against 0 and 1.
    #[must_use]
    pub fn of((low, high): (f64, f64)) -> Self {
        match (low <= 0.0, high >= 1.0) {
            (true, true) => Self::Unclear,
            (true, false) => Self::Eliminated,
            (false, false) => Self::Reduced,
            (false, true) if low > 1.0 => Self::Worse,
            (false, true) => Self::None,
        }
    }
}

impl Scaled {
    /// What is left.
    #[must_use]
    pub fn effectiveness(&self) -> Effectiveness {
        Effectiveness::of(self.index.fieller)
    }
}

/// Every headline metric (or every one that is shown, when none is a headline) with `zero` and
/// `one` as ends of the scale; a machine that lacks one of them has no row.
#[must_use]
pub fn normalize(
    comparison: &Comparison,
    zero: &VariantName,
    one: &VariantName,
) -> Vec<Normalized> {
    let place = |name: &VariantName| comparison.columns.iter().position(|c| c.name == *name);
    let (Some(zero), Some(one)) = (place(zero), place(one)) else {
        return Vec::new();
    };
    let rows = || {
        let tables = comparison.tables.iter();
        tables.flat_map(|table| table.rows().map(move |row| (table, row)))
    };
    let has_headline = rows().any(|(_, row)| row.role == Role::Headline);
    let mut found: Vec<Normalized> = Vec::new();
    for (table, row) in rows().filter(|(_, row)| row.role == Role::Headline || !has_headline) {
        let (Some(baseline), Some(reference)) = (row.cell(zero), row.cell(one)) else {
            continue;
        };
        let (case, metric) = (table.case.name(), row.metric.to_string());
        let others = (0..row.cells.len()).filter(|column| ![zero, one].contains(column));
        for column in others {
            let (Some(cell), Some(of)) = (row.cell(column), comparison.columns.get(column)) else {
                continue;
            };
            let normalized = NormalizedRow {
                testbox: table.testbox.clone(),
                variant: of.name.to_string(),
                scaled: scaled(cell, baseline, reference),
            };
            let known = found
                .iter_mut()
                .find(|known| known.case == case && known.metric == metric);
            match known {
                Some(known) => known.rows.push(normalized),
                None => found.push(Normalized {
                    case: case.clone(),
                    metric: metric.clone(),
                    rows: vec![normalized],
                }),
            }
        }
    }
    found
}

fn scaled(cell: &Cell, baseline: &Cell, reference: &Cell) -> Result<Scaled, NoIndex> {
    let values = cell.values();
    let index = normalise_medians(&values, &baseline.values(), &reference.values(), ALPHA)?;
    let (zero, one) = (baseline.summary.median, reference.summary.median);
    let on_scale: Vec<f64> = values.iter().map(|v| (v - zero) / (one - zero)).collect();
    let above = on_scale.iter().filter(|v| **v > 1.0).count() as u64;
    let summary = Summary::of(&on_scale).ok_or(NoIndex::NotEnoughData)?;
    let above_one = kdyno_stats::change::failure_percent((above, on_scale.len() as u64));
    Ok(Scaled {
        summary,
        above_one: above_one.ok_or(NoIndex::NotEnoughData)?,
        index,
    })
}

/// The common index of one variant over machines, and how much they disagree; `None` with fewer
/// than three machines that have one.
#[must_use]
pub fn common_index(rows: &[&NormalizedRow]) -> Option<(Pooled, Heterogeneity)> {
    let indices: Vec<&Index> = rows
        .iter()
        .filter_map(|row| Some(&row.scaled.as_ref().ok()?.index))
        .filter(|index| index.error > 0.0)
        .collect();
    if indices.len() < 3 {
        return None;
    }
    let estimates: Vec<f64> = indices.iter().map(|index| index.index).collect();
    let errors: Vec<f64> = indices.iter().map(|index| index.error).collect();
    Some((
        hartung_knapp(&estimates, &errors, ALPHA, CONVERGED)?,
        heterogeneity(&estimates, &errors)?,
    ))
}
