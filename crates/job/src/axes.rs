//! Axes: a list where one value is expected makes one case per item.

use crate::catalog::Program;
use crate::error::{JobError, Source};
use crate::keys::is_axis;
use crate::node::{Node, Place};

/// A list that is an axis, and where it hangs.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Keys from the top of the document.
    pub path: Vec<String>,
    /// Its values, outermost loop first in document order.
    pub values: Vec<Node>,
    /// Where the list stands.
    pub place: Place,
}

/// The axes of a normalised document, depth first in document order.
///
/// # Errors
/// An axis without values, or one whose values are no plain values.
pub fn axes_of(
    source: Source<'_>,
    document: &Node,
    program: &Program,
) -> Result<Vec<Axis>, JobError> {
    let mut axes = Vec::new();
    for (key, value) in document.entries().unwrap_or_default() {
        collect(
            source,
            value,
            &mut vec![key.text.clone()],
            program,
            &mut axes,
        )?;
    }
    Ok(axes)
}

fn collect(
    source: Source<'_>,
    node: &Node,
    path: &mut Vec<String>,
    program: &Program,
    axes: &mut Vec<Axis>,
) -> Result<(), JobError> {
    if let Some(entries) = node.entries() {
        for (key, value) in entries {
            path.push(key.text.clone());
            collect(source, value, path, program, axes)?;
            path.pop();
        }
    }
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let Some(values) = node.items().filter(|_| is_axis(&words, program)) else {
        return Ok(());
    };
    let name = path.join(".");
    if values.is_empty() {
        let error = JobError::at(
            source,
            node.place,
            format!("the axis `{name}` has no value"),
        );
        return Err(error.hint("give it at least one value, or remove it"));
    }
    if let Some(bad) = values.iter().find(|v| v.text().is_none() && !v.is_null()) {
        let message = format!("the axis `{name}` holds {}", bad.kind_name());
        return Err(
            JobError::at(source, bad.place, message).hint("an axis is a list of plain values")
        );
    }
    axes.push(Axis {
        path: path.clone(),
        values: values.to_vec(),
        place: node.place,
    });
    Ok(())
}

/// How many cases the axes make; saturates.
#[must_use]
pub fn combinations(axes: &[Axis]) -> u64 {
    axes.iter().fold(1u64, |product, axis| {
        product.saturating_mul(axis.values.len() as u64)
    })
}

/// The document with the `n`-th combination of the axes put in; the last axis turns fastest.
#[must_use]
pub fn point(document: &Node, axes: &[Axis], mut n: u64) -> Node {
    let mut point = document.clone();
    for axis in axes.iter().rev() {
        let len = axis.values.len() as u64;
        let index = usize::try_from(n % len).unwrap_or_default();
        point.set_path(&axis.path, axis.values[index].clone());
        n /= len;
    }
    point
}
