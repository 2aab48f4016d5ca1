//! From what a case asks for to what a testbox executes: shares become numbers, templates
//! become words. Done once per testbox, before the first trial, so that all variants of a case
//! see the same machine.

use crate::catalog::{Catalog, OptionKind, Part, Program, ReadySpec, matches};
use crate::expr::{Scope, evaluate, fill};
use crate::setting;
use crate::spec::CaseSpec;
use crate::value::{self, Whole};
use kdyno_model::{
    Around, BoxFacts, Command, Derive, ExtractRules, MetricRule, Ready, Role, Rounds, Server,
    Setting, Work,
};
use std::collections::BTreeMap;

/// Why a case cannot be resolved on a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The catalog has no such program.
    #[error("the catalog has no program `{0}`")]
    NoProgram(String),
    /// An expression of the catalog entry has no value here.
    #[error("{program}: {what}: {reason}")]
    Expression {
        /// The program.
        program: String,
        /// Which part of its entry.
        what: String,
        /// Why.
        reason: String,
    },
    /// The machine lacks what the job says it needs.
    #[error("{0}")]
    Unmet(String),
}

/// Work and the rules for its output.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// What to execute.
    pub work: Work,
    /// How to read what it prints.
    pub rules: ExtractRules,
    /// What the machine must have beside what its facts tell: `disk` in bytes, `root`, a `path`.
    pub needs: Vec<(String, String)>,
}

/// The word that stands for the directory of a trial in words of its commands.
pub const SCRATCH: &str = "{scratch}";

/// When a command without a limit of its own is given up.
const COMMAND_TIMEOUT_MS: u64 = 3_600_000;

/// Resolves a case on a machine.
///
/// # Errors
/// An unmet need, or an expression of the catalog entry without a value.
pub fn resolve(
    spec: &CaseSpec,
    facts: &BoxFacts,
    default_monitors: &[&str],
    catalog: &Catalog,
) -> Result<Resolved, ResolveError> {
    let program = catalog
        .get(&spec.program)
        .ok_or_else(|| ResolveError::NoProgram(spec.program.clone()))?;
    check_needs(spec, facts)?;
    let names = Names::new(spec, program, facts)?;
    let command = match &spec.command {
        Some(command) => command.clone(),
        None => names.command(spec, program)?,
    };
    let external = !matches!(command, Command::Workload(_));
    let instrument = match &program.instrument_builtin {
        Some(builtin) if !external => builtin.clone(),
        _ => program.instrument_external.clone(),
    };
    let needs = names.needs(program, facts)?;
    let mut settings = names.settings(spec, program)?;
    settings.extend(spec.settings.iter().cloned());
    let settings = settings
        .iter()
        .map(|one| setting::resolved(one, names.whole))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|bad| names.error("settings", bad.message))?;
    let monitors = spec.monitors.clone();
    let defaults = || {
        default_monitors
            .iter()
            .map(|name| (*name).to_owned())
            .collect()
    };
    let work = Work {
        program: program.name.clone(),
        command,
        instrument,
        environment: names.environment(spec, program)?,
        affinity: spec.affinity.clone(),
        settings,
        around: names.around(program)?,
        directory: spec.directory.clone(),
        rounds: names.rounds(program)?,
        timeout_ms: match spec.timeout_ms {
            Some(limit) => limit,
            None => names
                .optional(program, "timeout", program.timeout.as_deref())?
                .unwrap_or(COMMAND_TIMEOUT_MS),
        },
        monitors: monitors.unwrap_or_else(defaults),
        functions: Vec::new(),
        parameters: names.texts.clone(),
    };
    Ok(Resolved {
        work,
        rules: rules(spec, program, &names)?,
        needs,
    })
}

