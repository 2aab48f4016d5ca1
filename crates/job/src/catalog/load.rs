//! Reads a `program.yaml`. Every key is known or an error, so that a typing mistake in an entry
//! is found when it is loaded and not in a table.

use super::{Only, OptionKind, OptionSpec, Part, Program, ReadySpec, ServerSpec, Tool, matches};
use crate::error::{JobError, Source};
use crate::node::{Key, Node};
use crate::read::read_documents;
use kdyno_model::{
    Better, Derive, ExtractRules, LineRule, MetricRule, OutputStream, Quantity, Reduce, Role, Unit,
};

type Read<T> = Result<T, JobError>;

pub(super) fn program(source: Source<'_>) -> Read<Program> {
    let documents = read_documents(source)?;
    let [document] = documents.as_slice() else {
        return Err(JobError::whole(
            source,
            "a catalog entry is one YAML document",
        ));
    };
    let entry = Entry {
        source,
        node: document,
    };
    entry.only(&[
        "program",
        "about",
        "upstream",
        "tool",
        "instrument",
        "options",
        "let",
        "rounds",
        "timeout",
        "command",
        "environment",
        "settings",
        "needs",
        "setup",
        "server",
        "load",
        "extract",
        "metrics",
    ])?;
    let instrument = entry.child("instrument")?;
    instrument.only(&["builtin", "external"])?;
    let rounds = entry.optional("rounds");
    if let Some(rounds) = &rounds {
        rounds.only(&["at_most", "until"])?;
    }
    let options = entry.map("options", load_option)?;
    check_choices(&entry, &options)?;
    check_only(&entry, &options)?;
    let rules = ExtractRules {
        prefix: String::new(),
        lines: entry.list("extract", load_line)?,
        metrics: entry.map("metrics", load_metric)?,
        figures_required: true,
        headline_usage: None,
    };
    check_streams(&entry, &rules)?;
    let until = |key| rounds.as_ref().map_or(Ok(None), |r| r.optional_text(key));
    Ok(Program {
        name: entry.text("program")?,
        about: entry.text("about")?,
        upstream: entry.optional_text("upstream")?,
        tool: entry
            .optional("tool")
            .map(|tool| load_tool(&tool))
            .transpose()?,
        instrument_builtin: instrument.optional_text("builtin")?,
        instrument_external: instrument.text("external")?,
        options,
        lets: entry.map("let", |name, value| {
            Ok((name.text.clone(), value.as_text()?))
        })?,
        command: entry.list("command", |part| load_part(part, "words", words))?,
        environment: entry.list("environment", |part| load_part(part, "set", pairs))?,
        settings: entry.list("settings", |part| load_part(part, "set", pairs))?,
        needs: entry.list("needs", load_needs)?,
        setup: entry.list("setup", |part| load_part(part, "words", words))?,
        server: entry
            .optional("server")
            .map(|server| load_server(&server))
            .transpose()?,
        load: entry.list("load", |part| load_part(part, "words", words))?,
        rounds_at_most: until("at_most")?,
        rounds_until: until("until")?,
        timeout: entry.optional_text("timeout")?,
        per: entry
            .map("metrics", load_per)?
            .into_iter()
            .flatten()
            .collect(),
        only: entry
            .map("metrics", load_only)?
            .into_iter()
            .flatten()
            .collect(),
        rules,
    })
}

/// A node with the source for its errors.
struct Entry<'a> {
    source: Source<'a>,
    node: &'a Node,
}

impl<'a> Entry<'a> {
    fn error(&self, message: impl Into<String>) -> JobError {
        JobError::at(self.source, self.node.place, message)
    }

