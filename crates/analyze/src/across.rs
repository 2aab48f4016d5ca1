//! One metric over several machines: who confirms, who disagrees, and one number where there is
//! one.
//!
//! The machines are a sample of those that one cares about, so that the common figure is a
//! random-effects mean (REML with Hartung and Knapp). Where they disagree there is none.

use crate::comparison::{CaseTable, Cell, Comparison, Row};
use kdyno_model::Role;
use kdyno_stats::judge::{Effect, Scale, Verdict};
use kdyno_stats::random_effects::{CONVERGED, Heterogeneity, Pooled, hartung_knapp, heterogeneity};

/// Machines from which a common figure is formed.
const FEWEST_BOXES: usize = 3;
/// Level of the common interval and of the test that machines agree.
const ALPHA: f64 = 0.05;
/// Percent of the variance between machines from which they disagree too much for one number.
const MUCH: f64 = 75.0;

/// One metric of one case over machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid<'a> {
    /// `testcase/params`.
    pub case: String,
    /// The metric, from the first machine that has it.
    pub row: &'a Row,
    /// One line per machine.
    pub boxes: Vec<(&'a CaseTable, &'a Row)>,
    /// What the machines say together, per later column.
    pub together: Vec<Together>,
}

/// What machines say together of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Together {
    /// The column.
    pub column: usize,
    /// The verdict that most machines with a claim share; `None` without claims or in a tie.
    pub majority: Option<Verdict>,
    /// Machines that share it.
    pub confirming: Vec<String>,
    /// Machines whose claim contradicts it.
    pub disagreeing: Vec<String>,
    /// Machines without a claim.
    pub unclear: Vec<String>,
    /// The common figure, as it is shown; `None` with fewer than three machines, without errors,
    /// or when the machines disagree.
    pub pooled: Option<(f64, (f64, f64), Scale)>,
    /// How much they disagree.
    pub heterogeneity: Option<Heterogeneity>,
    /// The machine farthest from the others, where they disagree.
    pub farthest: Option<String>,
}

impl Together {
    /// Whether the machines disagree by more than chance and so much that one number would hide
    /// it.
    #[must_use]
    pub fn is_split(&self) -> bool {
        self.heterogeneity
            .is_some_and(|h| h.i2 >= MUCH && h.p.is_some_and(|p| p <= ALPHA))
    }
}

/// A grid per case and headline metric, or per metric that is shown when none is a headline.
#[must_use]
pub fn grids(comparison: &Comparison) -> Vec<Grid<'_>> {
    let has_headline = comparison
        .tables
        .iter()
        .flat_map(CaseTable::rows)
        .any(|row| row.role == Role::Headline);
    let mut grids: Vec<Grid<'_>> = Vec::new();
    for table in &comparison.tables {
        let wanted = |row: &&Row| row.role == Role::Headline || !has_headline;
        for row in table.rows().filter(wanted) {
            let case = table.case.name();
            let known = grids
                .iter_mut()
                .find(|grid| grid.case == case && grid.row.metric == row.metric);
            match known {
                Some(grid) => grid.boxes.push((table, row)),
                None => grids.push(Grid {
                    case,
                    row,
                    boxes: vec![(table, row)],
                    together: Vec::new(),
                }),
            }
        }
    }
    for grid in &mut grids {
        let columns = 1..comparison.columns.len();
        grid.together = columns
            .map(|column| together(&grid.boxes, column))
            .collect();
    }
    grids
}

fn together(boxes: &[(&CaseTable, &Row)], column: usize) -> Together {
    let cells: Vec<(&str, &Cell)> = boxes
        .iter()
        .filter_map(|(table, row)| Some((table.testbox.as_str(), row.cell(column)?)))
        .collect();
    let verdicts: Vec<(&str, Verdict)> = cells
        .iter()
        .filter_map(|(name, cell)| Some((*name, cell.verdict()?)))
        .collect();
    let majority = majority(&verdicts);
    let names = |wanted: &dyn Fn(Verdict) -> bool| -> Vec<String> {
        let fitting = verdicts.iter().filter(|(_, verdict)| wanted(*verdict));
        fitting.map(|(name, _)| (*name).to_owned()).collect()
    };
    let effects: Vec<(&str, &Effect)> = cells
        .iter()
        .filter_map(|(name, cell)| Some((*name, cell.judged.as_ref()?.effect.as_ref()?)))
        .filter(|(_, effect)| effect.difference.se > 0.0)
        .collect();
    let common = common_figure(&effects);
    let (pooled, heterogeneity) = common.map_or((None, None), |(p, h)| (Some(p), Some(h)));
    let mut together = Together {
        column,
        majority,
        confirming: names(&|v| Some(v) == majority),
        disagreeing: names(&|v| v != Verdict::Unclear && Some(v) != majority),
        unclear: names(&|v| v == Verdict::Unclear),
        pooled: None,
        heterogeneity,
        farthest: None,
    };
    if together.is_split() {
        let place = heterogeneity.map(|h| h.farthest);
        let farthest = place.and_then(|place| effects.get(place));
        together.farthest = farthest.map(|(name, _)| (*name).to_owned());
    } else if let (Some(pooled), Some((_, first))) = (pooled, effects.first()) {
        let scale = first.scale;
        let (low, high) = pooled.interval;
        let shown = (scale.shown(low), scale.shown(high));
        together.pooled = Some((scale.shown(pooled.estimate), shown, scale));
    }
    together
}

/// The verdict of most machines that claim something; none in a tie.
fn majority(verdicts: &[(&str, Verdict)]) -> Option<Verdict> {
    let claims = [
        Verdict::Regressed,
        Verdict::Improved,
        Verdict::Changed,
        Verdict::Unchanged,
    ];
    let count = |wanted: Verdict| verdicts.iter().filter(|(_, v)| *v == wanted).count();
    let most = claims.iter().map(|verdict| count(*verdict)).max()?;
    let mut leading = claims.iter().filter(|verdict| count(**verdict) == most);
    let first = *leading.next()?;
    (most > 0 && leading.next().is_none()).then_some(first)
}

/// Pooled figure and disagreement; nothing for fewer than three machines or mixed scales.
fn common_figure(effects: &[(&str, &Effect)]) -> Option<(Pooled, Heterogeneity)> {
    let scale = effects.first()?.1.scale;
    let alike = effects.iter().all(|(_, effect)| effect.scale == scale);
    if !alike || effects.len() < FEWEST_BOXES {
        return None;
    }
    let estimates: Vec<f64> = effects.iter().map(|(_, e)| e.difference.estimate).collect();
    let errors: Vec<f64> = effects.iter().map(|(_, e)| e.difference.se).collect();
    Some((
        hartung_knapp(&estimates, &errors, ALPHA, CONVERGED)?,
        heterogeneity(&estimates, &errors)?,
    ))
}
