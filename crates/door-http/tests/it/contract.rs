//! Every answer of these tests is compared with `/openapi.json`, which the door serves beside it.

use std::cell::RefCell;
use std::net::SocketAddr;

use boon::{Compiler, Draft, Schemas};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::client::{self, Answer};

/// The document that the doors of these tests serve.
pub(crate) struct Contract {
    document: Value,
}

thread_local! {
    /// The schemas of the document that were needed on this thread.
    static SCHEMAS: RefCell<Option<(Compiler, Schemas)>> = const { RefCell::new(None) };
}

const URL: &str = "http://telpher.test/openapi.json";

impl Contract {
    pub(crate) async fn of(address: SocketAddr) -> &'static Self {
        static CONTRACT: OnceCell<Contract> = OnceCell::const_new();
        CONTRACT.get_or_init(|| Self::read(address)).await
    }

    async fn read(address: SocketAddr) -> Self {
        let answer = client::ask(address, "GET", "/openapi.json", &[], b"").await;
        let mut document = answer.json();
        let open = document.clone();
        close(&mut document, &open);
        Self { document }
    }

    fn compiler(&self) -> Compiler {
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.add_resource(URL, self.document.clone()).unwrap();
        compiler
    }

    /// Checks an answer, and the body that was asked with if it was taken.
    #[track_caller]
    pub(crate) fn check(&self, method: &str, path: &str, body: &[u8], answer: &Answer) {
        let path = path.split('?').next().unwrap_or_default();
        let method = method.to_ascii_lowercase();
        let Some(template) = self.template(path) else {
            return;
        };
        let operation = &self.document["paths"][template][&method];
        if operation.is_null() {
            return;
        }
        let pointer = format!("/paths/{}/{method}", escaped(template));
        let status = answer.status.to_string();
        let status = match operation["responses"].get(&status) {
            Some(_) => status,
            None => {
                assert!(
                    answer.status >= 400,
                    "{method} {path}: {status} is not documented"
                );
                "default".to_owned()
            }
        };
        self.check_answer(&format!("{pointer}/responses/{status}"), answer, path);
        let is_json = operation["requestBody"]["content"]
            .get("application/json")
            .is_some();
        if (200..300).contains(&answer.status)
            && is_json
            && let Ok(body) = serde_json::from_slice(body)
        {
            let schema = format!("{pointer}/requestBody/content/application~1json/schema");
            self.validate(&schema, &body, path);
        }
    }

    fn check_answer(&self, pointer: &str, answer: &Answer, path: &str) {
        if answer.body.is_empty() {
            return;
        }
        let kind = answer.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default();
        let content = self.document.pointer(&format!("{pointer}/content"));
        let of_kind = |kind| content.is_some_and(|content| content.get(kind).is_some());
        let is_known = of_kind(kind) || of_kind("*/*");
        assert!(
            is_known,
            "{path}: {pointer} has no `{kind}`: {}",
            answer.text()
        );
        if kind.ends_with("json") {
            let schema = format!("{pointer}/content/{}/schema", escaped(kind));
            match serde_json::from_slice(&answer.body) {
                Ok(value) => self.validate(&schema, &value, path),
                // A number may be one that no program here holds.
                Err(_) => drop(serde_json::from_slice::<&RawValue>(&answer.body).unwrap()),
            }
        }
    }

    fn validate(&self, pointer: &str, value: &Value, path: &str) {
        if self.document.pointer(pointer).is_none() {
            return;
        }
        let location = format!("{URL}#{}", pointer.replace('{', "%7B").replace('}', "%7D"));
        SCHEMAS.with_borrow_mut(|known| {
            let (compiler, schemas) =
                known.get_or_insert_with(|| (self.compiler(), Schemas::new()));
            let schema = compiler.compile(&location, schemas).unwrap();
            if let Err(error) = schemas.validate(value, schema) {
                panic!("{path}: {pointer}: {error:#}\n{value}");
            }
        });
    }

    /// The path of the document that a path is one of: the one with most words in it.
    fn template(&self, path: &str) -> Option<&str> {
        let paths = self.document["paths"].as_object()?;
        let fitting = paths.keys().filter(|template| {
            let (mut words, mut places) = (path.split('/'), template.split('/'));
            words.clone().count() == places.clone().count()
                && words.all(|word| {
                    places.next().is_some_and(|place| {
                        place == word || (place.starts_with('{') && !word.is_empty())
                    })
                })
        });
        let best = fitting.min_by_key(|template| template.matches('{').count());
        best.map(String::as_str)
    }
}

/// Forbids undocumented fields: objects have the listed properties only.
fn close(value: &mut Value, document: &Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| close(item, document)),
        Value::Object(schema) => {
            if schema.contains_key("allOf") {
                *value = merged(value, document);
                return close(value, document);
            }
            schema.values_mut().for_each(|value| close(value, document));
            let is_object = schema.get("properties").is_some_and(Value::is_object);
            if is_object && schema.get("type").is_some_and(|kind| kind == "object") {
                let rule = schema.entry("additionalProperties");
                rule.or_insert(Value::Bool(false));
            }
        }
        _ => {}
    }
}

/// Replaces `allOf` by one object with the properties of all its parts.
fn merged(schema: &Value, document: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.strip_prefix('#').unwrap());
        return merged(target.unwrap(), document);
    }
    let Some(parts) = schema["allOf"].as_array() else {
        return schema.clone();
    };
    let mut all = json!({"type": "object", "properties": {}, "required": []});
    for part in parts {
        let part = merged(part, document);
        let properties = part["properties"].as_object().into_iter().flatten();
        for (name, property) in properties {
            all["properties"][name] = property.clone();
        }
        let required = part["required"].as_array().into_iter().flatten();
        all["required"]
            .as_array_mut()
            .unwrap()
            .extend(required.cloned());
    }
    all
}

/// As a part of a JSON pointer.
fn escaped(word: &str) -> String {
    word.replace('~', "~0").replace('/', "~1")
}
