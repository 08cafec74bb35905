//! `telpher man`.

use std::path::PathBuf;

use console::{Exit, Failure, output};

const EXAMPLES: &str = "\
Examples:
  telpher man | man -l -                       read the manual page
  telpher man --dir ~/.local/share/man/man1    install a page for each command";

/// Print the manual page
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Write a page for telpher and each of its commands into this directory instead
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Prints or writes the pages for `command`, the whole command line.
pub(crate) fn run(args: Args, command: clap::Command) -> Result<(), Failure> {
    let failed = |error| Failure::new(Exit::Failed, format!("cannot write the page: {error}"));
    match args.dir {
        Some(dir) => std::fs::create_dir_all(&dir)
            .and_then(|()| clap_mangen::generate_to(command, &dir))
            .map_err(|error| failed(error).hint(format!("{} must be writable", dir.display()))),
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command)
                .render(&mut page)
                .map_err(failed)?;
            output::print_text(&String::from_utf8_lossy(&page))
        }
    }
}
