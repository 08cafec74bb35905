//! The parts of the OpenAPI document that hold for many routes.

use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

/// HTTP methods of operations.
const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

/// Paths that need no token.
const OPEN: [&str; 3] = ["/livez", "/readyz", "/version"];

/// Largest integer that every JSON parser represents exactly (RFC 8259, section 6).
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// Pattern of one part of a name: conversations, messages, namespaces, agents, tokens.
const NAME: &str = "^[A-Za-z0-9._:-]{1,128}$";

/// Returns the document with the common parts added.
pub(super) fn completed(document: OpenApi) -> Value {
    let mut document = match serde_json::to_value(document) {
        Ok(document) => document,
        Err(error) => unreachable!("an OpenAPI document can be written as JSON: {error}"),
    };
    bound_integers(&mut document);
    if let Some(paths) = document["paths"].as_object_mut() {
        for (path, item) in paths {
            for method in METHODS {
                if let Some(operation) = item.get_mut(method).and_then(Value::as_object_mut) {
                    complete(path, operation);
                }
            }
        }
    }
    document
}

fn complete(path: &str, operation: &mut Map<String, Value>) {
    if path.contains("{org}") {
        lengthen(operation);
    }
    let parameters = operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut);
    let parameters = parameters.map(|it| &mut it[..]).unwrap_or_default();
    let is_any = !parameters.is_empty();
    for parameter in parameters {
        if parameter["in"] == "path" {
            restrict(parameter);
        }
    }
    let has_body = operation.contains_key("requestBody");
    let is_open = OPEN.contains(&path);
    let responses = operation.entry("responses").or_insert_with(|| json!({}));
    let Some(responses) = responses.as_object_mut() else {
        return;
    };
    for (status, response) in responses.iter_mut() {
        if status.starts_with(['4', '5']) {
            retype(response);
        }
    }
    let mut expect = |status: &str, description: &str| {
        let response = || problem(description);
        responses.entry(status).or_insert_with(response);
    };
    expect(
        "403",
        "The page's origin is not allowed, or the token lacks permission",
    );
    expect(
        "421",
        "The `Host` of the request is not a name of this node",
    );
    if is_open {
        return;
    }
    expect("401", "A token is required, or the given one is not valid");
    if is_any || has_body {
        expect("400", "The request is invalid");
    }
    if has_body {
        expect("413", "The body is too large");
        expect("415", "The content type of the body is not supported");
    }
    if path.contains("{id}") {
        expect("404", "There is no such conversation");
        expect(
            "410",
            "The conversation was erased, or the messages were trimmed",
        );
    }
    if path.starts_with("/v1/") {
        expect(
            "503",
            "The request cannot be executed now, or its outcome is unknown",
        );
    }
    expect("default", "Any other error");
}

/// Returns the response of an error.
fn problem(description: &str) -> Value {
    let schema = json!({"$ref": "#/components/schemas/Problem"});
    json!({
        "description": description,
        "content": {"application/problem+json": {"schema": schema}},
    })
}

/// Declares error bodies as problem documents.
fn retype(response: &mut Value) {
    let content = response.get_mut("content").and_then(Value::as_object_mut);
    if let Some(content) = content
        && let Some(schema) = content.remove("application/json")
    {
        content.insert("application/problem+json".to_owned(), schema);
    }
}

/// Adds the namespace's parameters and a distinct operation id to a route under a namespace.
fn lengthen(operation: &mut Map<String, Value>) {
    if let Some(Value::String(id)) = operation.get_mut("operationId") {
        id.push_str("_in_namespace");
    }
    let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
    let Some(parameters) = parameters.as_array_mut() else {
        return;
    };
    for name in ["namespace", "org"] {
        if parameters.iter().any(|it| it["name"] == name) {
            continue;
        }
        let parameter = json!({
            "name": name, "in": "path", "required": true, "schema": {"type": "string"},
        });
        parameters.insert(0, parameter);
    }
}

/// Restricts a path parameter to the values that it may have.
fn restrict(parameter: &mut Value) {
    let (min, max, pattern) = match parameter["name"].as_str() {
        Some("who") => (1, 256, "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"),
        Some("topic") => (1, 249, "^[A-Za-z0-9._-]+$"),
        Some("user") => (1, 256, "^[^\\u0000-\\u001f\\u007f]+$"),
        Some("id" | "message" | "org" | "namespace" | "agent" | "name") => (1, 128, NAME),
        _ => return,
    };
    let schema = &mut parameter["schema"];
    if schema["type"] == "string" {
        for (key, value) in [
            ("minLength", json!(min)),
            ("maxLength", json!(max)),
            ("pattern", json!(pattern)),
        ] {
            schema[key] = value;
        }
    }
}

/// Adds a maximum to every integer: that of its format.
fn bound_integers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(bound_integers),
        Value::Object(fields) => {
            let is_integer = match fields.get("type") {
                Some(Value::String(kind)) => kind == "integer",
                Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "integer"),
                _ => false,
            };
            if is_integer && !fields.contains_key("maximum") {
                let max = match fields.get("format").and_then(Value::as_str) {
                    Some("int32") => u64::from(u32::MAX),
                    _ => INTEGER_MAX,
                };
                // An unsigned integer may use the whole range of its format.
                let max = match fields.get("minimum").and_then(Value::as_i64) {
                    None if max == u64::from(u32::MAX) => i32::MAX as u64,
                    _ => max,
                };
                fields.insert("maximum".to_owned(), json!(max));
            }
            fields.values_mut().for_each(bound_integers);
        }
        _ => {}
    }
}