fn check_needs(spec: &CaseSpec, facts: &BoxFacts) -> Result<(), ResolveError> {
    let cpus = u64::from(facts.cpus);
    if let Some(need) = spec.need_cpu.filter(|need| *need > cpus) {
        let why = unmet(need, cpus, "CPUs", &facts.testbox);
        return Err(ResolveError::Unmet(why));
    }
    let whole = Whole {
        cpus: facts.cpus,
        memory_bytes: facts.memory_bytes,
    };
    let need = spec
        .need_memory
        .as_deref()
        .and_then(|text| value::size_bytes(text, whole).ok());
    if let Some(need) = need.filter(|need| *need > facts.memory_bytes) {
        let has = facts.memory_bytes;
        let why = unmet(need, has, "bytes of memory", &facts.testbox);
        return Err(ResolveError::Unmet(why));
    }
    Ok(())
}

/// Says which need a machine does not meet; bytes in MiB.
fn unmet(need: u64, has: u64, unit: &str, testbox: &str) -> String {
    match unit.strip_prefix("bytes") {
        Some(rest) => format!(
            "it needs {} MiB{rest}; {testbox} has {}",
            need >> 20,
            has >> 20
        ),
        None => format!("it needs {need} {unit}; {testbox} has {has}"),
    }
}

/// What templates and expressions of a program can name.
struct Names {
    program: String,
    whole: Whole,
    texts: BTreeMap<String, String>,
    scope: Scope,
}

impl Names {
    fn new(spec: &CaseSpec, program: &Program, facts: &BoxFacts) -> Result<Self, ResolveError> {
        let whole = Whole {
            cpus: facts.cpus,
            memory_bytes: facts.memory_bytes,
        };
        let mut names = Self {
            program: program.name.clone(),
            whole,
            // Made anew for each trial: whoever starts the words puts the path in.
            texts: BTreeMap::from([("scratch".to_owned(), SCRATCH.to_owned())]),
            scope: Scope::new(),
        };
        names.number("cpus", u64::from(facts.cpus))?;
        names.number("memory", facts.memory_bytes)?;
        names.number("numa_nodes", u64::from(facts.numa_nodes))?;
        let is_root = facts.entries.get("user.id").is_some_and(|id| id == "0");
        names.number("root", u64::from(is_root))?;
        for option in &program.options {
            let given = spec.options.get(&option.name);
            names.number(
                &format!("given_{}", option.name),
                u64::from(given.is_some()),
            )?;
            // An option without a value counts as 0; `given_...` tells the two apart.
            let Some(text) = given.or(option.default.as_ref()) else {
                names.number(&option.name, 0)?;
                continue;
            };
            let number = match &option.kind {
                OptionKind::Size => value::size_bytes(text, whole),
                OptionKind::Time => value::time_ms(text),
                OptionKind::Tasks => value::tasks(text, whole),
                OptionKind::Count => value::count(text),
                OptionKind::Flag => value::flag(text).map(u64::from),
                OptionKind::Choice(_) | OptionKind::Text | OptionKind::Path => {
                    names.texts.insert(option.name.clone(), text.clone());
                    continue;
                }
            };
            let number = number.map_err(|bad| names.error(&option.name, bad.message))?;
            names.number(&option.name, number)?;
        }
        for (name, expression) in &program.lets {
            let value = evaluate_or(&names, name, expression)?;
            names.scope.insert(name.clone(), value);
        }
        let numbers: Vec<(String, String)> = program
            .options
            .iter()
            .filter_map(|o| Some((o.name.clone(), names.scope.get(&o.name)?.to_string())))
            .collect();
        names.texts.extend(numbers);
        Ok(names)
    }

    fn error(&self, what: &str, reason: String) -> ResolveError {
        ResolveError::Expression {
            program: self.program.clone(),
            what: what.to_owned(),
            reason,
        }
    }

    fn number(&mut self, name: &str, number: u64) -> Result<(), ResolveError> {
        let number = i64::try_from(number)
            .map_err(|_| self.error(name, format!("{number} is more than 63 bits can hold")))?;
        self.scope.insert(name.to_owned(), number);
        Ok(())
    }

