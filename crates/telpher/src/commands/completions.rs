//! `telpher completions`.

use clap_complete::Shell;

use console::{Failure, output};

const EXAMPLES: &str = "\
Examples:
  telpher completions bash > ~/.local/share/bash-completion/completions/telpher
  telpher completions zsh  > \"${fpath[1]}/_telpher\"
  telpher completions fish > ~/.config/fish/completions/telpher.fish";

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script for `command`, the whole command line.
pub(crate) fn run(args: Args, mut command: clap::Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "telpher", &mut script);
    output::print_text(&String::from_utf8_lossy(&script))
}
