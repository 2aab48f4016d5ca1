//! `<<: FILE`: job files that take in others.
//!
//! An include stands for the text of the other file, documents and all, as lkp-tests has it; keys
//! behind it replace those that came with it. `<<: {file: FILE, key: value, ignore: [key]}`
//! replaces or leaves out keys of its top level. Reading files is the caller's business: here is
//! only text, and where each line of it came from, so that errors name the right file.

use crate::error::{JobError, Origin, Source};
use crate::node::{Kind, Node, Place, Style};
use crate::read::read_documents;

/// Files within files within files.
const MOST_LEVELS: usize = 16;
/// All text together.
const MOST_BYTES: usize = 16 << 20;

/// A job's text with every include in its place.
#[derive(Clone, Debug, Default)]
pub struct Expanded {
    /// The text.
    pub text: String,
    /// Where each line came from.
    pub origins: Vec<Origin>,
}

/// A file that was read: its name and its text, or why it could not be.
pub type Included = Result<(String, String), String>;

/// Puts the text of included files in the place of their includes. `read` gets the name that is
/// included and the name of the file that includes it.
///
/// # Errors
/// With file and line: a file that cannot be read, files that include each other, too many levels
/// or too much text, an include without a file.
pub fn expand(
    name: &str,
    text: &str,
    read: &dyn Fn(&str, &str) -> Included,
) -> Result<Expanded, JobError> {
    let mut expander = Expander {
        read,
        out: Expanded::default(),
        open: Vec::new(),
        instances: 0,
    };
    expander.file(name, text)?;
    Ok(expander.out)
}

struct Expander<'a> {
    read: &'a dyn Fn(&str, &str) -> Included,
    out: Expanded,
    /// Files that are being taken in, outermost first.
    open: Vec<String>,
    instances: usize,
}

/// What an include asks for.
struct Include {
    file: String,
    ignore: Vec<String>,
    /// Keys with the text of their values.
    replace: Vec<(String, String)>,
}

impl Expander<'_> {
    fn file(&mut self, name: &str, text: &str) -> Result<(), JobError> {
        self.open.push(name.to_owned());
        self.instances += 1;
        let instance = self.instances;
        let source = Source::new(name, text);
        for (number, line) in (1..).zip(text.lines()) {
            let place = Place {
                line: number,
                column: 1,
            };
            match include_of(source, place, line)? {
                Some(include) => self.include(source, place, &include)?,
                None => self.line(source, number, instance, line)?,
            }
        }
        self.open.pop();
        Ok(())
    }

    fn line(
        &mut self,
        source: Source<'_>,
        number: usize,
        instance: usize,
        line: &str,
    ) -> Result<(), JobError> {
        if self.out.text.len() + line.len() > MOST_BYTES {
            let message = format!("the job and what it includes are more than {MOST_BYTES} bytes");
            return Err(JobError::whole(source, message));
        }
        self.out.text.push_str(line);
        self.out.text.push('\n');
        self.out.origins.push(Origin {
            name: source.name.to_owned(),
            line: number,
            instance,
        });
        Ok(())
    }

    fn include(
        &mut self,
        source: Source<'_>,
        place: Place,
        include: &Include,
    ) -> Result<(), JobError> {
        let refused = |message: String| JobError::at(source, place, message);
        let (name, text) = (self.read)(&include.file, source.name).map_err(|why| {
            refused(format!("cannot include `{}`: {why}", include.file))
                .hint("a path is taken from the folder of the including file, from those above it, then from here")
        })?;
        if self.open.contains(&name) {
            let chain = [self.open.join("` -> `"), name].join("` -> `");
            return Err(refused(format!("job files include each other: `{chain}`"))
                .hint("remove one of the includes"));
        }
        if self.open.len() >= MOST_LEVELS {
            return Err(refused(format!(
                "more than {MOST_LEVELS} levels of includes"
            )));
        }
        let without: Vec<&str> = include
            .ignore
            .iter()
            .chain(include.replace.iter().map(|(key, _)| key))
            .map(String::as_str)
            .collect();
        let (from_text, from_origins) = (self.out.text.len(), self.out.origins.len());
        self.file(&name, &text)?;
        if !without.is_empty() {
            let taken = self.out.text.split_off(from_text);
            let origins = self.out.origins.split_off(from_origins);
            for (line, origin) in kept_lines(&taken, origins, &without) {
                self.out.text.push_str(line);
                self.out.text.push('\n');
                self.out.origins.push(origin);
            }
        }
        self.replace(source, place, include, from_text, from_origins)
    }

    /// Writes replaced keys in front of what was taken in, where they belong to its first document.
    fn replace(
        &mut self,
        source: Source<'_>,
        place: Place,
        include: &Include,
        at_text: usize,
        at_line: usize,
    ) -> Result<(), JobError> {
        self.instances += 1;
        let origin = Origin {
            name: source.name.to_owned(),
            line: place.line,
            instance: self.instances,
        };
        for (key, value) in include.replace.iter().rev() {
            self.out
                .text
                .insert_str(at_text, &format!("{key}: {value}\n"));
            self.out.origins.insert(at_line, origin.clone());
        }
        Ok(())
    }
}

