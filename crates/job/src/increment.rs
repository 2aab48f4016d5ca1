//! Incremental keys: `a.b: v` sets, `a.b+: v` appends, `a.b-: v` removes.
//!
//! Plain keys of a document replace whole those of the one that it is laid on; these reach inside.

use crate::catalog::Catalog;
use crate::error::{JobError, Source};
use crate::jobfile::split_key;
use crate::node::{Key, Kind, Node};

/// The document `over` laid on `base`: its plain keys, then its incremental ones in their order.
///
/// # Errors
/// With its place: something to be removed that is not there, or appended to a map.
pub(crate) fn lay(
    source: Source<'_>,
    base: &Node,
    over: &Node,
    catalog: &Catalog,
) -> Result<Node, JobError> {
    let mut node = Node {
        place: over.place,
        ..base.clone()
    };
    let entries = || over.entries().unwrap_or_default().iter();
    for (key, value) in entries().filter(|(key, _)| !is_incremental(&key.text)) {
        node.set(key.clone(), value.clone());
    }
    for (key, value) in entries().filter(|(key, _)| is_incremental(&key.text)) {
        apply(source, &mut node, key, value, catalog)?;
    }
    Ok(node)
}

/// Whether a key reaches inside: it has a dot, or ends in a sign.
pub(crate) fn is_incremental(key: &str) -> bool {
    let stem = key.trim_end_matches(['+', '-']);
    stem.contains('.') && !stem.starts_with('.') && !stem.ends_with('.') || stem.len() < key.len()
}

fn apply(
    source: Source<'_>,
    node: &mut Node,
    key: &Key,
    value: &Node,
    catalog: &Catalog,
) -> Result<(), JobError> {
    let wrong = |message: String| JobError::at(source, key.place, message);
    if let Some(stem) = key.text.strip_suffix('+') {
        let path = split_key(stem, catalog);
        let mut items = match node.at(&path) {
            None => Vec::new(),
            Some(found) => items_of(found).ok_or_else(|| {
                wrong(format!("`{stem}` is a map: nothing can be appended to it"))
            })?,
        };
        items.extend(items_of(value).ok_or_else(|| {
            wrong("a map cannot be appended".to_owned()).hint("write a value or a list of values")
        })?);
        node.set_path(&path, list(items, value));
    } else if let Some(stem) = key.text.strip_suffix('-') {
        let path = split_key(stem, catalog);
        let missing = || {
            wrong(format!("`{stem}` is not there: nothing can be removed"))
                .hint("remove this line, or correct the name")
        };
        let found = node.at(&path).ok_or_else(missing)?;
        if value.is_null() {
            node.remove(&path);
            return Ok(());
        }
        let items = items_of(found).ok_or_else(missing)?;
        let gone = items_of(value).ok_or_else(missing)?;
        let text = |item: &Node| item.text().map(str::to_owned);
        for item in &gone {
            if !items.iter().any(|known| text(known) == text(item)) {
                let shown = text(item).unwrap_or_default();
                return Err(wrong(format!("`{shown}` is not in `{stem}`")));
            }
        }
        let is_gone = |item: &Node| gone.iter().any(|other| text(other) == text(item));
        let kept = items.into_iter().filter(|item| !is_gone(item)).collect();
        node.set_path(&path, list(kept, value));
    } else {
        node.set_path(&split_key(&key.text, catalog), value.clone());
    }
    Ok(())
}

/// The items of a list; a value alone is a list of one, nothing is an empty one.
fn items_of(node: &Node) -> Option<Vec<Node>> {
    match &node.kind {
        _ if node.is_null() => Some(Vec::new()),
        Kind::List(items) => Some(items.clone()),
        Kind::Scalar { .. } => Some(vec![node.clone()]),
        Kind::Map(_) => None,
    }
}

fn list(items: Vec<Node>, at: &Node) -> Node {
    Node {
        kind: Kind::List(items),
        place: at.place,
    }
}
