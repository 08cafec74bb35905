//! Comparison of SCRAM users: create, change, describe, delete.

use anyhow::Result;
use kafka::{alter_user_scram_credentials as alter, describe_user_scram_credentials as describe};

use super::script::Script;

const SHA_256: i8 = 1;
const SHA_512: i8 = 2;

pub(super) fn compare(script: &mut Script) -> Result<()> {
    script.compare("no users", 0, &describe_users(&[]))?;
    script.compare("unknown user", 0, &describe_users(&["nobody"]))?;
    compare_rejections(script)?;
    compare_creations(script)?;
    compare_deletions(script)
}

fn describe_users(users: &[&str]) -> describe::Request {
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

fn upsertion(name: &str, mechanism: i8, iterations: i32) -> alter::Upsertion {
    let size = match mechanism {
        SHA_512 => 64,
        _ => 32,
    };
    alter::Upsertion {
        name: name.to_owned(),
        mechanism,
        iterations,
        salt: kafka::Secret(b"a salt of its own!".to_vec().into()),
        salted_password: kafka::Secret(vec![7; size].into()),
    }
}

fn deletion(name: &str, mechanism: i8) -> alter::Deletion {
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

fn compare_rejections(script: &mut Script) -> Result<()> {
    script.compare("no changes", 0, &change(Vec::new(), Vec::new()))?;
    for (name, upsertion) in [
        ("empty name", upsertion("", SHA_256, 4_096)),
        ("mechanism 0", upsertion("ann", 0, 4_096)),
        ("unknown mechanism", upsertion("ann", 9, 4_096)),
        ("too few iterations", upsertion("ann", SHA_256, 4_095)),
        ("negative iterations", upsertion("ann", SHA_512, -1)),
        ("too many iterations", upsertion("bob", SHA_512, 16_385)),
    ] {
        script.compare(name, 0, &change(vec![upsertion], Vec::new()))?;
    }
    for (name, deletion) in [
        ("delete, empty name", deletion("", SHA_256)),
        ("delete, unknown user", deletion("nobody", SHA_256)),
        ("delete, mechanism 0", deletion("ann", 0)),
    ] {
        script.compare(name, 0, &change(Vec::new(), vec![deletion]))?;
    }
    let twice = [4_096, 8_192].map(|rounds| upsertion("ann", SHA_256, rounds));
    script.compare("twice", 0, &change(twice.to_vec(), Vec::new()))?;
    let both = change(
        vec![upsertion("ann", SHA_256, 4_096)],
        vec![deletion("ann", SHA_256)],
    );
    script.compare("set and delete", 0, &both)?;
    let bob = change(Vec::new(), vec![deletion("bob", SHA_512)]);
    script.compare("delete after too many iterations", 0, &bob)?;
    script.compare("user without a credential", 0, &describe_users(&["ann"]))?;
    Ok(())
}

fn compare_creations(script: &mut Script) -> Result<()> {
    let one = change(vec![upsertion("ann", SHA_256, 4_096)], Vec::new());
    script.compare("set", 0, &one)?;
    script.compare_eventually("one user", 0, &describe_users(&["ann"]))?;
    let other = change(vec![upsertion("ann", SHA_512, 16_384)], Vec::new());
    script.compare("set for the other mechanism", 0, &other)?;
    let again = change(vec![upsertion("ann", SHA_256, 8_192)], Vec::new());
    script.compare("set again", 0, &again)?;
    script.compare_unordered(
        "both mechanisms",
        0,
        &describe_users(&["ann"]),
        by_mechanism,
    )?;
    let both = change(
        vec![upsertion("ann", SHA_256, 4_096)],
        vec![deletion("ann", SHA_256)],
    );
    script.compare("set and delete, existing user", 0, &both)?;
    script.compare_unordered("all", 0, &describe_users(&[]), by_mechanism)?;
    script.compare("twice", 0, &describe_users(&["ann", "ann"]))?;
    Ok(())
}

fn compare_deletions(script: &mut Script) -> Result<()> {
    let half = change(Vec::new(), vec![deletion("ann", SHA_256)]);
    script.compare("delete one mechanism", 0, &half)?;
    script.compare_eventually("delete one mechanism", 0, &describe_users(&["ann"]))?;
    script.compare("delete again", 0, &half)?;
    let rest = change(Vec::new(), vec![deletion("ann", SHA_512)]);
    script.compare("delete the other mechanism", 0, &rest)?;
    script.compare_eventually("deleted user", 0, &describe_users(&["ann"]))?;
    Ok(())
}
