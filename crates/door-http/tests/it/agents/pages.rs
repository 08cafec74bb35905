//! Pages of agents and connections.

use serde_json::{Value, json};

use super::Worker;
use crate::Door;

fn names(page: &Value) -> Vec<&str> {
    let agents = page["agents"].as_array().unwrap().iter();
    agents.map(|it| it["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn agents_are_listed_in_pages_with_totals() {
    let door = Door::open().await;
    let subscribe = |name: &str| Worker::subscribe(&door, name);
    let workers = ["b/x/2/i", "b/x/1/i", "a/x/1/i", "b/x/2/k", "c/x/1/i"];
    let workers = workers.map(subscribe);
    let first = door.get("/v1/agents?prefix=b/&limit=1").await.json();
    assert_eq!(names(&first), ["b/x/1"]);
    assert_eq!(first["next"], "b/x/1");
    assert_eq!(
        (&first["connected"], &first["connected_instances"]),
        (&json!(2), &json!(3))
    );
    let path = "/v1/agents?prefix=b/&limit=1&after=b/x/1&summary=true";
    let second = door.get(path).await.json();
    assert_eq!(names(&second), ["b/x/2"]);
    assert_eq!(second.get("next"), None, "{second}");
    let agent = &second["agents"][0];
    assert_eq!(
        (&agent["instance_count"], agent.get("instances")),
        (&json!(2), None)
    );
    let all = door.get("/v1/agents").await.json();
    assert_eq!(names(&all), ["a/x/1", "b/x/1", "b/x/2", "c/x/1"]);
    assert_eq!(all["agents"][2]["instances"].as_array().unwrap().len(), 2);
    for limit in ["0", "10001"] {
        let refused = door.get(&format!("/v1/agents?limit={limit}")).await;
        refused.problem(400, "invalid_argument");
    }
    drop(workers);
}

#[tokio::test]
async fn connections_are_listed_in_pages() {
    let door = Door::open().await;
    let workers: Vec<_> = (0..3)
        .map(|index| Worker::subscribe(&door, &format!("a/x/{index}/i")))
        .collect();
    let all = door.get("/v1/connections").await.json();
    let total = all["total"].as_u64().unwrap() as usize;
    let rows = all["connections"].as_array().unwrap();
    assert_eq!((rows.len(), all.get("next")), (total, None));
    let mut seen = Vec::new();
    let mut after = json!(0);
    for _ in 0..total {
        let path = format!("/v1/connections?limit=1&after={after}");
        let page = door.get(&path).await.json();
        seen.extend(page["connections"].as_array().unwrap().clone());
        after = page["next"].clone();
    }
    assert_eq!(after, Value::Null);
    let ids = |rows: &[Value]| Vec::from_iter(rows.iter().map(|it| it["id"].clone()));
    assert_eq!(ids(&seen), ids(rows));
    drop(workers);
}
