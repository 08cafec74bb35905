//! The OpenAPI document and the routes of the node agree.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Door;

const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

async fn document(door: &Door) -> Value {
    let answer = door.get("/openapi.json").await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()
}

/// A path with something in its places.
fn filled(path: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { "x" } else { part }.to_owned();
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_documented_operation_is_served_and_no_other() {
    let door = Door::open().await;
    let document = document(&door).await;
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS {
            let is_endless = path == "/v1/watch" || path.ends_with("/streams/{stream}/follow");
            if is_endless && method == "get" {
                door.events(&filled(path)).await;
                continue;
            }
            let answer = door
                .ask(method.to_uppercase().as_str(), &filled(path), &json!({}))
                .await;
            let is_documented = item.get(method).is_some();
            assert_eq!(answer.status != 405, is_documented, "{method} {path}");
            if answer.status == 404 && is_documented {
                let problem = answer.json();
                let detail = problem["detail"].as_str().unwrap();
                assert!(
                    !detail.starts_with("no such path"),
                    "{method} {path}: {detail}"
                );
            }
        }
    }
}

#[tokio::test]
async fn every_operation_has_a_unique_id_and_all_its_path_parameters() {
    let door = Door::open().await;
    let document = document(&door).await;
    assert_eq!(document["openapi"].as_str().unwrap().get(..2), Some("3."));
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let place = format!("{method} {path}");
            let name = operation["operationId"].as_str().unwrap();
            assert!(
                names.insert(name.to_owned()),
                "{place}: {name} is used twice"
            );
            let none = Vec::new();
            let parameters = operation["parameters"].as_array().unwrap_or(&none);
            let in_path = parameters.iter().filter(|it| it["in"] == "path");
            let named: BTreeSet<_> = in_path.map(|it| it["name"].as_str().unwrap()).collect();
            let places = path
                .split('/')
                .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
            assert_eq!(named, places.collect(), "{place}");
            assert!(
                !operation["responses"].as_object().unwrap().is_empty(),
                "{place}"
            );
        }
    }
}

#[tokio::test]
async fn every_reference_in_the_document_resolves() {
    let door = Door::open().await;
    let document = document(&door).await;
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 10);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        Value::Object(fields) => {
            for (key, field) in fields {
                match field {
                    Value::String(text) if key == "$ref" => references.push(text.clone()),
                    field => collect(field, references),
                }
            }
        }
        _ => {}
    }
}
