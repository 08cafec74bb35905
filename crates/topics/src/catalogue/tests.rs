use super::*;

const ROOM: Room = Room { partitions_max: 10 };

fn id(number: u8) -> TopicId {
    TopicId([number; 16])
}

fn with(names: &[&str]) -> Catalogue {
    let mut catalogue = Catalogue::new(ROOM);
    for (number, name) in (1..).zip(names) {
        let topic = catalogue.decide_create(id(number), name, 2, &[], 5);
        catalogue.put(topic.expect("a topic is made"));
    }
    catalogue
}

#[test]
fn a_topic_is_found_by_its_name_and_by_its_id() {
    let mut catalogue = with(&["b", "a"]);
    let names: Vec<_> = catalogue.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(catalogue.get("b"), catalogue.by_id(id(1)));
    let gone = catalogue.remove(id(1)).unwrap();
    assert_eq!((gone.name.as_str(), gone.created_ms), ("b", 5));
    assert_eq!((catalogue.get("b"), catalogue.by_id(id(1))), (None, None));
    assert_eq!(catalogue.remove(id(1)), None);
    // A new topic of the same name is another topic.
    let again = catalogue.decide_create(id(9), "b", 1, &[], 6).unwrap();
    catalogue.put(again);
    assert_eq!(catalogue.by_id(id(1)), None);
    assert_eq!(catalogue.by_id(id(9)).map(|it| it.partitions), Some(1));
}

#[test]
fn invalid_topics_are_refused_with_their_reason() {
    let catalogue = with(&["a.b", "c"]);
    let make = |name: &str, partitions| {
        let made = catalogue.decide_create(id(7), name, partitions, &[], 0);
        made.unwrap_err()
    };
    let name = || "c".to_owned();
    assert_eq!(make("c", 1), TopicError::Exists { name: name() });
    assert_eq!(make("", 1), TopicError::Name(BadName::Empty));
    let collision = TopicError::Collision {
        name: "a_b".to_owned(),
        other: "a.b".to_owned(),
    };
    assert_eq!(make("a_b", 1), collision);
    for partitions in [0, -1] {
        let now = 0;
        assert_eq!(
            make("d", partitions),
            TopicError::Partitions { partitions, now }
        );
    }
    assert_eq!(make("d", 7), TopicError::Room { left: 6, max: 10 });
    assert!(catalogue.decide_create(id(7), "d", 6, &[], 0).is_ok());
    let configs = [("retention.ms", Some("1")), ("nope", None)];
    let refused = catalogue.decide_create(id(7), "d", 1, &configs, 0);
    let key = "nope".to_owned();
    assert_eq!(refused, Err(TopicError::Config(BadConfig::Key { key })));
}

#[test]
fn the_partition_count_of_a_topic_only_grows() {
    let mut catalogue = with(&["a"]);
    for partitions in [2, 1, 0, -5] {
        let refused = catalogue.decide_partitions("a", partitions);
        let now = 2;
        assert_eq!(refused, Err(TopicError::Partitions { partitions, now }));
    }
    assert_eq!(
        catalogue.decide_partitions("b", 3),
        Err(TopicError::Unknown)
    );
    let more = catalogue.decide_partitions("a", 10).unwrap();
    catalogue.put(more);
    assert_eq!(catalogue.get("a").map(|it| it.partitions), Some(10));
    let refused = catalogue.decide_create(id(3), "b", 1, &[], 0);
    assert_eq!(refused, Err(TopicError::Room { left: 0, max: 10 }));
    catalogue.remove(id(1));
    assert!(catalogue.decide_create(id(3), "b", 10, &[], 0).is_ok());
}

#[test]
fn one_invalid_config_value_rejects_the_whole_change() {
    let mut catalogue = with(&["a"]);
    let alters = [
        ("retention.ms", Alter::Set("5")),
        ("retention.bytes", Alter::Set("x")),
    ];
    assert!(catalogue.decide_alter("a", &alters).is_err());
    let altered = catalogue.decide_alter("a", &alters[..1]).unwrap();
    catalogue.put(altered);
    let value = |catalogue: &Catalogue| catalogue.get("a").unwrap().config.retention_ms();
    assert_eq!(value(&catalogue), Some(5));
    // A replaced configuration resets the keys that are not named.
    let configs = [("retention.bytes", Some("9")), ("segment.bytes", None)];
    let replaced = catalogue.decide_replace("a", &configs).unwrap();
    catalogue.put(replaced);
    assert_eq!(value(&catalogue), Some(604_800_000));
    assert_eq!(catalogue.get("a").unwrap().config.set().len(), 1);
}
