//! Comparison of SCRAM users: create, change, describe, delete.

use anyhow::Result;
use kafka::{alter_user_scram_credentials as alter, describe_user_scram_credentials as describe};

use super::script::Script;

const SHA_256: i8 = 1;
const SHA_512: i8 = 2;

pub(super) fn compare(script: &mut Script) -> Result<()> {
    script.both("no users", 0, &looked_at(&[]))?;
    script.both("unknown user", 0, &looked_at(&["nobody"]))?;
    refused(script)?;
    made(script)?;
    removed(script)
}

fn looked_at(users: &[&str]) -> describe::Request {
    let named = |name: &&str| describe::UserName {
        name: (*name).to_owned(),
    };
    describe::Request {
        users: match users {
            [] => None,
            users => Some(users.iter().map(named).collect()),
        },
    }
}

/// Sorts a user's mechanisms, which Apache Kafka returns in the order of its table.
fn by_mechanism(answer: &mut describe::Response) {
    for user in &mut answer.results {
        user.credential_infos.sort_by_key(|it| it.mechanism);
    }
}

fn kept(name: &str, mechanism: i8, iterations: i32) -> alter::Upsertion {
    let size = match mechanism {
        SHA_512 => 64,
        _ => 32,
    };
    alter::Upsertion {
        name: name.to_owned(),
        mechanism,
        iterations,
        salt: kafka::Secret(b"a salt of somebody".to_vec().into()),
        salted_password: kafka::Secret(vec![7; size].into()),
    }
}

fn gone(name: &str, mechanism: i8) -> alter::Deletion {
    alter::Deletion {
        name: name.to_owned(),
        mechanism,
    }
}

fn change(upsertions: Vec<alter::Upsertion>, deletions: Vec<alter::Deletion>) -> alter::Request {
    alter::Request {
        deletions,
        upsertions,
    }
}

fn refused(script: &mut Script) -> Result<()> {
    script.both("no changes", 0, &change(Vec::new(), Vec::new()))?;
    for (name, upsertion) in [
        ("empty name", kept("", SHA_256, 4_096)),
        ("mechanism 0", kept("ann", 0, 4_096)),
        ("unknown mechanism", kept("ann", 9, 4_096)),
        ("too few iterations", kept("ann", SHA_256, 4_095)),
        ("negative iterations", kept("ann", SHA_512, -1)),
        ("too many iterations", kept("bob", SHA_512, 16_385)),
    ] {
        script.both(name, 0, &change(vec![upsertion], Vec::new()))?;
    }
    for (name, deletion) in [
        ("delete, empty name", gone("", SHA_256)),
        ("delete, unknown user", gone("nobody", SHA_256)),
        ("delete, mechanism 0", gone("ann", 0)),
    ] {
        script.both(name, 0, &change(Vec::new(), vec![deletion]))?;
    }
    let twice = [4_096, 8_192].map(|rounds| kept("ann", SHA_256, rounds));
    script.both("twice", 0, &change(twice.to_vec(), Vec::new()))?;
    let both = change(
        vec![kept("ann", SHA_256, 4_096)],
        vec![gone("ann", SHA_256)],
    );
    script.both("set and delete", 0, &both)?;
    let bob = change(Vec::new(), vec![gone("bob", SHA_512)]);
    script.both("delete after too many iterations", 0, &bob)?;
    script.both("user without a credential", 0, &looked_at(&["ann"]))?;
    Ok(())
}

fn made(script: &mut Script) -> Result<()> {
    let one = change(vec![kept("ann", SHA_256, 4_096)], Vec::new());
    script.both("set", 0, &one)?;
    script.in_the_end("one user", 0, &looked_at(&["ann"]))?;
    let other = change(vec![kept("ann", SHA_512, 16_384)], Vec::new());
    script.both("set for the other mechanism", 0, &other)?;
    let again = change(vec![kept("ann", SHA_256, 8_192)], Vec::new());
    script.both("set again", 0, &again)?;
    script.in_any_order("both mechanisms", 0, &looked_at(&["ann"]), by_mechanism)?;
    let both = change(
        vec![kept("ann", SHA_256, 4_096)],
        vec![gone("ann", SHA_256)],
    );
    script.both("set and delete, existing user", 0, &both)?;
    script.in_any_order("all", 0, &looked_at(&[]), by_mechanism)?;
    script.both("twice", 0, &looked_at(&["ann", "ann"]))?;
    Ok(())
}

fn removed(script: &mut Script) -> Result<()> {
    let half = change(Vec::new(), vec![gone("ann", SHA_256)]);
    script.both("delete one mechanism", 0, &half)?;
    script.in_the_end("delete one mechanism", 0, &looked_at(&["ann"]))?;
    script.both("delete again", 0, &half)?;
    let rest = change(Vec::new(), vec![gone("ann", SHA_512)]);
    script.both("delete the other mechanism", 0, &rest)?;
    script.in_the_end("deleted user", 0, &looked_at(&["ann"]))?;
    Ok(())
}
