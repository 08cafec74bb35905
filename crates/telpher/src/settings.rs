//! Loads the configuration from the file, the environment and the command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use config::{Loaded, SECTIONS, Spec};
use console::{Environment, Exit, Failure};
use serve::config_failure;

/// The configuration file that is read if none is given.
const FILE_DEFAULT: &str = "telpher.toml";

/// The arguments of commands that need the whole configuration.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    /// Configuration file
    ///
    /// [default: ./telpher.toml if there is one] [env: TELPHER_CONFIG]
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    config: Option<PathBuf>,

    #[command(flatten)]
    flags: Flags,
}

/// Segment size of a temporary node.
const SEGMENT_SIZE_TEMPORARY: &str = "16MiB";

/// The arguments of commands that need only the data directory.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DataArgs {
    /// Configuration file [default: ./telpher.toml if there is one] [env: TELPHER_CONFIG]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Data directory of the node [default: ./telpher-data] [env: TELPHER_DATA]
    #[arg(long, value_name = "PATH")]
    data: Option<String>,
}

impl ConfigArgs {
    /// Loads the configuration from the file, the environment and the flags.
    pub(crate) fn load(&self, environment: &Environment) -> Result<Loaded, Failure> {
        load(self.config.as_deref(), environment, self.flags.0.clone())
    }

    /// Loads the configuration of a temporary node: `data` overrides every other data directory,
    /// and segments are small unless a flag or a variable sets their size.
    pub(crate) fn load_temporary(
        &self,
        environment: &Environment,
        data: &Path,
    ) -> Result<Loaded, Failure> {
        let mut flags = self.flags.0.clone();
        flags.extend(data_flag(data.display().to_string()));
        let segment_size = config::find("journal.segment_size").filter(|spec| {
            let is_given = flags.iter().any(|(given, _)| given.key == spec.key);
            !is_given && environment.get(&spec.variable()).is_none()
        });
        flags.extend(segment_size.map(|spec| (spec, SEGMENT_SIZE_TEMPORARY.to_owned())));
        load(self.config.as_deref(), environment, flags)
    }
}

impl DataArgs {
    /// Loads the configuration from the file, the environment and the flags.
    pub(crate) fn load(&self, environment: &Environment) -> Result<Loaded, Failure> {
        let flags = self.data.clone().and_then(data_flag);
        load(
            self.config.as_deref(),
            environment,
            flags.into_iter().collect(),
        )
    }

    /// Loads the defaults, with the data directory of the flag if it is given.
    pub(crate) fn load_defaults(&self) -> Result<Loaded, Failure> {
        let flags = self.data.clone().and_then(data_flag);
        config::load(None, None, flags).map_err(config_failure)
    }
}

fn data_flag(value: String) -> Option<(&'static Spec, String)> {
    Some((config::find("data")?, value))
}

fn load(
    named: Option<&Path>,
    environment: &Environment,
    flags: Vec<(&'static Spec, String)>,
) -> Result<Loaded, Failure> {
    let file = read_file(named, environment)?;
    let file = file
        .as_ref()
        .map(|(path, text)| (path.as_path(), text.as_str()));
    config::load(file, environment.all().iter().cloned(), flags).map_err(config_failure)
}

fn read_file(
    named: Option<&Path>,
    environment: &Environment,
) -> Result<Option<(PathBuf, String)>, Failure> {
    let variable = environment.get("TELPHER_CONFIG").map(Path::new);
    let named = named.or(variable);
    let path = named.unwrap_or(Path::new(FILE_DEFAULT));
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some((path.to_owned(), text))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => Ok(None),
        Err(error) => {
            let message = format!(
                "cannot read the configuration file {}: {error}",
                path.display()
            );
            Err(Failure::new(Exit::Usage, message)
                .hint("`telpher config init > telpher.toml` writes a file with every default"))
        }
    }
}

/// Parses a duration of a client command's flag: `100ms`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    model::duration::parse(text).map_err(|error| error.to_string())
}

/// The flags of all options.
#[derive(Clone, Debug)]
struct Flags(Vec<(&'static Spec, String)>);

impl clap::Args for Flags {
    fn augment_args(mut command: Command) -> Command {
        for section in SECTIONS {
            for spec in section.specs {
                command = command.arg(flag(spec).help_heading(section.title));
            }
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(spec: &Spec) -> Arg {
    let doc = spec.doc();
    let doc = doc.trim_end_matches('.');
    let default = spec.default_text();
    let arg = Arg::new(spec.key)
        .long(spec.flag())
        .action(ArgAction::Set)
        .help(format!("{doc} [default: {default}]"))
        .long_help(format!(
            "{doc}\n\n[default: {default}] [env: {}]",
            spec.variable()
        ));
    match spec.form {
        // A switch may have no value: `--insecure` is `--insecure=true`.
        "BOOL" => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_name(spec.form),
        form => arg.value_name(form).allow_hyphen_values(true),
    }
}

impl clap::FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |spec: &'static Spec| {
            matches
                .get_one::<String>(spec.key)
                .map(|text| (spec, text.clone()))
        };
        Ok(Self(config::specs().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
