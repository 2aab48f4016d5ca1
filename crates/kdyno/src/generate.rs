//! Completion scripts and man pages, made from the command line's own description.

use crate::cli::Cli;
use crate::context::{Context, Status};
use anyhow::Context as _;
use clap::CommandFactory;
use std::path::Path;

/// `kdyno completions SHELL`.
pub fn completions(shell: clap_complete::Shell, context: &mut Context) -> anyhow::Result<Status> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kdyno", &mut script);
    context.out.write_all(&script)?;
    context.out.flush()?;
    Ok(Status::Done)
}

/// `kdyno man DIRECTORY`: one page per subcommand.
pub fn man_pages(directory: &Path, context: &mut Context) -> anyhow::Result<Status> {
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let main = Cli::command();
    let mut pages = vec![("kdyno.1".to_owned(), main.clone())];
    for subcommand in main.get_subcommands().filter(|c| !c.is_hide_set()) {
        let name = format!("kdyno-{}", subcommand.get_name());
        pages.push((format!("{name}.1"), subcommand.clone().name(name)));
    }
    for (file, command) in pages {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        let path = directory.join(file);
        std::fs::write(&path, page).with_context(|| path.display().to_string())?;
        writeln!(context.out, "{}", path.display())?;
    }
    context.out.flush()?;
    Ok(Status::Done)
}