    fn at(&self, node: &'a Node) -> Entry<'a> {
        Entry {
            source: self.source,
            node,
        }
    }

    fn only(&self, known: &[&str]) -> Read<()> {
        let entries = self
            .node
            .entries()
            .ok_or_else(|| self.error("a map is expected here"))?;
        match entries
            .iter()
            .find(|(key, _)| !known.contains(&key.text.as_str()))
        {
            None => Ok(()),
            Some((key, _)) => Err(JobError::at(
                self.source,
                key.place,
                format!("unknown key `{}`", key.text),
            )
            .hint_nearest(&key.text, known.iter().copied())),
        }
    }

    fn optional(&self, key: &str) -> Option<Entry<'a>> {
        self.node.get(key).map(|node| self.at(node))
    }

    fn child(&self, key: &str) -> Read<Entry<'a>> {
        self.optional(key)
            .ok_or_else(|| self.error(format!("`{key}` is missing")))
    }

    fn as_text(&self) -> Read<String> {
        let text = self
            .node
            .text()
            .ok_or_else(|| self.error("a value is expected here"))?;
        Ok(text.to_owned())
    }

    fn text(&self, key: &str) -> Read<String> {
        self.child(key)?.as_text()
    }

    fn optional_text(&self, key: &str) -> Read<Option<String>> {
        self.optional(key).map(|entry| entry.as_text()).transpose()
    }

    fn is_true(&self, key: &str) -> Read<bool> {
        Ok(self.optional_text(key)?.as_deref() == Some("true"))
    }

    fn list<T>(&self, key: &str, load: impl Fn(&Entry<'a>) -> Read<T>) -> Read<Vec<T>> {
        let Some(entry) = self.optional(key) else {
            return Ok(Vec::new());
        };
        let items = entry
            .node
            .items()
            .ok_or_else(|| entry.error("a list is expected here"))?;
        items.iter().map(|item| load(&entry.at(item))).collect()
    }

    fn map<T>(&self, key: &str, load: impl Fn(&Key, &Entry<'a>) -> Read<T>) -> Read<Vec<T>> {
        self.optional(key)
            .map_or_else(|| Ok(Vec::new()), |entry| entry.each(load))
    }

    fn each<T>(&self, load: impl Fn(&Key, &Entry<'a>) -> Read<T>) -> Read<Vec<T>> {
        let entries = self
            .node
            .entries()
            .ok_or_else(|| self.error("a map is expected here"))?;
        entries
            .iter()
            .map(|(name, value)| load(name, &self.at(value)))
            .collect()
    }

    /// Reads a word by a table of known words.
    fn word<T: Copy>(&self, table: &[(&str, T)]) -> Read<T> {
        let text = self.as_text()?;
        let found = table
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, value)| *value);
        found.ok_or_else(|| {
            self.error(format!("unknown word `{text}`"))
                .hint_nearest(&text, table.iter().map(|(w, _)| *w))
        })
    }
}

fn load_tool(entry: &Entry<'_>) -> Read<Tool> {
    entry.only(&["name", "builtin", "hint"])?;
    Ok(Tool {
        name: entry.text("name")?,
        builtin: entry.optional_text("builtin")?,
        hint: entry.text("hint")?,
    })
}

fn load_option(name: &Key, entry: &Entry<'_>) -> Read<OptionSpec> {
    entry.only(&["type", "choices", "default", "required", "tool", "about"])?;
    let kind = match entry.text("type")?.as_str() {
        "choice" => OptionKind::Choice(entry.list("choices", Entry::as_text)?),
        "size" => OptionKind::Size,
        "time" => OptionKind::Time,
        "tasks" => OptionKind::Tasks,
        "count" => OptionKind::Count,
        "flag" => OptionKind::Flag,
        "text" => OptionKind::Text,
        "path" => OptionKind::Path,
        other => {
            let known = [
                "choice", "size", "time", "tasks", "count", "flag", "text", "path",
            ];
            return Err(entry
                .error(format!("unknown type `{other}`"))
                .hint_nearest(other, known));
        }
    };
    Ok(OptionSpec {
        name: name.text.clone(),
        kind,
        default: entry.optional_text("default")?,
        required: entry.is_true("required")?,
        is_tool: entry.is_true("tool")?,
        about: entry.text("about")?,
    })
}

