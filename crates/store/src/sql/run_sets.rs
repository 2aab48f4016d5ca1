//! The statements of the noise memory.

use super::{
    AnyConnection, AnyRow, Result, Row, Statement, Values, decode, encode, id, insert, strings,
};
use crate::encode::{FigureSet, from_word, pack_figures, word};
use kdyno_model::{BootId, CaseId, PlanId, RunSet, VariantName};
use std::collections::HashMap;

const COLUMNS: &str = "plan_id, position, testbox, case_id, variant, kernel_release, build_id, \
     boot_id, clock, instrument, start_unix_ns, figure_set_id, figures";

/// Puts the run sets of a plan in the place of those it had.
pub(crate) async fn run_sets_replace(
    connection: &mut AnyConnection,
    plan: PlanId,
    sets: &[RunSet],
) -> Result<()> {
    let mut statement = Statement::new("DELETE FROM run_set");
    statement.any_of("plan_id", &strings(&[plan]))?;
    statement.execute(connection).await?;
    let mut definitions: HashMap<String, FigureSet> = HashMap::new();
    let mut rows = Vec::with_capacity(sets.len());
    for (position, set) in (0_i64..).zip(sets) {
        let figures = FigureSet::of(&set.figures).map_err(encode)?;
        rows.push((position, set, figures.id.clone()));
        definitions.insert(figures.id.clone(), figures);
    }
    let definitions: Vec<&FigureSet> = definitions.values().collect();
    let bind = |values: &mut Values<'_>, set: &&FigureSet| {
        values.add(set.id.clone())?.add(set.definition.clone())?;
        Ok(())
    };
    let target = "figure_set (figure_set_id, definition)";
    insert(connection, target, &definitions, bind).await?;
    let bind = |values: &mut Values<'_>, (position, set, figures): &(i64, &RunSet, String)| {
        values
            .add(plan.to_string())?
            .add(*position)?
            .add(set.testbox.clone())?
            .add(set.case.0.clone())?
            .add(set.variant.0.clone())?
            .add(set.kernel_release.clone())?
            .add(set.build_id.clone())?
            .add(set.boot_id.as_ref().map(|boot| boot.0.clone()))?
            .add(word(&set.clock).map_err(encode)?)?
            .add(set.instrument.clone())?
            .add(set.start_unix_ns)?
            .add(figures.clone())?
            .add(pack_figures(&set.figures))?;
        Ok(())
    };
    insert(connection, &format!("run_set ({COLUMNS})"), &rows, bind).await?;
    Ok(())
}

/// The newest `limit` run sets of a case on a machine, latest start first, those of some plans
/// left out.
pub(crate) async fn run_sets_select(
    connection: &mut AnyConnection,
    testbox: &str,
    case: &CaseId,
    not_of: &[PlanId],
    limit: u32,
) -> Result<Vec<RunSet>> {
    let mut statement = Statement::new(&format!(
        "SELECT {COLUMNS}, definition FROM run_set NATURAL JOIN figure_set"
    ));
    statement.any_of("testbox", &[testbox.to_owned()])?;
    statement.any_of("case_id", std::slice::from_ref(&case.0))?;
    for (place, plan) in not_of.iter().enumerate() {
        statement.push(if place == 0 {
            " AND plan_id NOT IN ("
        } else {
            ", "
        });
        statement.bind(plan.to_string())?;
    }
    if !not_of.is_empty() {
        statement.push(")");
    }
    statement.push(" ORDER BY start_unix_ns DESC, plan_id DESC, position LIMIT ");
    statement.bind(i64::from(limit))?;
    let mut sets = Vec::new();
    let mut definitions: HashMap<String, FigureSet> = HashMap::new();
    let take = |row: &AnyRow| {
        sets.push(run_set_from(row, &mut definitions)?);
        Ok(())
    };
    statement.for_each(connection, take).await?;
    Ok(sets)
}

fn run_set_from(row: &AnyRow, definitions: &mut HashMap<String, FigureSet>) -> Result<RunSet> {
    let text = |i: usize| row.try_get::<String, _>(i);
    let maybe = |i: usize| row.try_get::<Option<String>, _>(i);
    let name = text(11)?;
    if !definitions.contains_key(&name) {
        let definition = FigureSet::read(name.clone(), text(13)?).map_err(decode)?;
        definitions.insert(name.clone(), definition);
    }
    let blob: Vec<u8> = row.try_get(12)?;
    let figures = definitions.get(&name).and_then(|set| set.unpack(&blob));
    let misfit = || sqlx::Error::Decode("the figures of a run set do not fit their names".into());
    Ok(RunSet {
        plan: id(PlanId::parse, &text(0)?)?,
        testbox: text(2)?,
        case: CaseId(text(3)?),
        variant: VariantName(text(4)?),
        kernel_release: text(5)?,
        build_id: maybe(6)?,
        boot_id: maybe(7)?.map(BootId),
        clock: from_word(text(8)?).map_err(decode)?,
        instrument: text(9)?,
        start_unix_ns: row.try_get(10)?,
        figures: figures.ok_or_else(misfit)?,
    })
}
