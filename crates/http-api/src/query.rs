//! Query strings.

use axum::extract::Query;
use axum::http::Uri;
use serde::de::DeserializeOwned;

use crate::body;
use crate::problem::Problem;

/// Parses the query string; unknown parameters are errors.
pub fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    match Query::try_from_uri(uri) {
        Ok(Query(query)) => Ok(query),
        Err(error) => {
            let text = error.body_text();
            let text = text.strip_prefix("Failed to deserialize query string: ");
            let text = text.map_or_else(|| error.body_text(), str::to_owned);
            Err(Problem::invalid(format!(
                "the query: {}",
                body::explain(&text)
            )))
        }
    }
}