fn load_part<'a, T>(
    entry: &Entry<'a>,
    body: &str,
    load: impl Fn(&Entry<'a>) -> Read<T>,
) -> Read<Part<T>> {
    entry.only(&["when", "choose", body])?;
    let inside = entry.child(body)?;
    if let Some(option) = entry.optional_text("choose")? {
        let choices = inside.each(|value, part| Ok((value.text.clone(), load(part)?)))?;
        return Ok(Part::Choose(option, choices));
    }
    let body = load(&inside)?;
    Ok(match entry.optional_text("when")? {
        Some(condition) => Part::When(condition, body),
        None => Part::Always(body),
    })
}

/// Refuses parts for values that an option cannot have: they would never apply.
fn check_choices(entry: &Entry<'_>, options: &[OptionSpec]) -> Read<()> {
    const SECTIONS: [&str; 6] = [
        "command",
        "environment",
        "settings",
        "needs",
        "setup",
        "load",
    ];
    let server = entry.optional("server");
    let of_server = server.iter().map(|server| (server, "command"));
    for (entry, section) in SECTIONS
        .map(|name| (entry, name))
        .into_iter()
        .chain(of_server)
    {
        for part in entry.list(section, |part| Ok(part.at(part.node)))? {
            if let Some(name) = part.optional("choose") {
                check_choice(&part, &name, options)?;
            }
        }
    }
    Ok(())
}

fn check_choice(part: &Entry<'_>, name: &Entry<'_>, options: &[OptionSpec]) -> Read<()> {
    if part.optional("when").is_some() {
        return Err(name.error("`when` and `choose` do not go together"));
    }
    let option = name.as_text()?;
    let Some(spec) = options.iter().find(|spec| spec.name == option) else {
        return Err(name.error(format!("there is no option `{option}`")));
    };
    let OptionKind::Choice(values) = &spec.kind else {
        return Ok(());
    };
    let body = ["words", "set"].iter().find_map(|body| part.optional(body));
    if let Some(body) = body {
        body.each(
            |key, at| match values.iter().any(|value| matches(&key.text, value)) {
                true => Ok(()),
                false => Err(at.error(format!("`{}` is no value of `{option}`", key.text))),
            },
        )?;
    }
    Ok(())
}

/// Refuses metrics of streams that no rule reads: they would be missing without a word.
fn check_streams(entry: &Entry<'_>, rules: &ExtractRules) -> Read<()> {
    let reads = |stream: &str| {
        let group = format!("(?P<{stream}>");
        let short = format!("(?<{stream}>");
        rules.lines.iter().any(|line| {
            let pattern = line.each.as_ref().unwrap_or(&line.pattern);
            pattern.contains(&group) || pattern.contains(&short)
        })
    };
    for rule in &rules.metrics {
        let streams: Vec<&String> = match &rule.derive {
            Some(Derive::Reduce { stream, .. } | Derive::Spread { stream }) => vec![stream],
            Some(Derive::Ratio { of, to, .. }) => [of, to]
                .into_iter()
                .filter_map(|quantity| match quantity {
                    Quantity::Stream(stream) => Some(stream),
                    Quantity::CpuNs | Quantity::Rounds => None,
                })
                .collect(),
            Some(Derive::Histogram {
                value,
                count,
                total,
                min,
                max,
                ..
            }) => {
                let others = [total, min, max].into_iter().flatten();
                [value, count].into_iter().chain(others).collect()
            }
            None => Vec::new(),
        };
        if let Some(stream) = streams.into_iter().find(|stream| !reads(stream)) {
            let metric = entry.child("metrics")?.child(&rule.name)?;
            return Err(metric.error(format!("no rule of `extract` has a group `{stream}`")));
        }
    }
    Ok(())
}

