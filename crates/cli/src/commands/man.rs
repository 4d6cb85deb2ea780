//! `planewise man`: manual pages from the definitions of the command line.

use crate::arguments::{Arguments, ManArguments};
use crate::failure::Failure;
use crate::output::{self, WholeFile};
use clap::CommandFactory;
use std::path::Path;

/// Prints the main page, or writes one page per command to a directory.
///
/// # Errors
/// Standard output or a file cannot be written.
pub fn execute(arguments: &ManArguments) -> Result<(), Failure> {
    let Some(directory) = &arguments.directory else {
        let page = render(&Arguments::command())?;
        return output::print(&String::from_utf8_lossy(&page));
    };
    if !directory.is_dir() {
        return Err(Failure::usage(format!(
            "{}: is no directory; allowed: an existing directory",
            directory.display()
        )));
    }
    let mut root = Arguments::command();
    root.build();
    write_pages(&root, "planewise", directory)
}

fn write_pages(command: &clap::Command, name: &str, directory: &Path) -> Result<(), Failure> {
    let named = command.clone().name(name.to_owned()).display_name(name.to_owned());
    let path = directory.join(format!("{name}.1"));
    let page = render(&named)?;
    let (whole, mut file) = WholeFile::create(&path, true)?;
    std::io::Write::write_all(&mut file, &page)
        .and_then(|()| std::io::Write::flush(&mut file))
        .map_err(|error| Failure::output(format!("{}: cannot write: {error}", path.display())))?;
    whole.settle()?;
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        write_pages(inner, &format!("{name}-{}", inner.get_name()), directory)?;
    }
    Ok(())
}

fn render(command: &clap::Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut page)
        .map_err(|error| Failure::output(format!("man page: {error}")))?;
    Ok(page)
}
