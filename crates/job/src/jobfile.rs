//! A job file: documents, axes and variants, expanded to cases.

use crate::axes::{Axis, axes_of, combinations, point};
use crate::catalog::{Catalog, Program};
use crate::error::{JobError, Origin, Source};
use crate::increment::lay;
use crate::keys::{self, PLAN_KEYS};
use crate::name::{canonical, case_ref};
use crate::node::{Key, Kind, Node, Place};
use crate::read::read_documents;
use crate::spec::CaseSpec;
use crate::value;
use kdyno_model::{CaseRef, VariantName};

/// Beyond this many cases nothing is expanded, whatever the user says.
pub const MOST_CASES: u64 = 1_000_000;

/// A job that was read and checked; its cases are made on demand.
#[derive(Clone, Debug)]
pub struct JobFile {
    source_name: String,
    source_text: String,
    origins: Vec<Origin>,
    documents: Vec<Document>,
    /// What is under test, in the order of the file, then of the command line.
    pub variants: Vec<Variant>,
    /// `runs:` of the file.
    pub runs: Option<u32>,
    /// `warm_up:` of the file.
    pub warm_up: Option<u32>,
    /// `seed:` of the file.
    pub seed: Option<u64>,
    /// What a reader should know: keys without effect, documents without a program.
    pub notes: Vec<String>,
}

/// A document laid on the first one, normalised.
#[derive(Clone, Debug)]
struct Document {
    node: Node,
    program: Program,
    axes: Vec<Axis>,
}

/// A column of the table: what it lays on top of each case.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub name: VariantName,
    /// What it changes, as written.
    pub node: Node,
    /// The option that made it, when it is not from the file.
    pub option: Option<String>,
}

/// One point of the axes with everything that its variants ask for.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name and hash; variants are no part of it.
    pub reference: CaseRef,
    /// The canonical text, of which the hash is taken.
    pub canonical: String,
    /// What it asks for without a variant.
    pub base: CaseSpec,
    /// What it asks for with each variant, in their order.
    pub variants: Vec<CaseSpec>,
}

impl JobFile {
    /// Reads and checks a job file.
    ///
    /// # Errors
    /// Anything that is wrong with it, with place and advice.
    pub fn read(source: Source<'_>, catalog: &Catalog) -> Result<Self, JobError> {
        let raw = read_documents(source)?;
        if let Some(bad) = raw.iter().find(|node| node.entries().is_none()) {
            let message = format!("a job is a map of keys, not {}", bad.kind_name());
            return Err(
                JobError::at(source, bad.place, message).hint("begin with `testcase: NAME`")
            );
        }
        let Some(first) = raw.first() else {
            return Err(JobError::whole(source, "the job file is empty")
                .hint("begin with `testcase: NAME`"));
        };
        let mut job = Self {
            source_name: source.name.to_owned(),
            source_text: source.text.to_owned(),
            origins: source.origins.to_vec(),
            documents: Vec::new(),
            variants: Vec::new(),
            runs: plan_number(source, first, "runs")?,
            warm_up: plan_number(source, first, "warm_up")?,
            seed: plan_seed(source, first)?,
            notes: Vec::new(),
        };
        job.take_documents(source, &raw, catalog)?;
        job.take_variants(source, first.get("variants"), catalog)?;
        Ok(job)
    }

    /// A job made of commands on the command line: one case; with several, each is a variant.
    #[must_use]
    pub fn of_commands(commands: &[Node], testcase: &str, catalog: &Catalog) -> Option<Self> {
        let program = catalog.get("command")?.clone();
        let key = |text: &str| Key {
            text: text.to_owned(),
            place: Place::default(),
        };
        let mut node = Node::empty_map(Place::default());
        node.set(key("testcase"), Node::plain(testcase));
        node.set(key("metrics"), Node::plain("none"));
        node.set(key("command"), commands.first()?.clone());
        let variants = commands.iter().enumerate().map(|(i, command)| {
            let mut over = Node::empty_map(Place::default());
            over.set(key("command"), command.clone());
            let shown = printable(&command_line(command));
            let earlier = commands[..i]
                .iter()
                .filter(|c| printable(&command_line(c)) == shown)
                .count();
            let name = if earlier == 0 {
                shown
            } else {
                format!("{shown} #{}", earlier + 1)
            };
            Variant {
                name: VariantName(name),
                node: over,
                option: Some("the command line".to_owned()),
            }
        });
        let variants = if commands.len() > 1 {
            variants.collect()
        } else {
            Vec::new()
        };
        Some(Self {
            source_name: "the command line".to_owned(),
            source_text: String::new(),
            origins: Vec::new(),
            documents: vec![Document {
                node,
                program,
                axes: Vec::new(),
            }],
            variants,
            runs: None,
            warm_up: None,
            seed: None,
            notes: Vec::new(),
        })
    }