/// Refuses metrics for values that an option cannot have: they would never be there, or always.
fn check_only(entry: &Entry<'_>, options: &[OptionSpec]) -> Read<()> {
    for metric in entry.map("metrics", |_, metric| Ok(metric.at(metric.node)))? {
        for key in ["only", "except"] {
            let Some(only) = metric.optional(key) else {
                continue;
            };
            only.each(|option, values| {
                let Some(spec) = options.iter().find(|spec| spec.name == option.text) else {
                    return Err(values.error(format!("there is no option `{}`", option.text)));
                };
                let OptionKind::Choice(known) = &spec.kind else {
                    return Ok(());
                };
                let patterns: Vec<String> = match values.node.items() {
                    Some(items) => items
                        .iter()
                        .map(|item| values.at(item).as_text())
                        .collect::<Read<_>>()?,
                    None => vec![values.as_text()?],
                };
                let wrong = patterns
                    .iter()
                    .find(|pattern| !known.iter().any(|value| matches(pattern, value)));
                match wrong {
                    Some(pattern) => {
                        Err(values.error(format!("`{pattern}` is no value of `{}`", option.text)))
                    }
                    None => Ok(()),
                }
            })?;
        }
    }
    Ok(())
}

/// What a machine can be asked for.
const NEEDS: [&str; 6] = ["memory", "cpus", "numa_nodes", "disk", "root", "path"];

fn load_needs(part: &Entry<'_>) -> Read<Part<Vec<(String, String)>>> {
    load_part(part, "set", |entry| {
        entry.only(&NEEDS)?;
        pairs(entry)
    })
}

fn load_server(entry: &Entry<'_>) -> Read<ServerSpec> {
    entry.only(&["command", "ready"])?;
    let ready = entry.child("ready")?;
    ready.only(&["line", "port"])?;
    let ready = match (ready.optional_text("line")?, ready.optional_text("port")?) {
        (Some(line), None) => ReadySpec::Line(line),
        (None, Some(port)) => ReadySpec::Port(port),
        _ => return Err(ready.error("either `line` or `port` is expected here")),
    };
    Ok(ServerSpec {
        command: entry.list("command", |part| load_part(part, "words", words))?,
        ready,
    })
}

fn words(entry: &Entry<'_>) -> Read<Vec<String>> {
    let items = entry
        .node
        .items()
        .ok_or_else(|| entry.error("a list of words is expected here"))?;
    items.iter().map(|item| entry.at(item).as_text()).collect()
}

fn pairs(entry: &Entry<'_>) -> Read<Vec<(String, String)>> {
    entry.each(|key, value| Ok((key.text.clone(), value.as_text()?)))
}

fn load_line(entry: &Entry<'_>) -> Read<LineRule> {
    if entry.node.entries().is_none() {
        return Ok(LineRule {
            pattern: entry.as_text()?,
            ..LineRule::default()
        });
    }
    entry.only(&["line", "each", "from", "after", "until"])?;
    let streams = [
        ("stdout", OutputStream::Stdout),
        ("stderr", OutputStream::Stderr),
    ];
    let from = entry
        .optional("from")
        .map(|e| e.word(&streams))
        .transpose()?
        .unwrap_or_default();
    Ok(LineRule {
        pattern: entry.text("line")?,
        from,
        each: entry.optional_text("each")?,
        after: entry.list("after", Entry::as_text)?,
        until: entry.optional_text("until")?,
    })
}

const REDUCTIONS: [(&str, Reduce); 7] = [
    ("sum", Reduce::Sum),
    ("mean", Reduce::Mean),
    ("upper-median", Reduce::UpperMedian),
    ("min", Reduce::Min),
    ("max", Reduce::Max),
    ("last", Reduce::Last),
    ("spread-percent", Reduce::SpreadPercent),
];
const DIRECTIONS: [(&str, Better); 3] = [
    ("higher", Better::Higher),
    ("lower", Better::Lower),
    ("neither", Better::Neither),
];
const ROLES: [(&str, Role); 3] = [
    ("headline", Role::Headline),
    ("program", Role::Program),
    ("diagnostic", Role::Diagnostic),
];

