//! A case as it stands in a document: checked, typed where a type is known, not yet resolved
//! against a machine.

use crate::catalog::{Catalog, OptionKind, OptionSpec, Program};
use crate::error::{JobError, Source};
use crate::node::{Key, Kind, Node, Place, Style};
use crate::setting;
use crate::value::{self, BadValue, Whole};
use kdyno_model::{Better, Command, Setting, Unit};
use std::collections::BTreeMap;

/// What a case or a case with its variant asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseSpec {
    /// What the job calls the test.
    pub testcase: String,
    /// The catalog program.
    pub program: String,
    /// Options that the job gives, as text; null options are absent.
    pub options: BTreeMap<String, String>,
    /// The command, where the job gives it.
    pub command: Option<Command>,
    /// What is said about metrics of a command.
    pub metrics: BTreeMap<String, MetricNote>,
    /// `metrics: none`: the command prints no figure and only its resource usage counts.
    pub no_figures: bool,
    /// Variables added to the environment.
    pub environment: BTreeMap<String, String>,
    /// CPUs it may use.
    pub affinity: Option<String>,
    /// Settings of the machine in document order.
    pub settings: Vec<Setting>,
    /// Working directory.
    pub directory: Option<String>,
    /// Time limit of a run, milliseconds.
    pub timeout_ms: Option<u64>,
    /// Monitors by name; the default set when absent.
    pub monitors: Option<Vec<String>>,
    /// Memory that the machine must have, as text.
    pub need_memory: Option<String>,
    /// CPUs that the machine must have.
    pub need_cpu: Option<u64>,
}

/// What a job says of a metric of its command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricNote {
    /// Its unit.
    pub unit: Unit,
    /// Which direction is good.
    pub better: Better,
    /// What it means.
    pub about: String,
}

/// Any machine will do to see whether a value is well-formed.
const SOME_BOX: Whole = Whole {
    cpus: 1,
    memory_bytes: 1 << 30,
};

impl CaseSpec {
    /// Reads a normalised document or point without axes.
    ///
    /// # Errors
    /// A value that its key cannot have; a missing command or option.
    pub fn read(source: Source<'_>, node: &Node, catalog: &Catalog) -> Result<Self, JobError> {
        let program = crate::keys::program_of(source, node, catalog)?
            .ok_or_else(|| JobError::at(source, node.place, "no program and no command"))?;
        let reader = Reader { source, node };
        let metrics = node.get("metrics");
        let no_figures = metrics.and_then(Node::text) == Some("none");
        let spec = Self {
            testcase: reader
                .text("testcase")?
                .map_or_else(|| program.name.clone(), str::to_owned),
            program: program.name.clone(),
            options: reader.options(program)?,
            command: reader.command()?,
            metrics: if no_figures {
                BTreeMap::new()
            } else {
                reader.metrics()?
            },
            no_figures,
            environment: reader.texts("environment")?,
            affinity: reader.typed("affinity", value::cpu_list)?,
            settings: reader.settings()?,
            directory: reader.directory()?,
            timeout_ms: reader.typed("timeout", value::time_ms)?,
            monitors: reader.monitors()?,
            need_memory: reader.need_memory()?,
            need_cpu: reader.typed("need_cpu", value::count)?,
        };
        spec.check_testcase(&reader)?;
        Ok(spec)
    }

    fn check_testcase(&self, reader: &Reader<'_>) -> Result<(), JobError> {
        let fine = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        if !self.testcase.is_empty() && self.testcase.len() <= 80 && self.testcase.chars().all(fine)
        {
            return Ok(());
        }
        let message = format!("`{}` cannot be the name of a testcase", self.testcase);
        let place = reader
            .node
            .get("testcase")
            .map_or(reader.node.place, |n| n.place);
        Err(JobError::at(reader.source, place, message)
            .hint("use letters, digits, `-`, `_` and `.`, at most 80"))
    }
}

struct Reader<'a> {
    source: Source<'a>,
    node: &'a Node,
}

impl<'a> Reader<'a> {
    fn bad(&self, place: Place, key: &str, bad: BadValue) -> JobError {
        JobError::at(self.source, place, format!("`{key}`: {}", bad.message)).hint(bad.hint)
    }

