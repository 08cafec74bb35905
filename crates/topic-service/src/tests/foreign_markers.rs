//! Markers written by clients, in addition to those of the node's own coordinator.

use super::*;

fn marker(writer_id: ProducerId, epoch: i16, coordinator_epoch: i32) -> MarkerToWrite {
    MarkerToWrite {
        producer: writer_id,
        epoch,
        coordinator_epoch,
        ending: Ending::Abort,
    }
}

#[test]
fn foreign_marker_of_a_high_coordinator_epoch_stops_no_later_transaction() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let mut writer = world.init(60_000).unwrap();
    let producer = world.topics.transaction("tx").unwrap().producer;
    let foreign = world
        .topics
        .write_marker(&topic, 0, &marker(producer, 0, 7));
    world.acknowledged(foreign).unwrap();
    world.add(&writer, &topic).unwrap();
    world.write(&mut writer, &topic, "a").unwrap();
    world.end(&writer, Ending::Commit).unwrap();
    let view = world.topics.view(&topic, 0).unwrap();
    assert_eq!((view.last_stable, view.end), (3, 3));
    let older = world
        .topics
        .write_marker(&topic, 0, &marker(producer, 0, -1));
    world.acknowledged(older).unwrap_err();
}

#[test]
fn transaction_commits_despite_a_stored_higher_coordinator_epoch() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let mut writer = world.init(60_000).unwrap();
    let producer = world.topics.transaction("tx").unwrap().producer;
    // As an earlier version accepted it from any client.
    let slot = topic.slots[0].clone();
    world
        .topics
        .put_marker(&slot, &marker(producer, 0, 7))
        .unwrap();
    world.add(&writer, &topic).unwrap();
    world.write(&mut writer, &topic, "a").unwrap();
    world.end(&writer, Ending::Commit).unwrap();
    world.pass_ms(1_000);
    let view = world.topics.view(&topic, 0).unwrap();
    assert_eq!((view.last_stable, view.end), (3, 3));
    let world = world.crash();
    let view = world.topics.view(&world.topic("t"), 0).unwrap();
    assert_eq!((view.last_stable, view.end), (3, 3));
}