    fn source(&self) -> Source<'_> {
        Source {
            name: &self.source_name,
            text: &self.source_text,
            origins: &self.origins,
        }
    }

    /// Documents after the first are laid on the first, each alone; their keys replace whole.
    fn take_documents(
        &mut self,
        source: Source<'_>,
        raw: &[Node],
        catalog: &Catalog,
    ) -> Result<(), JobError> {
        let Some((first, later)) = raw.split_first() else {
            return Ok(());
        };
        let mut ignored_keys: Vec<String> = Vec::new();
        let first = lay(source, &Node::empty_map(first.place), first, catalog)?;
        let mut all: Vec<(Place, Node)> = vec![(first.place, first.clone())];
        for over in later {
            all.push((over.place, lay(source, &first, over, catalog)?));
        }
        for (place, node) in all {
            let program = keys::program_of(source, &node, catalog)?;
            let (node, ignored) = keys::normalise(&node, program);
            ignored_keys.extend(ignored);
            keys::check_keys(source, &node, program, catalog, true)?;
            let Some(program) = program else {
                self.notes.push(format!(
                    "{}:{}: this document names no program and makes no case",
                    source.name, place.line
                ));
                continue;
            };
            let node = without_plan_keys(&node);
            let axes = axes_of(source, &node, program)?;
            // The first point shows a wrong value before anything is planned.
            CaseSpec::read(source, &point(&node, &axes, 0), catalog)?;
            self.documents.push(Document {
                node,
                program: program.clone(),
                axes,
            });
        }
        ignored_keys.sort_unstable();
        ignored_keys.dedup();
        if !ignored_keys.is_empty() {
            self.notes.push(format!(
                "keys without effect here: {}",
                ignored_keys.join(", ")
            ));
        }
        if self.documents.is_empty() {
            return Err(no_program(source, &first, catalog));
        }
        Ok(())
    }

    fn take_variants(
        &mut self,
        source: Source<'_>,
        node: Option<&Node>,
        catalog: &Catalog,
    ) -> Result<(), JobError> {
        let Some(node) = node.filter(|node| !node.is_null()) else {
            return Ok(());
        };
        let entries = node.entries().ok_or_else(|| {
            JobError::at(
                source,
                node.place,
                format!("`variants` holds {}", node.kind_name()),
            )
            .hint("write one `name: {what it changes}` per variant")
        })?;
        for (name, over) in entries {
            if name.text.trim().is_empty() || name.text.chars().any(char::is_control) {
                return Err(JobError::at(
                    source,
                    name.place,
                    "a variant needs a printable name",
                ));
            }
            if over.entries().is_none() && !over.is_null() {
                let message = format!("the variant `{}` holds {}", name.text, over.kind_name());
                return Err(JobError::at(source, over.place, message)
                    .hint("write what it changes as a map, or {} for the case as it is"));
            }
            let over = if over.is_null() {
                Node::empty_map(over.place)
            } else {
                over.clone()
            };
            self.check_variant(source, &name.text, &over, catalog)?;
            self.variants.push(Variant {
                name: VariantName(name.text.clone()),
                node: over,
                option: None,
            });
        }
        Ok(())
    }

    /// A variant may hold known keys and no axes; it belongs to every document's program.
    fn check_variant(
        &self,
        source: Source<'_>,
        name: &str,
        over: &Node,
        catalog: &Catalog,
    ) -> Result<(), JobError> {
        for document in &self.documents {
            let (node, _) = keys::normalise(over, Some(&document.program));
            keys::check_keys(source, &node, Some(&document.program), catalog, false)?;
            if let Some(axis) = axes_of(source, &node, &document.program)?.first() {
                let message = format!(
                    "the variant `{name}` holds an axis, `{}`",
                    axis.path.join(".")
                );
                return Err(JobError::at(source, axis.place, message).hint(
                    "a variant is one column: give one value here, or make several variants",
                ));
            }
            if let Some(testcase) = node.get("testcase") {
                let message = format!("the variant `{name}` renames the testcase");
                return Err(JobError::at(source, testcase.place, message)
                    .hint("a variant changes how a case runs, not which case it is"));
            }
        }
        Ok(())
    }

    /// Adds `NAME:KEY=VALUE` from the command line; the same NAME adds up.
    ///
    /// # Errors
    /// Not of that form, an unknown key, or a value that the key cannot have.
    pub fn add_variant_option(&mut self, text: &str, catalog: &Catalog) -> Result<(), JobError> {
        let shown = format!("-V {text}");
        let source = Source::new(&shown, "");
        let form = || {
            JobError::whole(source, "not of the form NAME:KEY=VALUE")
                .hint("for instance: -V thp-on:thp.enabled=always -V thp-off:thp.enabled=never")
        };
        let (name, assignment) = text.split_once(':').ok_or_else(form)?;
        let (key, value) = assignment.split_once('=').ok_or_else(form)?;
        if name.trim().is_empty() || key.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(form());
        }
        let mut over = Node::empty_map(Place::default());
        // An empty value is a value here, not nothing: `environment.X=`.
        let value = if value.is_empty() {
            Node::quoted(value)
        } else {
            Node::plain(value)
        };
        over.set_path(&split_key(key.trim(), catalog), value);
        self.check_variant(source, name, &over, catalog)?;
        match self
            .variants
            .iter_mut()
            .find(|variant| variant.name.as_str() == name)
        {
            Some(variant) => {
                variant.node.merge_deep(&over);
                variant.option = Some(shown);
            }
            None => {
                let name = VariantName(name.to_owned());
                self.variants.push(Variant {
                    name,
                    node: over,
                    option: Some(shown),
                });
            }
        }
        Ok(())
    }

    /// How many cases the axes make; saturates.
    #[must_use]
    pub fn case_count(&self) -> u64 {
        self.documents
            .iter()
            .fold(0, |sum: u64, d| sum.saturating_add(combinations(&d.axes)))
    }

    /// Makes all cases, equal ones once. Without variants of its own the job has the one that
    /// `default_variant` names.
    ///
    /// # Errors
    /// A value that its key cannot have, a variant that changes nothing, too many cases.
    pub fn cases(&self, default_variant: &str, catalog: &Catalog) -> Result<CaseList, JobError> {
        let count = self.case_count();
        if count > MOST_CASES {
            return Err(
                JobError::whole(self.source(), format!("the axes make {count} cases"))
                    .hint(format!("at most {MOST_CASES} are possible; split the job")),
            );
        }
        let mut cases: Vec<Case> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for document in &self.documents {
            for n in 0..combinations(&document.axes) {
                let node = point(&document.node, &document.axes, n);
                let base = CaseSpec::read(self.source(), &node, catalog)?;
                let reference = case_ref(&base, &document.program);
                if seen.insert(reference.id.clone()) {
                    let variants = self.with_variants(&node, &base, document, catalog)?;
                    cases.push(Case {
                        canonical: canonical(&base, &document.program),
                        reference,
                        base,
                        variants,
                    });
                }
            }
        }
        self.refuse_idle_variants(&cases)?;
        let (variants, descriptions) = if self.variants.is_empty() {
            (
                vec![VariantName(default_variant.to_owned())],
                vec![String::new()],
            )
        } else {
            self.variants
                .iter()
                .map(|variant| (variant.name.clone(), variant.describe()))
                .unzip()
        };
        Ok(CaseList {
            variants,
            descriptions,
            cases,
        })
    }

    fn with_variants(
        &self,
        node: &Node,
        base: &CaseSpec,
        document: &Document,
        catalog: &Catalog,
    ) -> Result<Vec<CaseSpec>, JobError> {
        if self.variants.is_empty() {
            return Ok(vec![base.clone()]);
        }
        let read = |variant: &Variant| {
            let (over, _) = keys::normalise(&variant.node, Some(&document.program));
            let mut merged = node.clone();
            merged.merge_deep(&over);
            CaseSpec::read(self.source(), &merged, catalog).map_err(|mut error| {
                if let (None, Some(option)) = (error.place, &variant.option) {
                    error.source_name.clone_from(option);
                }
                error
            })
        };
        self.variants.iter().map(read).collect()
    }

    /// Two columns that measure the same thing are a mistake of the job, unless they are
    /// commands typed twice.
    fn refuse_idle_variants(&self, cases: &[Case]) -> Result<(), JobError> {
        if self.source_text.is_empty() {
            return Ok(());
        }
        for (i, a) in self.variants.iter().enumerate() {
            for (j, b) in self.variants.iter().enumerate().skip(i + 1) {
                if cases
                    .iter()
                    .all(|case| case.variants[i] == case.variants[j])
                {
                    let message = format!(
                        "the variants `{}` and `{}` measure the same thing",
                        a.name, b.name
                    );
                    return Err(JobError::at(self.source(), b.node.place, message)
                        .hint("let one of them change something, or remove it"));
                }
            }
        }
        Ok(())
    }
}