    fn scalar(&self, key: &str, node: &'a Node) -> Result<&'a str, JobError> {
        node.text().ok_or_else(|| {
            let message = format!("`{key}` holds {}; one value is expected", node.kind_name());
            JobError::at(self.source, node.place, message)
        })
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, JobError> {
        match self.node.get(key) {
            Some(node) if !node.is_null() => self.scalar(key, node).map(Some),
            _ => Ok(None),
        }
    }

    fn typed<T>(
        &self,
        key: &str,
        read: fn(&str) -> Result<T, BadValue>,
    ) -> Result<Option<T>, JobError> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let place = self.node.get(key).map_or(self.node.place, |n| n.place);
        read(text)
            .map(Some)
            .map_err(|bad| self.bad(place, key, bad))
    }

    fn entries(&self, key: &str) -> Result<&'a [(Key, Node)], JobError> {
        match self.node.get(key) {
            Some(node) if !node.is_null() => node.entries().ok_or_else(|| {
                let message = format!("`{key}` holds {}; a map is expected", node.kind_name());
                JobError::at(self.source, node.place, message)
            }),
            _ => Ok(&[]),
        }
    }

    fn texts(&self, key: &str) -> Result<BTreeMap<String, String>, JobError> {
        let mut texts = BTreeMap::new();
        for (name, value) in self.entries(key)? {
            if name.text.is_empty() || name.text.contains(['=', '\0']) {
                let message = format!("`{}` cannot be the name of a variable", name.text);
                return Err(JobError::at(self.source, name.place, message));
            }
            if !value.is_null() {
                let text = self.scalar(&name.text, value)?;
                if text.contains('\0') {
                    return Err(JobError::at(
                        self.source,
                        value.place,
                        "a value cannot hold a NUL character",
                    ));
                }
                texts.insert(name.text.clone(), text.to_owned());
            }
        }
        Ok(texts)
    }

    fn options(&self, program: &Program) -> Result<BTreeMap<String, String>, JobError> {
        let mut options = BTreeMap::new();
        if program.name == "command" {
            return Ok(options);
        }
        for (key, value) in self.entries(&program.name)? {
            let Some(spec) = program.option(&key.text).filter(|_| !value.is_null()) else {
                continue;
            };
            let text = self.scalar(&key.text, value)?;
            check_option(spec, text).map_err(|(message, hint)| {
                let error = JobError::at(
                    self.source,
                    value.place,
                    format!("`{}`: {message}", key.text),
                );
                if let OptionKind::Choice(choices) = &spec.kind {
                    return error.hint_nearest(text, choices.iter().map(String::as_str));
                }
                error.hint(hint)
            })?;
            options.insert(key.text.clone(), text.to_owned());
        }
        let missing = program
            .options
            .iter()
            .find(|o| o.required && !options.contains_key(&o.name));
        if let Some(missing) = missing {
            let message = format!("{} needs the option `{}`", program.name, missing.name);
            let error = JobError::at(self.source, self.node.place, message);
            return Err(match &missing.kind {
                OptionKind::Choice(choices) => {
                    error.hint(format!("one of: {}", choices.join(", ")))
                }
                _ => error.hint(missing.about.clone()),
            });
        }
        Ok(options)
    }

    fn command(&self) -> Result<Option<Command>, JobError> {
        let Some(node) = self.node.get("command") else {
            return Ok(None);
        };
        let nul = || {
            JobError::at(
                self.source,
                node.place,
                "a command cannot hold a NUL character",
            )
        };
        let command = match &node.kind {
            Kind::List(items) => {
                let words = items
                    .iter()
                    .map(|word| self.word(word))
                    .collect::<Result<Vec<_>, _>>()?;
                if words.iter().any(|w| w.contains('\0')) {
                    return Err(nul());
                }
                Command::Argv(words)
            }
            _ => Command::Shell(node.text().unwrap_or_default().to_owned()),
        };
        let (empty, has_nul) = match &command {
            Command::Argv(words) => (words.first().is_none_or(String::is_empty), false),
            Command::Shell(line) => (line.trim().is_empty(), line.contains('\0')),
            Command::Workload(_) => (false, false),
        };
        if has_nul {
            return Err(nul());
        }
        if empty {
            return Err(
                JobError::at(self.source, node.place, "the command is empty")
                    .hint("a string goes to /bin/sh -c, a list of words is executed as it is"),
            );
        }
        Ok(Some(command))
    }

    /// A word of a command: any scalar, the empty one too.
    fn word(&self, node: &Node) -> Result<String, JobError> {
        match &node.kind {
            Kind::Scalar { raw, style } if *style == Style::Quoted || !node.is_null() => {
                Ok(raw.clone())
            }
            _ => {
                let message = format!("a command holds {}; a word is expected", node.kind_name());
                Err(JobError::at(self.source, node.place, message)
                    .hint("quote an empty word: \"\""))
            }
        }
    }

    fn directory(&self) -> Result<Option<String>, JobError> {
        match self.text("directory")? {
            Some("") => {
                let place = self
                    .node
                    .get("directory")
                    .map_or(self.node.place, |n| n.place);
                Err(JobError::at(self.source, place, "`directory` is empty"))
            }
            directory => Ok(directory.map(str::to_owned)),
        }
    }