    fn applicable<'p, T>(&self, parts: &'p [Part<T>]) -> Result<Vec<&'p T>, ResolveError> {
        let mut found = Vec::new();
        for part in parts {
            match part {
                Part::Always(body) => found.push(body),
                Part::When(condition, body) => {
                    if evaluate_or(self, condition, condition)? != 0 {
                        found.push(body);
                    }
                }
                Part::Choose(option, choices) => {
                    let Some(value) = self.texts.get(option) else {
                        continue;
                    };
                    let chosen = choices.iter().filter(|(name, _)| matches(name, value));
                    found.extend(chosen.map(|(_, body)| body));
                }
            }
        }
        Ok(found)
    }

    fn command(&self, spec: &CaseSpec, program: &Program) -> Result<Command, ResolveError> {
        let mut words = self.commands(&program.command)?.concat();
        let Some(tool) = &program.tool else {
            return Err(self.error("command", "the job gives none".to_owned()));
        };
        let path = program
            .options
            .iter()
            .filter(|o| o.is_tool)
            .find_map(|o| spec.options.get(&o.name));
        Ok(match (path, &tool.builtin) {
            (Some(path), _) => {
                words.insert(0, path.clone());
                Command::Argv(words)
            }
            (None, Some(workload)) => {
                words.insert(0, workload.clone());
                Command::Workload(words)
            }
            (None, None) => {
                let name = fill(&tool.name, &self.texts, &self.scope)
                    .map_err(|why| self.error("tool", why))?;
                words.insert(0, name);
                Command::Argv(words)
            }
        })
    }

    /// Parts that are a whole command each; those that do not apply leave none.
    fn commands(&self, parts: &[Part<Vec<String>>]) -> Result<Vec<Vec<String>>, ResolveError> {
        let applicable = self.applicable(parts)?;
        applicable
            .into_iter()
            .map(|words| self.filled(words))
            .collect()
    }

    fn filled(&self, templates: &[String]) -> Result<Vec<String>, ResolveError> {
        let filled = templates.iter().map(|template| {
            fill(template, &self.texts, &self.scope).map_err(|why| self.error(template, why))
        });
        filled.collect()
    }

    fn around(&self, program: &Program) -> Result<Around, ResolveError> {
        let server = match &program.server {
            None => None,
            Some(server) => {
                let words = self.commands(&server.command)?.concat();
                let ready =
                    match &server.ready {
                        ReadySpec::Line(text) => Ready::Line(text.clone()),
                        ReadySpec::Port(expression) => {
                            let port = evaluate_or(self, "server", expression)?;
                            Ready::Port(u16::try_from(port).map_err(|_| {
                                self.error("server", format!("{port} is no TCP port"))
                            })?)
                        }
                    };
                (!words.is_empty()).then_some(Server { words, ready })
            }
        };
        Ok(Around {
            setup: self.commands(&program.setup)?,
            server,
            load: self.commands(&program.load)?,
        })
    }

    /// Checks the needs that facts tell of, and gives the others.
    fn needs(
        &self,
        program: &Program,
        facts: &BoxFacts,
    ) -> Result<Vec<(String, String)>, ResolveError> {
        let mut others = Vec::new();
        for (name, template) in self.applicable(&program.needs)?.into_iter().flatten() {
            let value =
                fill(template, &self.texts, &self.scope).map_err(|why| self.error(name, why))?;
            let (has, unit) = match name.as_str() {
                "memory" => (facts.memory_bytes, "bytes of memory"),
                "cpus" => (u64::from(facts.cpus), "CPUs"),
                "numa_nodes" => (u64::from(facts.numa_nodes), "NUMA nodes"),
                _ => {
                    others.push((name.clone(), value));
                    continue;
                }
            };
            let need: u64 = value
                .parse()
                .map_err(|_| self.error(name, format!("`{value}` is no number")))?;
            if need > has {
                return Err(ResolveError::Unmet(unmet(need, has, unit, &facts.testbox)));
            }
        }
        Ok(others)
    }

    fn environment(
        &self,
        spec: &CaseSpec,
        program: &Program,
    ) -> Result<BTreeMap<String, String>, ResolveError> {
        let mut environment = BTreeMap::new();
        for (name, template) in self.applicable(&program.environment)?.into_iter().flatten() {
            let value =
                fill(template, &self.texts, &self.scope).map_err(|why| self.error(name, why))?;
            environment.insert(name.clone(), value);
        }
        environment.extend(spec.environment.clone());
        Ok(environment)
    }

    fn settings(&self, spec: &CaseSpec, program: &Program) -> Result<Vec<Setting>, ResolveError> {
        let mut settings = Vec::new();
        for (key, template) in self.applicable(&program.settings)?.into_iter().flatten() {
            // What the job says itself goes before what the program would want.
            if !spec.settings.iter().any(|own| own.key == *key) {
                let value =
                    fill(template, &self.texts, &self.scope).map_err(|why| self.error(key, why))?;
                settings.push(Setting {
                    key: key.clone(),
                    value,
                });
            }
        }
        Ok(settings)
    }

    fn optional(
        &self,
        program: &Program,
        what: &str,
        expression: Option<&str>,
    ) -> Result<Option<u64>, ResolveError> {
        let Some(expression) = expression else {
            return Ok(None);
        };
        let value = evaluate_or(self, what, expression)?;
        let number = u64::try_from(value);
        number.map(Some).map_err(|_| ResolveError::Expression {
            program: program.name.clone(),
            what: what.to_owned(),
            reason: format!("{value} is negative"),
        })
    }

    fn rounds(&self, program: &Program) -> Result<Rounds, ResolveError> {
        let at_most = self.optional(program, "rounds", program.rounds_at_most.as_deref())?;
        let until_ms = self.optional(program, "rounds", program.rounds_until.as_deref())?;
        Ok(Rounds {
            at_most: at_most.unwrap_or(1).max(1),
            until_ms,
        })
    }
}

