//! The environment variables of the process.

use std::ffi::{OsStr, OsString};

/// The environment variables of the process, read once.
#[derive(Clone, Debug)]
pub struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// Reads all variables.
    pub fn read() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// Returns the variable's value; an empty variable counts as unset.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        let (_, value) = self.0.iter().find(|(found, _)| found == name)?;
        if value.is_empty() { None } else { Some(value) }
    }

    /// Returns all variables and their values.
    pub fn all(&self) -> &[(OsString, OsString)] {
        &self.0
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<T: IntoIterator<Item = (OsString, OsString)>>(variables: T) -> Self {
        Self(variables.into_iter().collect())
    }
}
