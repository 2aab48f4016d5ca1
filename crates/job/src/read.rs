//! YAML events to [`Node`] trees, one per document.
//!
//! Nothing is executed and nothing is interpreted. Plain YAML merge keys (`<<: *base`, also
//! several of them) are resolved; includes have been put in place before. Depth and size are
//! bounded, so that no file can exhaust memory or stack.

use crate::error::{JobError, Source};
use crate::node::{Key, Kind, Node, Place, Style};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use std::collections::HashMap;

/// Deeper nesting than any job needs and any stack minds.
const MAX_DEPTH: usize = 64;
/// More keys than any map of a job needs; bounds the search for duplicates.
const MAX_KEYS: usize = 10_000;
/// More nodes than any job needs; bounds what aliases may blow up to.
const MAX_NODES: usize = 200_000;

/// Reads all documents of a source; empty documents are left out.
///
/// # Errors
/// Broken YAML, a duplicate key, an unknown alias, tags, too deep or too large a tree.
pub fn read_documents(source: Source<'_>) -> Result<Vec<Node>, JobError> {
    let mut reader = Reader {
        source,
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        documents: Vec::new(),
    };
    for event in Parser::new_from_str(source.text) {
        let (event, span) = event.map_err(|e| {
            let place = Place {
                line: e.marker().line(),
                column: e.marker().col() + 1,
            };
            JobError::at(source, place, format!("not valid YAML: {}", e.info()))
        })?;
        reader.take(event, span)?;
    }
    Ok(reader.documents)
}

/// A container under construction.
struct Open {
    node: Node,
    anchor: usize,
    key: Option<Key>,
}

struct Reader<'a> {
    source: Source<'a>,
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
    documents: Vec<Node>,
}

impl Reader<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), JobError> {
        let place = Place {
            line: span.start.line(),
            column: span.start.col() + 1,
        };
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.is_some(), place)?;
                let style = if style == ScalarStyle::Plain {
                    Style::Plain
                } else {
                    Style::Quoted
                };
                let kind = Kind::Scalar {
                    raw: text.into_owned(),
                    style,
                };
                self.finish(Node { kind, place }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), place)?;
                self.begin(
                    Node {
                        kind: Kind::List(Vec::new()),
                        place,
                    },
                    anchor,
                )
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), place)?;
                self.begin(Node::empty_map(place), anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.finish(open.node, open.anchor),
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor).cloned() else {
                    return Err(JobError::at(
                        self.source,
                        place,
                        "this alias has no anchor before it",
                    ));
                };
                self.count(size, place)?;
                self.finish(Node { place, ..node }, 0)
            }
            _ => Ok(()),
        }
    }

    fn refuse_tag(&self, tagged: bool, place: Place) -> Result<(), JobError> {
        if tagged {
            let error = JobError::at(
                self.source,
                place,
                "YAML tags (`!...`) have no meaning in a job",
            );
            return Err(error.hint("remove the tag; quote the value when it is text"));
        }
        Ok(())
    }

    fn count(&mut self, more: usize, place: Place) -> Result<(), JobError> {
        self.nodes = self.nodes.saturating_add(more);
        if self.nodes > MAX_NODES {
            let message = format!("more than {MAX_NODES} values, aliases expanded");
            return Err(JobError::at(self.source, place, message));
        }
        Ok(())
    }

    fn begin(&mut self, node: Node, anchor: usize) -> Result<(), JobError> {
        if self.open.len() >= MAX_DEPTH {
            let message = format!("nested deeper than {MAX_DEPTH} levels");
            return Err(JobError::at(self.source, node.place, message));
        }
        // A container cannot be a key; its place is checked when the key would be read.
        if let Some(Open {
            node: Node {
                kind: Kind::Map(_), ..
            },
            key: None,
            ..
        }) = self.open.last()
        {
            return Err(JobError::at(
                self.source,
                node.place,
                "a key must be plain text",
            ));
        }
        self.open.push(Open {
            node,
            anchor,
            key: None,
        });
        Ok(())
    }

    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), JobError> {
        self.count(1, node.place)?;
        if anchor > 0 {
            let size = size_of(&node);
            self.anchors.insert(anchor, (node.clone(), size));
        }
        let source = self.source;
        let Some(open) = self.open.last_mut() else {
            if !node.is_null() {
                self.documents.push(node);
            }
            return Ok(());
        };
        if let Kind::List(items) = &mut open.node.kind {
            items.push(node);
            return Ok(());
        }
        match open.key.take() {
            None => {
                let Kind::Scalar { raw, .. } = node.kind else {
                    return Err(JobError::at(source, node.place, "a key must be plain text"));
                };
                open.key = Some(Key {
                    text: raw,
                    place: node.place,
                });
                Ok(())
            }
            Some(key) if key.text == "<<" => merge_key(source, &mut open.node, &key, &node),
            Some(key) => insert(source, &mut open.node, key, node),
        }
    }
}

fn size_of(node: &Node) -> usize {
    1 + match &node.kind {
        Kind::Scalar { .. } => 0,
        Kind::List(items) => items.iter().map(size_of).sum(),
        Kind::Map(entries) => entries.iter().map(|(_, value)| size_of(value)).sum(),
    }
}

/// Keys that came from a merge are marked by having no place of their own in the map's text;
/// an explicit key then replaces them.
fn insert(source: Source<'_>, map: &mut Node, key: Key, value: Node) -> Result<(), JobError> {
    let begins = map.place;
    if let Kind::Map(entries) = &mut map.kind {
        if entries.len() >= MAX_KEYS {
            let message = format!("more than {MAX_KEYS} keys in one map");
            return Err(JobError::at(source, key.place, message));
        }
        let earlier = entries.iter_mut().find(|(k, _)| k.text == key.text);
        match earlier {
            Some((k, _))
                if k.place.line >= begins.line
                    && k.place != Place::default()
                    && of_one_file(source, k.place, key.place) =>
            {
                let message = format!("`{}` is given twice", key.text);
                let first = k.place.line;
                return Err(JobError::at(source, key.place, message).hint(format!(
                    "it stands on line {first} already; keep one of them"
                )));
            }
            Some(entry) => *entry = (key, value),
            None => entries.push((key, value)),
        }
    }
    Ok(())
}

/// Whether two keys were written in one file: a key replaces one that was included.
fn of_one_file(source: Source<'_>, one: Place, other: Place) -> bool {
    let instance = |place: Place| source.origin(place.line).map(|origin| origin.instance);
    instance(one) == instance(other)
}

fn merge_key(source: Source<'_>, map: &mut Node, key: &Key, value: &Node) -> Result<(), JobError> {
    let refused = || {
        JobError::at(
            source,
            key.place,
            "an include stands alone at the beginning of a line",
        )
        .hint("write `<<: FILE` at the top level, or use a YAML anchor: `<<: *name`")
    };
    let merged: &[Node] = match &value.kind {
        Kind::Scalar { .. } => return Err(refused()),
        Kind::List(items) => items,
        Kind::Map(_) => std::slice::from_ref(value),
    };
    for node in merged {
        let entries = node.entries().ok_or_else(refused)?;
        for (k, v) in entries {
            // In YAML a merged key never replaces one that is there.
            if map.get(&k.text).is_none() {
                let unplaced = Key {
                    text: k.text.clone(),
                    place: Place::default(),
                };
                map.set(unplaced, v.clone());
            }
        }
    }
    Ok(())
}