fn evaluate_or(names: &Names, what: &str, expression: &str) -> Result<i64, ResolveError> {
    evaluate(expression, &names.scope).map_err(|why| names.error(what, why))
}

/// The program's rules with what the job says of its command's metrics.
fn rules(spec: &CaseSpec, program: &Program, names: &Names) -> Result<ExtractRules, ResolveError> {
    let mut rules = program.rules.clone();
    for (metric, expression) in &program.per {
        let by = evaluate_or(names, metric, expression)?;
        let rule = rules.metrics.iter_mut().find(|rule| rule.name == *metric);
        if let Some(Derive::Reduce { scale, .. }) = rule.and_then(|rule| rule.derive.as_mut()) {
            if by <= 0 {
                return Err(names.error(metric, format!("divided by {by}")));
            }
            #[expect(
                clippy::cast_precision_loss,
                reason = "a number of tasks, far below 2^53"
            )]
            let by = by as f64;
            *scale /= by;
        }
    }
    rules.metrics.retain(|rule| {
        let mut limits = program.only.iter().filter(|only| only.metric == rule.name);
        limits.all(|only| {
            let value = names.texts.get(&only.option);
            value.is_some_and(|value| only.allows(value))
        })
    });
    rules.prefix.clone_from(&spec.testcase);
    rules
        .metrics
        .extend(spec.metrics.iter().map(|(name, note)| MetricRule {
            name: name.clone(),
            unit: note.unit.clone(),
            better: note.better,
            role: Role::Headline,
            about: note.about.clone(),
            derive: None::<Derive>,
        }));
    if spec.no_figures {
        rules.figures_required = false;
        rules.headline_usage = Some("time.elapsed_time".to_owned());
    }
    Ok(rules)
}
