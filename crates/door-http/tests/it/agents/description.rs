//! Descriptions of agents over HTTP.

use messaging::{DescribedMethod, Description};
use serde_json::json;

use super::Worker;
use crate::Door;

const PATH: &str = "/v1/acme/demo/agents/sum/description";

fn description(version: &str) -> Description {
    Description {
        version: version.to_owned(),
        text: "Adds numbers.".to_owned(),
        methods: vec![DescribedMethod {
            name: "add".to_owned(),
            is_streamed: true,
            text: String::new(),
            input: "{ \"type\":\"array\",  \"minItems\": 1.0 }".to_owned(),
            output: String::new(),
        }],
    }
}

#[tokio::test]
async fn the_newest_description_is_shown_with_its_schemas_as_written() {
    let door = Door::open().await;
    door.get(PATH).await.problem(404, "not_found");
    let plain = Worker::subscribe(&door, "acme/demo/sum/c");
    door.get(PATH).await.problem(404, "not_found");
    let newer = Worker::described(&door, "acme/demo/sum/b", description("1.10.0"));
    let _older = Worker::described(&door, "acme/demo/sum/a", description("1.9.0"));
    let answer = door.get(PATH).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let schema = "\"input\":{ \"type\":\"array\",  \"minItems\": 1.0 }";
    assert!(answer.text().contains(schema), "{}", answer.text());
    let mut shown = answer.json();
    assert_eq!(shown["version"], "1.10.0");
    assert_eq!(shown["methods"][0]["stream"], true);
    let mut instances = shown["instances"].as_array_mut().unwrap().clone();
    instances.sort_by_key(|it| it["instance"].as_str().unwrap().to_owned());
    let expected = json!([
        {"instance": "a", "version": "1.9.0", "differs": true},
        {"instance": "b", "version": "1.10.0", "differs": false},
        {"instance": "c", "differs": true},
    ]);
    assert_eq!(json!(instances), expected);
    let list = door.get("/v1/agents").await.json();
    let agent = &list["agents"][0];
    assert_eq!(
        (&agent["version"], &agent["methods"]),
        (&json!("1.10.0"), &json!(["add"]))
    );
    assert_eq!(agent["description"], "Adds numbers.");
    drop((newer, plain));
    assert_eq!(door.get(PATH).await.json()["version"], "1.9.0");
}
