//! The program catalog: one folder per program below `catalog/`, all data.
//!
//! `program.yaml` says what the program is, where it comes from, which options it has, how its
//! command line is made of them, and how its output is read. Adding a program is one folder.

mod load;

use crate::error::{JobError, Source};
use kdyno_model::ExtractRules;

/// The folders that are built in, in order of their names.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// All programs that a job can name.
#[derive(Clone, Debug)]
pub struct Catalog {
    programs: Vec<Program>,
}

/// A program that a job can run.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name, the key in a job.
    pub name: String,
    /// What it measures, a sentence.
    pub about: String,
    /// Where its source is.
    pub upstream: Option<String>,
    /// The executable; `None` when the job gives the command.
    pub tool: Option<Tool>,
    /// What produced the figures when kdyno's own workload runs.
    pub instrument_builtin: Option<String>,
    /// What produced the figures otherwise.
    pub instrument_external: String,
    /// Its options in the order of the entry.
    pub options: Vec<OptionSpec>,
    /// Names computed from options and machine, in order.
    pub lets: Vec<(String, String)>,
    /// The command line in parts.
    pub command: Vec<Part<Vec<String>>>,
    /// Variables that its options become.
    pub environment: Vec<Part<Vec<(String, String)>>>,
    /// Settings that cases of it need.
    pub settings: Vec<Part<Vec<(String, String)>>>,
    /// What the machine must have for cases of it: a name and how much.
    pub needs: Vec<Part<Vec<(String, String)>>>,
    /// Commands before the server.
    pub setup: Vec<Part<Vec<String>>>,
    /// What the program talks to.
    pub server: Option<ServerSpec>,
    /// Commands once the server is ready.
    pub load: Vec<Part<Vec<String>>>,
    /// Expression for the largest number of rounds; once when absent.
    pub rounds_at_most: Option<String>,
    /// Expression, in milliseconds, after which no round begins.
    pub rounds_until: Option<String>,
    /// Expression for the time limit of a run, in milliseconds.
    pub timeout: Option<String>,
    /// How its output is read; the prefix is filled in per case.
    pub rules: ExtractRules,
    /// Metrics that are divided by a number: metric, expression.
    pub per: Vec<(String, String)>,
    /// Metrics that only some values of an option give.
    pub only: Vec<Only>,
}

/// A metric that only some values of an option give, or all but some.
#[derive(Clone, Debug)]
pub struct Only {
    /// Which metric.
    pub metric: String,
    /// Which option.
    pub option: String,
    /// Values; `*` stands for any characters.
    pub values: Vec<String>,
    /// Whether all other values give it, instead of these.
    pub is_except: bool,
}

impl Only {
    /// Whether the metric is there when the option has this value.
    #[must_use]
    pub fn allows(&self, value: &str) -> bool {
        let listed = self.values.iter().any(|pattern| matches(pattern, value));
        listed != self.is_except
    }
}

/// Whether a value is one that a pattern names, in which `*` stands for any characters.
#[must_use]
pub fn matches(pattern: &str, value: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == value;
    };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inside = value
        .strip_prefix(start)
        .and_then(|behind| behind.strip_suffix(end));
    // Each piece where it is found first: that leaves the most for those behind it.
    let left = inside.and_then(|inside| {
        let mut pieces = middle.split('*');
        pieces.try_fold(inside, |left, piece| Some(left.split_once(piece)?.1))
    });
    left.is_some()
}

/// The executable of a program.
#[derive(Clone, Debug)]
pub struct Tool {
    /// What is looked for in `PATH`; a template where options say which it is.
    pub name: String,
    /// The workload of kdyno that stands in for it.
    pub builtin: Option<String>,
    /// How to get it.
    pub hint: String,
}

/// A server that a program talks to.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// Its command line in parts; without words there is none.
    pub command: Vec<Part<Vec<String>>>,
    /// What tells that it can be used.
    pub ready: ReadySpec,
}

/// What tells that a server can be used.
#[derive(Clone, Debug)]
pub enum ReadySpec {
    /// This text in its output.
    Line(String),
    /// The TCP port that this expression gives.
    Port(String),
}

/// An option of a program.
#[derive(Clone, Debug)]
pub struct OptionSpec {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: OptionKind,
    /// Its value when the job gives none.
    pub default: Option<String>,
    /// Whether a job must give it.
    pub required: bool,
    /// Whether it names another executable.
    pub is_tool: bool,
    /// What it means.
    pub about: String,
}

/// What the values of an option are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// One of these words.
    Choice(Vec<String>),
    /// Bytes or a share of memory.
    Size,
    /// A time.
    Time,
    /// A number of tasks or a share of the CPUs.
    Tasks,
    /// A whole number.
    Count,
    /// True or false.
    Flag,
    /// Any text.
    Text,
    /// A path to a file.
    Path,
}

/// A part of a command line or of the settings, and when it applies.
#[derive(Clone, Debug)]
pub enum Part<T> {
    /// Always.
    Always(T),
    /// When the expression is not 0.
    When(String, T),
    /// The entries for the value of an option, whose names may hold `*` for any characters; none
    /// when the value has no entry.
    Choose(String, Vec<(String, T)>),
}

impl Catalog {
    /// The built-in programs.
    ///
    /// # Errors
    /// A broken entry, which tests exclude.
    pub fn built_in() -> Result<Self, JobError> {
        let programs = BUILT_IN
            .iter()
            .map(|(name, text)| load::program(Source::new(name, text)));
        Ok(Self {
            programs: programs.collect::<Result<_, _>>()?,
        })
    }

    /// Adds a program from the text of its entry, in place of one of the same name, and gives its
    /// name.
    ///
    /// # Errors
    /// What is wrong with the entry, with its line.
    pub fn add(&mut self, source: Source<'_>) -> Result<String, JobError> {
        let program = load::program(source)?;
        let name = program.name.clone();
        self.programs.retain(|known| known.name != name);
        self.programs.push(program);
        self.programs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(name)
    }

    /// The program of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Program> {
        self.programs.iter().find(|program| program.name == name)
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().map(|program| program.name.as_str())
    }
}

impl Program {
    /// The option of this name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, value, expected) in [
            ("fork", "fork", true),
            ("fork", "fork-sleep", false),
            ("fork*", "fork", true),
            ("*-hugetlb", "anon-w-seq-hugetlb", true),
            ("*-hugetlb", "hugetlb", false),
            ("mmap-*-rand*", "mmap-pread-rand-mt", true),
            ("mmap-*-rand*", "mmap-pread-seq-mt", false),
            ("*x*x", "x", false),
            ("*x*x", "xx", true),
            ("*", "", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, value), expected, "{pattern} {value}");
        }
    }
}
