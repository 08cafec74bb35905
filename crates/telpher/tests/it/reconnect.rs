//! Clients while the node is down and after its restart.

use std::fs::File;

use rustix::process::Signal;

use crate::support::{Place, STUCK, UNTIL_GO, eventually, free_port};

#[test]
fn a_listener_resubscribes_after_a_node_restart() {
    let home = Place::new();
    let address = format!("127.0.0.1:{}", free_port());
    let place = Place::new().with_variable("TELPHER_URL", &format!("tcp://{address}"));
    let node = home.serve_at(&address, "");
    let mut echo = place.listen(["acme/demo/echo/1", "--echo"]);
    assert_eq!(
        place.run("request acme/demo/echo one").expect(0).stdout,
        "one"
    );

    node.signal(Signal::KILL);
    node.end();
    echo.wait_for_note("connection lost");
    place.run("request acme/demo/echo two").expect(4);

    let node = home.serve_at(&address, "");
    echo.wait_for_note(&format!("reconnected to tcp://{address}"));
    eventually("it is subscribed", || {
        node.metric("telpher_subscriptions") == 3
    });
    assert_eq!(
        place.run("request acme/demo/echo/1 three").expect(0).stdout,
        "three"
    );
    echo.stop().expect(0);
    node.stop().expect(0);
}

#[test]
fn a_request_in_flight_when_the_node_dies_is_unconfirmed() {
    let home = Place::new();
    let node = home.serve("");
    let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let mut agent = place.listen(["acme/demo/stuck", "--exec", STUCK]);
    let request = place.start([
        "request",
        "acme/demo/stuck",
        "hi",
        "--deadline",
        "1h",
        "--json",
    ]);
    agent.line();
    node.signal(Signal::KILL);
    let ended = request.end();
    ended.expect(1).shows_error("unconfirmed: ", "idempotent");
    assert_eq!(ended.json()["error"]["retry"], "may_duplicate");
}

#[test]
fn a_request_whose_agent_dies_is_unconfirmed() {
    let home = Place::new();
    let node = home.serve("");
    let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let mut agent = place.listen(["acme/demo/stuck", "--exec", STUCK]);
    let request = place.start(["request", "acme/demo/stuck", "hi", "--deadline", "1h"]);
    agent.line();
    agent.signal(Signal::KILL);
    request
        .end()
        .expect(1)
        .shows_error("unconfirmed: ", "idempotent");
}

#[test]
fn a_node_finishes_running_requests_after_sigterm() {
    let home = Place::new();
    let node = home.serve("--shutdown-drain 1h --shutdown-limit 1h");
    let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let command = format!("{UNTIL_GO}; echo done");
    let mut agent = place.listen(["acme/demo/slow", "--exec", &command]);
    let request = place.start(["request", "acme/demo/slow", "hi", "--deadline", "1h"]);
    agent.line();
    node.signal(Signal::TERM);
    agent.wait_for_note("connection lost (unavailable: the node is shutting down)");
    assert_eq!(node.get("/readyz", None).0, 503);
    File::create(place.path("go")).unwrap();
    assert_eq!(request.end().expect(0).stdout, "done\n");
    node.end().expect(0);
    agent.stop().expect(0);
}

#[test]
fn idle_clients_do_not_delay_shutdown() {
    let home = Place::new();
    let node = home.serve("--shutdown-drain 1h --shutdown-limit 1h");
    let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let _listener = place.listen(["acme/demo/idle"]);
    node.stop().expect(0);
}