/// A job that runs nothing: most likely its testcase is a program's name, mistyped.
fn no_program(source: Source<'_>, first: &Node, catalog: &Catalog) -> JobError {
    let testcase = first.get("testcase").filter(|node| node.text().is_some());
    let (Some(node), Some(text)) = (testcase, testcase.and_then(Node::text)) else {
        let names: Vec<&str> = catalog.names().collect();
        let hint = format!(
            "give `command: ...`, or a program of the catalog: {}",
            names.join(", ")
        );
        return JobError::whole(source, "the job names no program").hint(hint);
    };
    let message = format!(
        "the job names no program: there is no `command`, and `{text}` is none of the catalog"
    );
    JobError::at(source, node.place, message).hint_nearest(text, catalog.names())
}

/// All cases of a job and the names of its columns.
#[derive(Clone, Debug)]
pub struct CaseList {
    /// The columns, the first is the base.
    pub variants: Vec<VariantName>,
    /// What each column changes, in the same order; empty for one that changes nothing.
    pub descriptions: Vec<String>,
    /// The rows.
    pub cases: Vec<Case>,
}

impl Variant {
    /// What it changes, `key=value` after `key=value`.
    fn describe(&self) -> String {
        let mut parts = Vec::new();
        describe_into(&self.node, "", &mut parts);
        parts.join(" ")
    }
}

