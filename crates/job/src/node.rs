//! The tree that a job file becomes.
//!
//! Scalars stay the text that was written, with style and place: `08`, `12e4567` and `1.10` mean
//! what the option that reads them says, so nothing is turned into a number here.

/// Where something stands, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

/// How a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes: may be null.
    Plain,
    /// Quoted or a block scalar: always text.
    Quoted,
}

/// A node and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Where it begins.
    pub place: Place,
}

/// A key of a map with its place.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key as written.
    pub text: String,
    /// Where it stands.
    pub place: Place,
}

/// The three kinds of node.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Text as written.
    Scalar {
        /// The text, quotes and escapes resolved.
        raw: String,
        /// How it was written.
        style: Style,
    },
    /// A list.
    List(Vec<Node>),
    /// A map in document order.
    Map(Vec<(Key, Node)>),
}

impl Node {
    /// A plain scalar from elsewhere than a file, such as a command-line option.
    #[must_use]
    pub fn plain(raw: &str) -> Self {
        let kind = Kind::Scalar {
            raw: raw.to_owned(),
            style: Style::Plain,
        };
        Self {
            kind,
            place: Place::default(),
        }
    }

    /// A quoted scalar from elsewhere than a file: always text, also when empty.
    #[must_use]
    pub fn quoted(raw: &str) -> Self {
        let kind = Kind::Scalar {
            raw: raw.to_owned(),
            style: Style::Quoted,
        };
        Self {
            kind,
            place: Place::default(),
        }
    }

    /// An empty map.
    #[must_use]
    pub fn empty_map(place: Place) -> Self {
        Self {
            kind: Kind::Map(Vec::new()),
            place,
        }
    }

    /// Whether it is an unquoted empty value, `~` or `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { raw, style: Style::Plain }
            if matches!(raw.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Its text, when it is a scalar that is not null.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { raw, .. } if !self.is_null() => Some(raw),
            _ => None,
        }
    }

    /// Its entries, when it is a map.
    #[must_use]
    pub fn entries(&self) -> Option<&[(Key, Node)]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Its items, when it is a list.
    #[must_use]
    pub fn items(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    /// The value of `key`, when it is a map that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?
            .iter()
            .find(|(k, _)| k.text == key)
            .map(|(_, value)| value)
    }

    /// "a list", "a map" or "a value", for messages.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match &self.kind {
            Kind::Scalar { .. } if self.is_null() => "nothing",
            Kind::Scalar { .. } => "a value",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }

    /// Sets `key` in a map, replacing an earlier value in its place in the order.
    pub fn set(&mut self, key: Key, value: Node) {
        if let Kind::Map(entries) = &mut self.kind {
            match entries.iter_mut().find(|(k, _)| k.text == key.text) {
                Some((_, old)) => *old = value,
                None => entries.push((key, value)),
            }
        }
    }

    /// The value at `path`, where there is one.
    #[must_use]
    pub fn at(&self, path: &[String]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Removes the value at `path`; nothing where there is none.
    pub fn remove(&mut self, path: &[String]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        if let Kind::Map(entries) = &mut self.kind {
            if rest.is_empty() {
                entries.retain(|(key, _)| key.text != *first);
            } else if let Some((_, inner)) = entries.iter_mut().find(|(k, _)| k.text == *first) {
                inner.remove(rest);
            }
        }
    }

    /// Sets the value at `path`, making maps on the way; a value in the way is replaced.
    pub fn set_path(&mut self, path: &[String], value: Node) {
        let Some((first, rest)) = path.split_first() else {
            *self = value;
            return;
        };
        if self.entries().is_none() {
            *self = Self::empty_map(value.place);
        }
        let Kind::Map(entries) = &mut self.kind else {
            return;
        };
        let position = entries
            .iter()
            .position(|(k, _)| k.text == *first)
            .unwrap_or_else(|| {
                let key = Key {
                    text: first.clone(),
                    place: value.place,
                };
                entries.push((key, Self::empty_map(value.place)));
                entries.len() - 1
            });
        entries[position].1.set_path(rest, value);
    }

    /// Lays `over` on top: maps merge key by key, anything else replaces.
    pub fn merge_deep(&mut self, over: &Node) {
        let (Kind::Map(_), Kind::Map(entries)) = (&self.kind, &over.kind) else {
            *self = over.clone();
            return;
        };
        for (key, value) in entries {
            let mut merged = self.get(&key.text).cloned();
            match &mut merged {
                Some(old) => old.merge_deep(value),
                None => merged = Some(value.clone()),
            }
            if let Some(merged) = merged {
                self.set(key.clone(), merged);
            }
        }
    }
}