    fn metrics(&self) -> Result<BTreeMap<String, MetricNote>, JobError> {
        let mut metrics = BTreeMap::new();
        for (name, value) in self.entries("metrics")? {
            let inside = Reader {
                source: self.source,
                node: value,
            };
            let known = ["unit", "better", "about"];
            for (key, _) in value.entries().unwrap_or_default() {
                if !known.contains(&key.text.as_str()) {
                    let message = format!("unknown key `{}`", key.text);
                    return Err(JobError::at(self.source, key.place, message)
                        .hint_nearest(&key.text, known));
                }
            }
            if value.entries().is_none() && !value.is_null() {
                let message = format!(
                    "`{}` holds {}; a map is expected",
                    name.text,
                    value.kind_name()
                );
                return Err(JobError::at(self.source, value.place, message)
                    .hint("write {unit: ops/s, better: higher}"));
            }
            let better = inside.typed("better", direction)?.unwrap_or_default();
            let unit = Unit(inside.text("unit")?.unwrap_or_default().to_owned());
            let about = inside.text("about")?.unwrap_or_default().to_owned();
            metrics.insert(
                name.text.clone(),
                MetricNote {
                    unit,
                    better,
                    about,
                },
            );
        }
        Ok(metrics)
    }

    fn settings(&self) -> Result<Vec<Setting>, JobError> {
        let mut settings = Vec::new();
        for group in setting::GROUPS {
            for (key, value) in self.entries(group)? {
                if value.is_null() {
                    continue;
                }
                let text = self.scalar(&key.text, value)?;
                setting::check(group, &key.text, text).map_err(|bad| {
                    JobError::at(self.source, key.place, bad.message).hint(bad.hint)
                })?;
                settings.push(Setting {
                    key: format!("{group}.{}", key.text),
                    value: text.to_owned(),
                });
            }
        }
        Ok(settings)
    }

    fn monitors(&self) -> Result<Option<Vec<String>>, JobError> {
        let Some(node) = self.node.get("monitors").filter(|node| !node.is_null()) else {
            return Ok(None);
        };
        match node.text() {
            Some("none") => return Ok(Some(Vec::new())),
            Some("all") => return Ok(Some(vec!["all".to_owned()])),
            _ => {}
        }
        let items = node.items().ok_or_else(|| {
            JobError::at(self.source, node.place, "`monitors` is a list of names")
                .hint("write [vmstat, meminfo], all or none")
        })?;
        let names = items
            .iter()
            .map(|item| self.scalar("monitors", item).map(str::to_owned));
        names.collect::<Result<_, _>>().map(Some)
    }

    fn need_memory(&self) -> Result<Option<String>, JobError> {
        let Some(text) = self.text("need_memory")? else {
            return Ok(None);
        };
        let place = self
            .node
            .get("need_memory")
            .map_or(self.node.place, |n| n.place);
        value::size_bytes(text, SOME_BOX).map_err(|bad| self.bad(place, "need_memory", bad))?;
        Ok(Some(text.to_owned()))
    }
}

fn direction(text: &str) -> Result<Better, BadValue> {
    match text {
        "higher" => Ok(Better::Higher),
        "lower" => Ok(Better::Lower),
        "neither" => Ok(Better::Neither),
        _ => Err(BadValue {
            message: format!("`{text}` is no direction"),
            hint: "write higher, lower or neither",
        }),
    }
}

fn check_option(spec: &OptionSpec, text: &str) -> Result<(), (String, &'static str)> {
    let plain = |bad: BadValue| (bad.message, bad.hint);
    match &spec.kind {
        OptionKind::Choice(choices) if choices.iter().any(|c| c == text) => Ok(()),
        OptionKind::Choice(_) => Err((format!("`{text}` is not one of its values"), "")),
        OptionKind::Size => match value::size_bytes(text, SOME_BOX).map_err(plain)? {
            0 => Err((
                format!("`{text}` is no memory at all"),
                "give a size such as 256M",
            )),
            _ => Ok(()),
        },
        OptionKind::Time => value::time_ms(text).map(drop).map_err(plain),
        OptionKind::Tasks => value::tasks(text, SOME_BOX).map(drop).map_err(plain),
        OptionKind::Count => value::count(text).map(drop).map_err(plain),
        OptionKind::Flag => value::flag(text).map(drop).map_err(plain),
        OptionKind::Text | OptionKind::Path if text.contains('\0') => Err((
            "a value cannot hold a NUL character".to_owned(),
            "remove it",
        )),
        OptionKind::Text | OptionKind::Path => Ok(()),
    }
}
