//! Completion scripts and man pages, made from the command line's own description.

use crate::cli::Cli;
use crate::context::{Context, Status};
use anyhow::Context as _;
use clap::CommandFactory;
use std::io::Write as _;
use std::path::Path;

/// `kdyno completions SHELL`.
pub fn completions(shell: clap_complete::Shell, context: &mut Context) -> anyhow::Result<Status> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kdyno", &mut script);
    context.out.write_all(&script)?;
    context.out.flush()?;
    Ok(Status::Done)
}

/// `kdyno man DIRECTORY`: one page per subcommand, also per subcommand of one.
pub fn man_pages(directory: &Path, context: &mut Context) -> anyhow::Result<Status> {
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let mut main = Cli::command().disable_help_subcommand(true);
    // Gives subcommands their full names: `kdyno run` in use, `kdyno-run` as a page.
    main.build();
    for command in with_subcommands(&main) {
        let name = command
            .get_display_name()
            .unwrap_or(command.get_name())
            .to_owned();
        let path = directory.join(format!("{name}.1"));
        std::fs::write(&path, page(command)?).with_context(|| path.display().to_string())?;
        writeln!(context.out, "{}", path.display())?;
    }
    context.out.flush()?;
    Ok(Status::Done)
}

/// A command and all below it, as they refer to each other.
fn with_subcommands(command: &clap::Command) -> Vec<&clap::Command> {
    let below = command.get_subcommands().flat_map(with_subcommands);
    std::iter::once(command).chain(below).collect()
}

/// One page; the examples stand as they are, line by line.
fn page(command: &clap::Command) -> anyhow::Result<Vec<u8>> {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().next().is_some() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(examples) = command.get_after_help() {
        let text = examples
            .to_string()
            .replace('\\', "\\e")
            .replace('-', "\\-")
            .replace("\n.", "\n\\&.");
        let text = text.strip_prefix("Examples:\n").unwrap_or(&text).to_owned();
        writeln!(page, ".SH EXAMPLES\n.nf\n{text}\n.fi")?;
    }
    Ok(page)
}
