//! The description of an agent, from a file.

use std::path::Path;

use client::{Description, Method};
use console::{Exit, Failure};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The description of an agent, as JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DescriptionFile {
    #[serde(default)]
    version: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    methods: Vec<MethodEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MethodEntry {
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    stream: bool,
    input: Option<Box<RawValue>>,
    output: Option<Box<RawValue>>,
}

/// Reads a description.
pub(super) fn read(path: &Path) -> Result<Description, Failure> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read `{shown}`: {error}"))
            .hint("--describe takes a file with the description of the agent as JSON")
    })?;
    parse(&bytes).map_err(|error| {
        Failure::new(Exit::Usage, format!("`{shown}`: {error}"))
            .hint("`telpher listen --help` describes the file")
    })
}

fn parse(bytes: &[u8]) -> Result<Description, serde_json::Error> {
    let file: DescriptionFile = serde_json::from_slice(bytes)?;
    let description = Description::new()
        .version(file.version)
        .text(file.description);
    Ok(file
        .methods
        .into_iter()
        .map(method)
        .fold(description, |description, method| {
            description.method(method)
        }))
}

fn method(entry: MethodEntry) -> Method {
    let schema =
        |schema: Option<Box<RawValue>>| schema.map_or_else(String::new, |it| it.get().into());
    let method = Method::new(entry.name)
        .text(entry.description)
        .input(schema(entry.input))
        .output(schema(entry.output));
    match entry.stream {
        true => method.streamed(),
        false => method,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_of_a_description_file_stay_as_they_are_written() {
        let file = br#"{"version": "1.2", "methods": [
            {"name": "add", "input": {"type":  "array"}, "stream": true}]}"#;
        let add = Method::new("add")
            .input("{\"type\":  \"array\"}")
            .streamed();
        let expected = Description::new().version("1.2").method(add);
        assert_eq!(parse(file).unwrap(), expected);
        assert!(parse(br#"{"method": []}"#).is_err());
    }
}
