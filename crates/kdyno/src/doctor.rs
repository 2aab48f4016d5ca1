//! `kdyno doctor`: what makes noise on this machine.

use crate::cli::DoctorArgs;
use crate::context::{Context, Status};
use anstyle::{AnsiColor, Style};
use kdyno_testbox::doctor::{Finding, Level, Places, Timing, examine, measure, sort};
use kdyno_testbox::facts::read_facts;
use kdyno_testbox::root::SysRoot;
use kdyno_testbox::state_dir;
use serde::Serialize;
use std::fmt::Write as _;

/// Version of the layout of `--json`.
const SCHEMA: u32 = 1;

/// Widest line; narrow enough for a mail.
const WIDTH: usize = 80;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    schema: u32,
    testbox: String,
    kernel: String,
    quick: bool,
    findings: Vec<Finding>,
    timing: Option<Timing>,
}

/// Looks at the machine and tells; whatever is found, that is no failure.
pub fn command(args: &DoctorArgs, context: &mut Context) -> anyhow::Result<Status> {
    let facts = read_facts(&SysRoot::real(), None)?;
    let mut findings = look(context)?;
    let timing = (!args.quick).then(|| {
        let (timing, measured) = measure();
        findings.extend(measured);
        timing
    });
    sort(&mut findings);
    let report = Report {
        schema: SCHEMA,
        testbox: facts.testbox,
        kernel: facts.kernel_release,
        quick: args.quick,
        findings,
        timing,
    };
    let text = if args.json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        render(&report, context.colours)
    };
    context.out.write_all(text.as_bytes())?;
    context.out.flush()?;
    Ok(Status::Done)
}

/// The quick look, the worst first.
pub fn look(context: &Context) -> anyhow::Result<Vec<Finding>> {
    let home = context.home().ok();
    Ok(examine(&Places {
        root: &SysRoot::real(),
        state_dir: &state_dir(),
        home: home.as_ref().map(kdyno_rundir::Home::path),
    })?)
}

fn render(report: &Report, colours: bool) -> String {
    let of = |level| report.findings.iter().filter(move |f| f.level == level);
    let mut out = String::new();
    for finding in of(Level::Warning).chain(of(Level::Note)) {
        describe(finding, colours, &mut out);
    }
    for finding in of(Level::Ok) {
        entry(finding, colours, &mut out);
    }
    let count = |level, word: &str| match of(level).count() {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    let _ = writeln!(
        out,
        "\n{}, kernel {}: {}, {}, {} ok",
        report.testbox,
        report.kernel,
        count(Level::Warning, "warning"),
        count(Level::Note, "note"),
        of(Level::Ok).count()
    );
    if report.quick {
        out.push_str("without --quick timers and interference are measured as well\n");
    }
    out
}

/// A finding that is not well, with reason and advice.
fn describe(finding: &Finding, colours: bool, out: &mut String) {
    entry(finding, colours, out);
    paragraph("why", finding.why, out);
    if let Some(hint) = &finding.hint {
        paragraph("hint", hint, out);
    }
    if let Some(setting) = &finding.setting {
        // Not folded, so that it can be copied.
        let _ = writeln!(out, "{INDENT}-V NAME:{setting}");
    }
}

/// Below the column of levels.
const INDENT: &str = "         ";

fn entry(finding: &Finding, colours: bool, out: &mut String) {
    let (word, style) = match finding.level {
        Level::Ok => ("ok", Style::new().fg_color(Some(AnsiColor::Green.into()))),
        Level::Note => ("note", Style::new().fg_color(Some(AnsiColor::Cyan.into()))),
        Level::Warning => (
            "warning",
            Style::new().bold().fg_color(Some(AnsiColor::Yellow.into())),
        ),
    };
    let style = if colours { style } else { Style::new() };
    let pad = INDENT.len() - word.len();
    let _ = write!(out, "{style}{word}{style:#}{:pad$}", "");
    fold(&format!("{}: {}", finding.check, finding.what), out);
}

fn paragraph(name: &str, text: &str, out: &mut String) {
    out.push_str(INDENT);
    fold(&format!("{name}: {text}"), out);
}

/// Writes words behind what is as wide as the indent, line by line.
fn fold(text: &str, out: &mut String) {
    let mut column = INDENT.len();
    for (place, word) in text.split(' ').enumerate() {
        let width = word.chars().count();
        if place > 0 && column + 1 + width > WIDTH {
            let _ = write!(out, "\n{INDENT}  ");
            column = INDENT.len() + 2;
        } else if place > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
}