fn load_metric(name: &Key, entry: &Entry<'_>) -> Read<MetricRule> {
    entry.only(&[
        "about",
        "unit",
        "better",
        "role",
        "only",
        "except",
        "reduce",
        "ratio",
        "spread",
        "histogram",
    ])?;
    let better = entry
        .optional("better")
        .map(|e| e.word(&DIRECTIONS))
        .transpose()?;
    let role = entry.optional("role").map(|e| e.word(&ROLES)).transpose()?;
    Ok(MetricRule {
        name: name.text.clone(),
        unit: Unit(entry.optional_text("unit")?.unwrap_or_default()),
        better: better.unwrap_or_default(),
        role: role.unwrap_or(Role::Program),
        about: entry.text("about")?,
        derive: Some(load_derive(entry)?),
    })
}

/// Metric, and the expression that it is divided by.
fn load_per(name: &Key, entry: &Entry<'_>) -> Read<Option<(String, String)>> {
    let per = match entry.optional("reduce") {
        Some(reduce) => reduce.optional_text("per")?,
        None => None,
    };
    Ok(per.map(|expression| (name.text.clone(), expression)))
}

fn load_only(name: &Key, entry: &Entry<'_>) -> Read<Vec<Only>> {
    let mut all = Vec::new();
    for (key, is_except) in [("only", false), ("except", true)] {
        let Some(only) = entry.optional(key) else {
            continue;
        };
        all.extend(only.each(|option, values| {
            let values = match values.node.items() {
                Some(items) => items.iter().map(|item| values.at(item).as_text()).collect(),
                None => values.as_text().map(|value| vec![value]),
            };
            Ok(Only {
                metric: name.text.clone(),
                option: option.text.clone(),
                values: values?,
                is_except,
            })
        })?);
    }
    Ok(all)
}

fn load_derive(entry: &Entry<'_>) -> Read<Derive> {
    if let Some(reduce) = entry.optional("reduce") {
        reduce.only(&["stream", "within", "across", "scale", "per"])?;
        return Ok(Derive::Reduce {
            stream: reduce.text("stream")?,
            within: reduce.child("within")?.word(&REDUCTIONS)?,
            across: reduce.child("across")?.word(&REDUCTIONS)?,
            scale: load_scale(&reduce)?,
        });
    }
    if let Some(ratio) = entry.optional("ratio") {
        ratio.only(&["of", "to", "scale"])?;
        return Ok(Derive::Ratio {
            of: load_quantity(&ratio.text("of")?),
            to: load_quantity(&ratio.text("to")?),
            scale: load_scale(&ratio)?,
        });
    }
    if let Some(histogram) = entry.optional("histogram") {
        histogram.only(&["value", "count", "sub_buckets", "total", "min", "max"])?;
        let sub_buckets = histogram.optional("sub_buckets").map(|entry| {
            let number = entry.as_text()?.parse::<u64>().ok();
            let number = number.filter(|number| number.is_power_of_two());
            number.ok_or_else(|| entry.error("a power of two is expected here"))
        });
        return Ok(Derive::Histogram {
            value: histogram.text("value")?,
            count: histogram.text("count")?,
            sub_buckets: sub_buckets.transpose()?,
            total: histogram.optional_text("total")?,
            min: histogram.optional_text("min")?,
            max: histogram.optional_text("max")?,
        });
    }
    Ok(Derive::Spread {
        stream: entry.text("spread")?,
    })
}

fn load_scale(entry: &Entry<'_>) -> Read<f64> {
    let Some(text) = entry.optional_text("scale")? else {
        return Ok(1.0);
    };
    let scale = text.parse().ok().filter(|scale: &f64| scale.is_finite());
    scale.ok_or_else(|| entry.error(format!("`{text}` is not a factor")))
}

fn load_quantity(text: &str) -> Quantity {
    match text {
        "cpu_ns" => Quantity::CpuNs,
        "rounds" => Quantity::Rounds,
        stream => Quantity::Stream(stream.to_owned()),
    }
}
