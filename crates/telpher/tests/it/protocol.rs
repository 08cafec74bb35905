//! The native protocol, by a client that was written from `docs/reference/protocol.md` alone.

use std::path::Path;
use std::process::Command;

use crate::support::{Place, Running};

const LIMITED: &str = "acme/limited/bob";

#[test]
fn python_client_written_from_the_protocol_page_works() {
    let place = Place::new();
    place.write(
        "telpher.toml",
        "[[limit]]\nname = \"one-request\"\nmatch = \"acme/limited/*\"\nunit = \"requests\"\n\
         capacity = 1\nrefill = \"1/3600s\"\n",
    );
    let node = place.serve("");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocol/client.py");
    let mut client = Command::new("python3");
    client.arg(script).args([node.address("native"), LIMITED]);
    let ended = Running::spawn(&mut client).end();
    assert_eq!(ended.expect(0).stdout, "ok\n");
    node.stop().expect(0);
}
