//! The configuration and the environment of a node, which only the process around it knows.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The configuration and the environment of a node, for its administrators.
pub trait Operations: Send + Sync {
    /// Returns every option with its value in effect. Passwords are masked.
    fn configuration(&self) -> Vec<OptionDocument>;

    /// Checks the environment of the node. May read from disk.
    fn checks(&self) -> Vec<CheckDocument>;
}

/// An option of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ConfigurationOption)]
pub struct OptionDocument {
    /// Key in the configuration file.
    #[schema(example = "http.listen")]
    pub key: &'static str,
    /// Value in effect, as text; a password in an address is `***`.
    #[schema(example = "127.0.0.1:7401")]
    pub value: String,
    /// The default, as text.
    #[schema(example = "127.0.0.1:7401")]
    pub default: String,
    /// Layer that the value comes from: `default`, `file`, `environment`, `option` of the command line,
    /// or `node` if the node has adjusted it to the limits of the system or to its cluster.
    #[schema(example = "file")]
    pub layer: &'static str,
    /// The line of the file, the variable or the option of the command line.
    #[schema(example = "telpher.toml:3:1")]
    pub origin: String,
    /// Environment variable of the option.
    #[schema(example = "TELPHER_HTTP_LISTEN")]
    pub variable: String,
    /// Option of the command line.
    #[schema(example = "--http-listen")]
    pub flag: String,
    /// Purpose of the option.
    pub description: String,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Check)]
pub struct CheckDocument {
    /// Name of the check.
    #[schema(example = "room")]
    pub check: &'static str,
    /// `ok`, `warn` or `fail`.
    #[schema(example = "ok")]
    pub verdict: &'static str,
    /// The finding in a few words.
    #[schema(example = "81.2 GiB free of 100.0 GiB")]
    pub detail: String,
    /// How to mend it.
    pub hints: Vec<String>,
    /// Figures of the finding; absent without any.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Object)]
    pub figures: Value,
}