/// The include that a line is; an alias or a map without a file is YAML's own merge.
fn include_of(source: Source<'_>, place: Place, line: &str) -> Result<Option<Include>, JobError> {
    let Some(value) = line.strip_prefix("<<:") else {
        return Ok(None);
    };
    let value = value.trim_start();
    if value.is_empty() || value.starts_with(['*', '[', '#']) {
        return Ok(None);
    }
    // The line alone is YAML: quotes and comments are its business.
    let alone = format!("include: {value}");
    let parsed = read_documents(Source::new(source.name, &alone)).map_err(|error| {
        JobError::at(source, place, error.message).hint("write `<<: FILE` or `<<: {file: FILE}`")
    })?;
    let Some(node) = parsed.first().and_then(|map| map.get("include")) else {
        return Ok(None);
    };
    if let Some(file) = node.text() {
        return Ok(Some(Include {
            file: file.to_owned(),
            ignore: Vec::new(),
            replace: Vec::new(),
        }));
    }
    let Some(file) = node.get("file") else {
        return Ok(None);
    };
    let file = file.text().ok_or_else(|| {
        JobError::at(source, place, "`file` of an include is no path")
            .hint("write `<<: {file: FILE}`")
    })?;
    let ignore = node.get("ignore").map(texts).unwrap_or_default();
    let others = node.entries().unwrap_or_default().iter();
    let replace = others
        .filter(|(key, _)| key.text != "file" && key.text != "ignore")
        .map(|(key, value)| (key.text.clone(), flow(value)))
        .collect();
    Ok(Some(Include {
        file: file.to_owned(),
        ignore,
        replace,
    }))
}

fn texts(node: &Node) -> Vec<String> {
    let items = node.items().unwrap_or(std::slice::from_ref(node));
    let text = |item: &Node| item.text().map(str::to_owned);
    items.iter().filter_map(text).collect()
}

/// A value as YAML on one line.
fn flow(node: &Node) -> String {
    match &node.kind {
        Kind::Scalar {
            raw,
            style: Style::Plain,
        } => raw.clone(),
        Kind::Scalar { raw, .. } => format!("'{}'", raw.replace('\'', "''")),
        Kind::List(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Kind::Map(entries) => {
            let entry = |(key, value): &(crate::node::Key, Node)| {
                format!("'{}': {}", key.text.replace('\'', "''"), flow(value))
            };
            let entries: Vec<String> = entries.iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// The lines that belong to none of these keys of the top level.
fn kept_lines<'a>(text: &'a str, origins: Vec<Origin>, without: &[&str]) -> Vec<(&'a str, Origin)> {
    let mut dropping = false;
    let mut kept = Vec::new();
    for (line, origin) in text.lines().zip(origins) {
        let begins = line
            .chars()
            .next()
            .is_some_and(|c| !c.is_whitespace() && c != '#');
        // A list may stand at the key's own column.
        if begins && !line.starts_with("- ") {
            let key = line.split(':').next().unwrap_or(line);
            let key = key.trim_matches(['\'', '"', ' ']);
            dropping = without.contains(&key);
        }
        if !dropping {
            kept.push((line, origin));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Result<Expanded, JobError> {
        let read = |name: &str, _from: &str| -> Included {
            let found = files.iter().find(|(known, _)| *known == name);
            let (name, text) = found.ok_or_else(|| "no such file".to_owned())?;
            Ok(((*name).to_owned(), (*text).to_owned()))
        };
        let (name, text) = files[0];
        expand(name, text, &read)
    }

    #[test]
    fn text_takes_the_place_of_its_include() {
        let files = [
            ("a.yaml", "x: 1\n<<: b.yaml # more\ny: 2\n"),
            ("b.yaml", "b: 1\n---\nc: 2\n"),
        ];
        let expanded = of(&files).expect("expands");
        assert_eq!(expanded.text, "x: 1\nb: 1\n---\nc: 2\ny: 2\n");
        let places: Vec<(&str, usize)> = expanded
            .origins
            .iter()
            .map(|origin| (origin.name.as_str(), origin.line))
            .collect();
        let expected = [
            ("a.yaml", 1),
            ("b.yaml", 1),
            ("b.yaml", 2),
            ("b.yaml", 3),
            ("a.yaml", 3),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn keys_are_replaced_and_left_out() {
        let files = [
            (
                "a.yaml",
                "<<: {file: 'b.yaml', disk: '1SSD', n: [1, 2], ignore: [c, d]}\n",
            ),
            (
                "b.yaml",
                "disk: 1HDD\nb: 1\nc:\n  deep: 1\nd:\n- 1\n- 2\ne: 3\n",
            ),
        ];
        let expanded = of(&files).expect("expands");
        assert_eq!(expanded.text, "disk: '1SSD'\nn: [1, 2]\nb: 1\ne: 3\n");
        assert_eq!(expanded.origins.len(), 4);
    }

    #[test]
    fn merges_of_yaml_stay() {
        let text = "base: &b {x: 1}\n<<: *b\n<<: {y: 1}\n";
        let expanded = of(&[("a.yaml", text)]).expect("expands");
        assert_eq!(expanded.text, text);
    }

    #[test]
    fn what_cannot_be_included() {
        let message = |files: &[(&str, &str)]| of(files).expect_err("an error").to_string();
        let missing = message(&[("a.yaml", "x: 1\n<<: gone.yaml\n")]);
        assert!(
            missing.contains("a.yaml:2:1: cannot include `gone.yaml`: no such file"),
            "{missing}"
        );
        let round = message(&[("a.yaml", "<<: b.yaml\n"), ("b.yaml", "\n<<: a.yaml\n")]);
        assert!(
            round.contains(
                "b.yaml:2:1: job files include each other: `a.yaml` -> `b.yaml` -> `a.yaml`"
            ),
            "{round}"
        );
        let no_path = message(&[("a.yaml", "<<: {file: [b]}\n")]);
        assert!(
            no_path.contains("`file` of an include is no path"),
            "{no_path}"
        );
        let broken = message(&[("a.yaml", "<<: {file\n")]);
        assert!(broken.contains("a.yaml:1:1"), "{broken}");
    }
}
