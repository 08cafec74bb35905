//! Runs the examples.

use std::path::PathBuf;

use crate::support::bounded;

/// Runs an example and returns its output. `cargo test` builds it next to this binary.
async fn run(name: &str) -> String {
    let this = std::env::current_exe().unwrap();
    let target: PathBuf = this.parent().unwrap().parent().unwrap().into();
    let path = target.join("examples").join(name);
    assert!(
        path.exists(),
        "{} is missing\nhint: cargo build -p telpher-client --examples",
        path.display()
    );
    let mut command = tokio::process::Command::new(path);
    let output = bounded(command.kill_on_drop(true).output()).await.unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{errors}");
    printed
}

macro_rules! examples {
    ($($test:ident: $name:literal prints $text:literal;)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                let printed = run($name).await;
                assert!(printed.contains($text), "{printed}");
            }
        )*
    };
}

examples! {
    serial_runs: "serial" prints "did you mean `double`?";
    concurrent_runs: "concurrent" prints "add up to 328350";
    callback_runs: "callback" prints "100000 answers for 100000 calls";
    one_way_runs: "one_way" prints "50005000";
    streaming_runs: "streaming" prints "took 1000 numbers of a stream without end";
    race_runs: "race" prints "the hare was stopped on the way";
    typed_runs: "typed" prints "total_cents: 120";
    service_runs: "service" prints "division by zero";
    blocking_runs: "blocking" prints "1000 calls at once, 0 failed";
    agents_runs: "agents" prints "ada read 3 words for acme/demo/planner";
}
