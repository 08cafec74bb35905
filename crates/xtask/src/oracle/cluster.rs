//! Comparison of three nodes with three brokers of Apache Kafka: metadata, replicas, coordinators,
//! requests at a broker that does not lead, and leader epochs before and after the leader was killed.

mod creations;
mod epochs;
mod metadata;
mod places;
mod view;

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use self::view::{BROKERS, TOPIC, View, named};
use super::brokers::{Kafka, Nodes};
use super::script::Script;
use super::topics::{make, topic};
use crate::step::{heading, now};

const PARTITIONS: i32 = 3;

const PAUSE: Duration = Duration::from_millis(100);

/// Limit on the time in which all brokers know each other, and another leader is elected.
const LED_MAX: Duration = Duration::from_secs(60);

/// Compares the clusters: Apache Kafka's first.
pub(super) fn compare(script: &mut Script, kafka: &mut Kafka, nodes: &mut Nodes) -> Result<()> {
    let created = kafka::create_topics::Topic {
        num_partitions: PARTITIONS,
        replication_factor: 3,
        ..topic(TOPIC)
    };
    wait_for_brokers(script)?;
    heading("creations");
    script.compare("replicated topic", 4, &make(vec![created]))?;
    let views = wait_until_led(script, |it| it.is_in_sync)?;
    creations::compare(script)?;
    heading("metadata");
    metadata::compare(script)?;
    heading("places");
    places::compare(script, &views)?;
    heading("epochs");
    script.connect([views[0].leader(), views[1].leader()])?;
    epochs::append(script, "before the kill", &[(1, 2), (-1, 10)])?;
    let before = [views[0].epoch, views[1].epoch];
    epochs::compare(script, before, "before the kill")?;
    heading("another leader");
    script.connect([views[0].other()?, views[1].other()?])?;
    kafka.kill(views[0].leader)?;
    nodes.kill(views[1].leader)?;
    let killed = views.map(|it| it.leader);
    let views = wait_for_leaders(script, killed)?;
    let after = [views[0].epoch, views[1].epoch];
    script.check(after[1] > before[1], "the leader epoch grows");
    script.connect([views[0].leader(), views[1].leader()])?;
    metadata::compare_after_kill(script)?;
    epochs::append(script, "after the kill", &[(-1, 3)])?;
    epochs::compare(script, after, "after the kill")?;
    epochs::compare_older(script, before, after)?;
    script.connect([views[0].other()?, views[1].other()?])?;
    places::compare_append(script)
}

/// Waits until all brokers know each other.
fn wait_for_brokers(script: &mut Script) -> Result<()> {
    let began = now();
    loop {
        let answers = script.ask(9, &named(&[]))?;
        let counts = answers.map(|it| it.brokers.len());
        if counts == [BROKERS; 2] {
            return Ok(());
        }
        ensure!(began.elapsed() < LED_MAX, "{counts:?} brokers are listed");
        thread::sleep(PAUSE);
    }
}

/// Waits until both clusters are as wanted.
fn wait_until_led(script: &mut Script, is_reached: fn(&View) -> bool) -> Result<[View; 2]> {
    let began = now();
    loop {
        let [theirs, ours] = script.ask(9, &named(&[TOPIC]))?.map(View::of);
        if let (Some(theirs), Some(ours)) = (theirs, ours)
            && is_reached(&theirs)
            && is_reached(&ours)
        {
            return Ok([theirs, ours]);
        }
        ensure!(began.elapsed() < LED_MAX, "`{TOPIC}` has no leader");
        thread::sleep(PAUSE);
    }
}

/// Waits until both clusters have other leaders than these for all partitions. Connections may be closed
/// meanwhile.
fn wait_for_leaders(script: &mut Script, killed: [i32; 2]) -> Result<[View; 2]> {
    let began = now();
    loop {
        let asked = script.ask(9, &named(&[TOPIC]));
        let is_led = asked.as_ref().is_ok_and(|answers| {
            answers.iter().zip(killed).all(|(answer, killed)| {
                let partitions = answer.topics.iter().flat_map(|it| &it.partitions);
                let mut leaders = partitions.map(|it| it.leader_id);
                leaders.all(|leader| leader >= 0 && leader != killed)
            })
        });
        if let Ok([Some(mut theirs), Some(mut ours)]) = asked.map(|it| it.map(View::of))
            && is_led
        {
            theirs.addresses.remove(&killed[0]);
            ours.addresses.remove(&killed[1]);
            return Ok([theirs, ours]);
        }
        ensure!(began.elapsed() < LED_MAX, "`{TOPIC}` has no other leader");
        thread::sleep(PAUSE);
    }
}
