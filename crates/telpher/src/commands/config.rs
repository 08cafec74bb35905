//! `telpher config`: prints or checks the configuration, or writes a configuration file.

use std::sync::Arc;

use access::tokens::TokenStore;
use config::{Config, Loaded, Mistake, SECTIONS, Spec};
use console::output::{self, Format};
use console::{Environment, Failure};
use platform::RealDisk;
use serde_json::{Value, json};
use serve::{check_slim, store_failure, tls_failure};

use crate::settings::ConfigArgs;

const EXAMPLES: &str = "\
Examples:
  telpher config init > telpher.toml
  telpher config show --origin
  TELPHER_HTTP_LISTEN=127.0.0.1:8080 telpher config show --json
  telpher config check --config /etc/telpher.toml

A flag overrides an environment variable, a variable overrides the file, the file overrides the \
default.";

/// Show, check or write the configuration
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Print every option with its effective value
    Show {
        /// Print the origin of each value: a line of the file, a variable, a flag or the default
        #[arg(long)]
        origin: bool,
        #[command(flatten)]
        format: Format,
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Check the configuration as `telpher serve` does, and report all mistakes at once
    Check {
        #[command(flatten)]
        format: Format,
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Print a configuration file with every option and its default
    Init,
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Show {
            origin,
            format,
            config,
        } => show(&config.load(environment)?, origin, format),
        Command::Check { format, config } => check(&config.load(environment)?, format),
        Command::Init => output::print_text(&config::template()),
    }
}

fn show(loaded: &Loaded, with_origin: bool, format: Format) -> Result<(), Failure> {
    let options: Vec<Value> = config::specs()
        .map(|spec| option_json(loaded, spec))
        .collect();
    output::print(
        format,
        &Value::Array(options),
        &to_toml(loaded, with_origin),
    )
}

fn option_json(loaded: &Loaded, spec: &Spec) -> Value {
    let text = spec.text(&loaded.config);
    let value = match spec.bare {
        // Numbers and booleans are written the same way in TOML and JSON.
        true => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        false => Value::String(text),
    };
    json!({
        "key": spec.key,
        "value": value,
        "origin": loaded.origin(spec).to_string(),
        "variable": spec.variable(),
        "flag": format!("--{}", spec.flag()),
    })
}

/// Returns a TOML file that sets every option to its effective value.
fn to_toml(loaded: &Loaded, with_origin: bool) -> String {
    let mut text = String::new();
    for section in SECTIONS {
        if let Some(table) = section.specs.first().and_then(Spec::table) {
            text.push_str(&format!("\n[{table}]\n"));
        }
        for spec in section.specs {
            let line = format!("{} = {}", spec.leaf(), spec.toml(&loaded.config));
            match with_origin {
                true => text.push_str(&format!("{line:<48}  # {}\n", loaded.origin(spec))),
                false => text.push_str(&format!("{line}\n")),
            }
        }
    }
    text
}

fn check(loaded: &Loaded, format: Format) -> Result<(), Failure> {
    let tokens =
        TokenStore::open(Arc::new(RealDisk), &loaded.config.data.dir).map_err(store_failure)?;
    config::check_exposure(loaded, tokens.list().len()).map_err(serve::config_failure)?;
    check_files(&loaded.config)?;
    for warning in &loaded.warnings {
        output::note(&format!("warning: {warning}"));
    }
    let warnings: Vec<String> = loaded.warnings.iter().map(Mistake::to_string).collect();
    let human = "the configuration is valid\n";
    output::print(format, &json!({ "ok": true, "warnings": warnings }), human)
}

/// Checks the files that the configuration names: certificates and keys.
pub(crate) fn check_files(config: &Config) -> Result<(), Failure> {
    let files = config.tls.files();
    let identity = files.map(|(certificate, key)| net::ServerIdentity::load(certificate, key));
    let identity = identity.transpose().map_err(tls_failure)?;
    check_slim(config, identity.as_ref())
}