/// Text that stands in a table: line ends and other control characters are shown as blanks.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn describe_into(node: &Node, path: &str, parts: &mut Vec<String>) {
    match node.entries() {
        Some(entries) => {
            for (key, value) in entries {
                let inner = if path.is_empty() {
                    key.text.clone()
                } else {
                    format!("{path}.{}", key.text)
                };
                describe_into(value, &inner, parts);
            }
        }
        None => parts.push(format!("{path}={}", printable(&command_line(node)))),
    }
}

fn command_line(node: &Node) -> String {
    match &node.kind {
        Kind::List(words) => words
            .iter()
            .filter_map(Node::text)
            .collect::<Vec<_>>()
            .join(" "),
        _ => node.text().unwrap_or_default().to_owned(),
    }
}

fn without_plan_keys(node: &Node) -> Node {
    let entries = node.entries().unwrap_or_default().iter();
    let kept = entries.filter(|(key, _)| !PLAN_KEYS.contains(&key.text.as_str()));
    Node {
        kind: Kind::Map(kept.cloned().collect()),
        place: node.place,
    }
}

/// `vm-scalability.madv_thp` is two keys; `sysctl.vm.swappiness` is `sysctl` and
/// `vm.swappiness`, since keys below some maps are free text.
pub(crate) fn split_key(key: &str, catalog: &Catalog) -> Vec<String> {
    match key.split_once('.') {
        Some((first, rest)) if keys::is_free_map(first) || catalog.get(first).is_some() => {
            vec![first.to_owned(), rest.to_owned()]
        }
        Some(_) => key.split('.').map(str::to_owned).collect(),
        None => vec![key.to_owned()],
    }
}

fn plan_number(source: Source<'_>, node: &Node, key: &str) -> Result<Option<u32>, JobError> {
    let Some(node) = node.get(key).filter(|node| !node.is_null()) else {
        return Ok(None);
    };
    let number = node
        .text()
        .and_then(|text| value::count(text).ok())
        .and_then(|n| u32::try_from(n).ok());
    number.map(Some).ok_or_else(|| {
        JobError::at(
            source,
            node.place,
            format!("`{key}` is not a number of runs"),
        )
        .hint("write a whole number, such as 5")
    })
}

fn plan_seed(source: Source<'_>, node: &Node) -> Result<Option<u64>, JobError> {
    let Some(node) = node.get("seed").filter(|node| !node.is_null()) else {
        return Ok(None);
    };
    let seed = node.text().and_then(|text| text.parse().ok());
    seed.map(Some).ok_or_else(|| {
        JobError::at(source, node.place, "`seed` is not a number")
            .hint("write a whole number below 2^64")
    })
}
